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

/** Set on each start, overriding postgresql.conf. */
const settings = {
  listen_addresses: '',
  // Relative to the cluster's folder, whose path may be too long for a socket.
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  port: 5432,
  fsync: 'on',
  full_page_writes: 'on',
  // On macOS only this reaches the disk itself; elsewhere fsync does.
  ...(process.platform === 'darwin' && { wal_sync_method: 'fsync_writethrough' }),
  // Above ERROR: messages about a failed statement may quote a person's values.
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
  /** True while the server runs or is starting. */
  isRunning(): boolean
  /** PostgreSQL's own message about why it ended; undefined if it was stopped or killed. */
  failure(): string | undefined
}

/**
 * Starts the server without waiting for it. It gets its own process session, because Ctrl-C in a
 * terminal reaches all processes of the session, and open requests still need the database.
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
    isRunning: () => failure === '' && hasNotEnded(child),
    failure: () => failure || failureIn(readFileSync(cluster.log).subarray(from), child.pid),
  }
}

/** Other processes write to the log too, such as another start of the server. */
function failureIn(log: Buffer, pid = 0): string | undefined {
  const text = log.toString()
  const helper = new RegExp(`\\[${pid}\\] .*startup process \\(PID (\\d+)\\) exited`).exec(
    text,
  )?.[1]
  const ofServer = new RegExp(`\\[(?:${pid}|${helper ?? pid})\\] (?:FATAL|PANIC): +(.*)`)
  return ofServer.exec(text)?.[1]
}

/** The process ID of the cluster's server, if it runs. */
export function postmasterOf(folder: string): number | undefined {
  const pid = pidOnFile(folder)
  return pid !== undefined && commandOf(pid).endsWith(markOf(folder)) ? pid : undefined
}

/** Stops the server and ends its connections. Does nothing if it does not run. */
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
 * Marks the server's command line. A killed PostgreSQL leaves a file with its process ID, which may
 * belong to any process after a restart of the machine.
 */
export function markOf(folder: string): string {
  return `lethe.folder=${folder}`
}

function pidOnFile(folder: string): number | undefined {
  const pid = Number.parseInt(pidFile(folder), 10)
  return pid > 0 ? pid : undefined
}

/** The status the server reports: starting, ready or stopping; empty if it does not run. */
export function statusOf(folder: string): string {
  return pidFile(folder).split('\n')[7]?.trim() ?? ''
}

function pidFile(folder: string): string {
  try {
    return readFileSync(join(folder, 'postmaster.pid'), 'utf8')
  } catch (error) {
    // Not checked beforehand: a stopping server may remove it in between.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return ''
  }
}

/** The command line of a process; empty if there is none or it is a zombie. */
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
 * PostgreSQL does not start while the process named in its file is alive, whatever that is, unless
 * it believes that this process started it. All its other checks remain: if a server runs by now,
 * the file names that one.
 */
function ignoringPid(folder: string): { PG_GRANDPARENT_PID?: string } {
  const pid = pidOnFile(folder)
  if (pid === undefined || postmasterOf(folder) !== undefined) return {}
  return { PG_GRANDPARENT_PID: `${pid}` }
}

function openLog({ log, account }: Cluster): number {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  if (size > logLimitBytes) renameSync(log, `${log}.old`)
  // A symbolic link of another user must not lead root to another file.
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
  const handle = openSync(log, O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW, 0o600)
  if (account && fstatSync(handle).nlink === 1) fchownSync(handle, account.uid, account.gid)
  return handle
}

function hasNotEnded(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}
