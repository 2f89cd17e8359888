import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder, runIn } from './installed-postgres.ts'

export interface CitusCluster {
  version: string
  /** Of a database on the coordinator, whose nodes are known to it. */
  url: string
  stop(): void
}

/**
 * Starts a coordinator and some workers of an installed PostgreSQL that has Citus, on ports of the
 * loopback address; undefined where none has.
 */
export function startCitus({ workers = 2, fsync = false } = {}): CitusCluster | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const home = (version: string) => join('/usr/lib/postgresql', version)
  const version = versions.find((one) => existsSync(join(home(one), 'lib/citus.so')))
  if (version === undefined) return undefined
  const programs = join(home(version), 'bin')
  // Not one of the ports that are given out by itself, and hardly one that anybody uses.
  const firstPort = 20_000 + (process.pid % 10_000)
  const folder = newFolder()
  const run = runIn(programs, folder)
  const nodes = Array.from({ length: workers + 1 }, (_, n) => ({ n, port: firstPort + n }))
  const psql = (port: number, database: string, text: string) =>
    run('psql', '-qh', '127.0.0.1', '-p', String(port), '-U', 'lethe', database, '-c', text)
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    fsync: fsync ? 'on' : 'off',
    shared_preload_libraries: 'citus',
    // A shard is moved by logical replication.
    wal_level: 'logical',
    max_connections: '300',
    max_prepared_transactions: '300',
    // Citus keeps one for each database.
    max_worker_processes: '32',
    'citus.shard_count': '8',
  }
  for (const { n, port } of nodes) {
    run('initdb', '-D', `n${n}`, '-U', 'lethe', '-A', 'trust', '-E', 'UTF8', '--no-locale')
    const options = Object.entries({ ...settings, port }).map(
      ([name, value]) => `-c ${name}=${value}`,
    )
    run('pg_ctl', '-D', `n${n}`, '-w', '-l', `log${n}`, '-o', options.join(' '), 'start')
    psql(port, 'postgres', 'create database lethe')
    psql(port, 'lethe', 'create extension citus')
  }
  psql(firstPort, 'lethe', `select citus_set_coordinator_host('127.0.0.1', ${firstPort})`)
  for (const { port } of nodes.slice(1)) {
    psql(firstPort, 'lethe', `select citus_add_node('127.0.0.1', ${port})`)
  }
  // Otherwise it has none where there are others.
  if (workers === 0) {
    psql(
      firstPort,
      'lethe',
      `select citus_set_node_property('127.0.0.1', ${firstPort}, 'shouldhaveshards', true)`,
    )
  }
  return {
    version,
    url: `postgres://lethe@127.0.0.1:${firstPort}/lethe`,
    stop() {
      for (const { n } of nodes.reverse())
        run('pg_ctl', '-D', `n${n}`, '-w', '-m', 'immediate', 'stop')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
