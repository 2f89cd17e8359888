import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Starts a PostgreSQL of the distribution (15 on Debian 12) on a unix socket in a folder of its
 * own, so that the tests run on the oldest version too. Undefined where none is installed.
 *
 * `listens`: on a port of the loopback address too, for programs that reach no socket. `fsync`: as
 * for real; tests need not survive a power cut.
 */
export function startInstalledPostgres({
  listens = false,
  fsync = false,
} = {}): { version: string; url: string; stop(): void } | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const version = versions.filter((one) => Number(one) >= 15).sort()[0]
  const programs = `/usr/lib/postgresql/${version}/bin`
  if (version === undefined || !existsSync(join(programs, 'postgres'))) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'lethe-pg-'))
  const isRoot = process.getuid?.() === 0
  // PostgreSQL refuses to be root.
  const user = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}
  if (isRoot) chownSync(folder, idOf('-u'), idOf('-g'))
  const run = (program: string, ...words: string[]) =>
    execFileSync(join(programs, program), words, { cwd: folder, stdio: 'ignore', ...user })
  run('initdb', '-D', 'data', '-U', 'lethe', '-A', 'trust', '-E', 'UTF8', '--no-locale')
  // Not one of the ports that are given out by itself, and hardly one that anybody uses.
  const port = listens ? 20_000 + (process.pid % 10_000) : 5432
  const options = `-c listen_addresses=${listens ? '127.0.0.1' : ''} -c unix_socket_directories=${folder} -c port=${port} -c fsync=${fsync ? 'on' : 'off'}`
  run('pg_ctl', '-D', 'data', '-w', '-l', 'log', '-o', options, 'start')
  return {
    version,
    url: listens
      ? `postgres://lethe@127.0.0.1:${port}/postgres`
      : `postgres://lethe@localhost:${port}/postgres?host=${folder}`,
    stop() {
      run('pg_ctl', '-D', 'data', '-w', '-m', 'fast', 'stop')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}
