import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, folderArgument } from './cluster.ts'
import { EmbeddedError } from './embedded-error.ts'
import { environment } from './run.ts'

const logLimitBytes = 1_000_000
const stopSeconds = 60

/** Holds on each start, whatever postgresql.conf says. */
const settings = {
  listen_addresses: '',
  // Relative to the cluster's folder, so that its path may be longer than that of a socket.
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  port: 5432,
  fsync: 'on',
  full_page_writes: 'on',
  // Elsewhere fsync reaches the disk itself; on macOS only this does.
  ...(process.platform === 'darwin' && { wal_sync_method: 'fsync_writethrough' }),
  // Above ERROR: what PostgreSQL says of a failed statement may quote the values of a person.
  log_min_messages: 'log',
  log_line_prefix: '%m [%p] ',
  log_min_error_statement: 'panic',
  log_statement: 'none',
  log_min_duration_statement: -1,
  log_error_verbosity: 'terse',
  log_parameter_max_length: 0,
  log_parameter_max_length_on_error: 0,
  log_checkpoints: 'off',
  logging_collector: 'off',
}

export interface Start {
  /** True while the server, or its attempt to start, goes on. */
  goesOn(): boolean
  /** Why it ended, in PostgreSQL's words; undefined if it was stopped or killed. */
  failure(): string | undefined
}

/**
 * Starts the server and does not wait for it. It has a session of its own: Ctrl-C in a terminal
 * goes to all processes of the session, and requests in flight still need their database.
 */
export function startPostmaster(cluster: Cluster): Start {
  const { folder, bin, account } = cluster
  const log = openLog(cluster)
  const from = fstatSync(log).size
  const args = ['-D', folderArgument(cluster)]
  for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`)
  args.push('-c', markOf(folder))
  const child = spawn(join(bin, 'postgres'), args, {
    cwd: folder,
    env: { ...environment, ...ignoringPid(folder) },
    stdio: ['ignore', log, log],
    detached: true,
    ...account,
  })
  closeSync(log)
  child.unref()
  let failure = ''
  child.on('error', (error) => {
    failure = error.message
  })
  return {
    goesOn: () => failure === '' && hasNotEnded(child),
    failure: () => failure || failureIn(readFileSync(cluster.log).subarray(from), child.pid),
  }
}

/** Others write to the log as well: who lost a connection, and who starts the server too. */
function failureIn(log: Buffer, pid = 0): string | undefined {
  const text = log.toString()
  const helper = new RegExp(`\\[${pid}\\] .*startup process \\(PID (\\d+)\\) exited`).exec(
    text,
  )?.[1]
  const ofServer = new RegExp(`\\[(?:${pid}|${helper ?? pid})\\] (?:FATAL|PANIC): +(.*)`)
  return ofServer.exec(text)?.[1]
}

/** The id of the process that serves the cluster, if it runs. */
export function postmasterOf(folder: string): number | undefined {
  const pid = pidOnFile(folder)
  return pid !== undefined && commandOf(pid).endsWith(markOf(folder)) ? pid : undefined
}

/** Stops the server, ending what is still connected to it; does nothing if it does not run. */
export async function stopPostmaster(folder: string): Promise<void> {
  const pid = postmasterOf(folder)
  if (pid === undefined) return
  process.kill(pid, 'SIGINT')
  const end = Date.now() + stopSeconds * 1_000
  while (postmasterOf(folder) === pid) {
    if (Date.now() > end) {
      throw new EmbeddedError(`PostgreSQL (process ${pid}) did not stop in ${stopSeconds} s.`)
    }
    await sleep(10)
  }
}

/**
 * Stands in the server's command line. PostgreSQL leaves a file with its process id behind when it
 * is killed, and after a restart of the machine that id may be anybody's.
 */
export function markOf(folder: string): string {
  return `lethe.folder=${folder}`
}

function pidOnFile(folder: string): number | undefined {
  const pid = Number.parseInt(pidFile(folder), 10)
  return pid > 0 ? pid : undefined
}

/** What the server says of itself: starting, ready or stopping; empty if it does not run. */
export function statusOf(folder: string): string {
  return pidFile(folder).split('\n')[7]?.trim() ?? ''
}

function pidFile(folder: string): string {
  try {
    return readFileSync(join(folder, 'postmaster.pid'), 'utf8')
  } catch (error) {
    // Looked for first, it could be gone by the time it is read: a server that stops removes it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return ''
  }
}

/** The command line of a process; empty if there is none, or it waits to be buried. */
function commandOf(pid: number): string {
  try {
    return process.platform === 'linux'
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0$/, '')
      : execFileSync('ps', ['-ww', '-o', 'command=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}

/**
 * PostgreSQL does not start while the process named in its file is alive, whatever it is, unless
 * it is told that this is the one that started it. All its other checks stay: should a server run
 * by now, the file names that one.
 */
function ignoringPid(folder: string): { PG_GRANDPARENT_PID?: string } {
  const pid = pidOnFile(folder)
  if (pid === undefined || postmasterOf(folder) !== undefined) return {}
  return { PG_GRANDPARENT_PID: `${pid}` }
}

function openLog({ log, account }: Cluster): number {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  if (size > logLimitBytes) renameSync(log, `${log}.old`)
  // Another user's link must not lead root to a file outside.
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
  const handle = openSync(log, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
  if (account && fstatSync(handle).nlink === 1) fchownSync(handle, account.uid, account.gid)
  return handle
}

function hasNotEnded(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}
