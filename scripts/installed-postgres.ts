import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface InstalledPostgres {
  version: string
  url: string
  folder: string
  /** A second server that follows this one by streaming replication, read-only until promoted. */
  standby(): InstalledPostgres
  promote(): void
  /** Ends it as a power cut ends a machine: nothing is written or sent any more. */
  kill(): void
  stop(): void
}

/**
 * Starts a PostgreSQL of the distribution (15 on Debian 12) on a unix socket in a folder of its
 * own, so that the tests run on the oldest version too. Undefined where none is installed.
 *
 * `listens`: on a port of the loopback address too, for programs that reach no socket. `fsync`: as
 * for real; tests need not survive a power cut. `settings`: more of them, as in `-c ssl=on`. `hba`:
 * lines before those that trust everybody.
 */
export function startInstalledPostgres({
  listens = false,
  fsync = false,
  settings = '',
  hba = [] as string[],
} = {}): InstalledPostgres | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const version = versions.filter((one) => Number(one) >= 15).sort()[0]
  const programs = `/usr/lib/postgresql/${version}/bin`
  if (version === undefined || !existsSync(join(programs, 'postgres'))) return undefined
  // Not one of the ports that are given out by itself, and hardly one that anybody uses.
  const port = listens ? 20_000 + (process.pid % 10_000) : 5432
  const shared = `-c listen_addresses=${listens ? '127.0.0.1' : ''} -c port=${port} -c fsync=${fsync ? 'on' : 'off'} ${settings}`
  const folder = newFolder()
  const run = runIn(programs, folder)
  run('initdb', '-D', 'data', '-U', 'lethe', '-A', 'trust', '-E', 'UTF8', '--no-locale')
  if (hba.length > 0) {
    const file = join(folder, 'data/pg_hba.conf')
    writeFileSync(file, `${hba.join('\n')}\n${readFileSync(file, 'utf8')}`)
  }
  return start(folder)

  function start(folder: string): InstalledPostgres {
    const run = runIn(programs, folder)
    const options = `${shared} -c unix_socket_directories=${folder}`
    run('pg_ctl', '-D', 'data', '-w', '-l', 'log', '-o', options, 'start')
    let isKilled = false
    return {
      version: version as string,
      folder,
      url: listens
        ? `postgres://lethe@127.0.0.1:${port}/postgres`
        : `postgres://lethe@localhost:${port}/postgres?host=${folder}`,
      standby() {
        const other = newFolder()
        const from = `host=${folder} port=${port} user=lethe`
        runIn(programs, other)('pg_basebackup', '-d', from, '-D', 'data', '-R', '-c', 'fast')
        return start(other)
      },
      promote: () => run('pg_ctl', '-D', 'data', '-w', 'promote'),
      kill() {
        isKilled = true
        const [pid = ''] = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')
        const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
        // The first one first: it would restart the others.
        for (const one of [pid, ...children]) process.kill(Number(one), 'SIGKILL')
      },
      stop() {
        if (!isKilled) run('pg_ctl', '-D', 'data', '-w', '-m', 'fast', 'stop')
        rmSync(folder, { recursive: true, force: true })
      },
    }
  }
}

// PostgreSQL refuses to be root.
const isRoot = process.getuid?.() === 0

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-pg-'))
  if (isRoot) chownSync(folder, idOf('-u'), idOf('-g'))
  return folder
}

export function runIn(programs: string, folder: string) {
  const user = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}
  return (program: string, ...words: string[]): void => {
    execFileSync(join(programs, program), words, {
      cwd: folder,
      stdio: 'ignore',
      // Where a node connects to another, it looks for certificates there.
      env: { ...process.env, HOME: folder },
      ...user,
    })
  }
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}
