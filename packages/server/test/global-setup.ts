import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { distribute } from '../src/distribute.ts'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { migrate } from '../src/migrate.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { bundleCommand } from './bundle.ts'
import { copyDataFolder } from './data-folder.ts'
import { createDatabase, dropDatabase, joinNodes, type Servers, serversOf } from './databases.ts'
import { isDeep } from './proof/deep.ts'
import { startS3Servers } from './s3-servers/start.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server the tests run on, and the migrated database they clone. */
    postgres: DbAddress
    /** Where to ask for an S3 server; see `s3Server`. */
    s3Servers: string
    /** That server, and the others of its cluster. */
    servers: Servers
    /** A data folder whose database is initialised and migrated, to copy; see `newDataFolder`. */
    dataFolder: string
    /** The command `lethe`, to be run by Node: bundled, and in a deep run the sources themselves. */
    command: string
  }
}

/**
 * One PostgreSQL for all test files: the embedded one, or that of LETHE_TEST_DATABASE_URL (a
 * superuser's), which may be the coordinator of a Citus cluster. A template database has all
 * migrations; each test file clones it.
 */
export default async function setup(project: TestProject) {
  const folder = mkdtempSync(join(fastFolder(), 'lethe-test-'))
  // PostgreSQL runs as another user if we are root, and has to get through to its files.
  chmodSync(folder, 0o755)
  process.env.TMPDIR = folder
  // What Node has compiled once serves all the processes that the tests start.
  process.env.NODE_COMPILE_CACHE = join(folder, 'compiled')
  const sources = join(import.meta.dirname, '../bin/lethe.ts')
  const bundling = isDeep ? sources : bundleCommand(join(folder, 'dist'))
  const initialised = join(folder, 'initialised')
  const first = await openEmbedded({ dataDir: initialised })
  await migrate(first.address)
  await first.close()
  project.provide('dataFolder', initialised)

  const url = process.env.LETHE_TEST_DATABASE_URL
  const dataDir = join(folder, 'server')
  if (!url) copyDataFolder(initialised, dataDir)
  const embedded = url ? undefined : await openEmbedded({ dataDir })
  const server = embedded?.superuserAddress ?? addressOf(new URL(url as string))
  const template = `lethe_template_${process.pid}`
  const { client, end } = await connectOne(server)
  // Whatever is lost with this server is of no use without it.
  if (embedded) {
    await client.query('alter system set synchronous_commit = off')
    await client.query("alter system set max_wal_size = '256MB'")
    await client.query('select pg_reload_conf()')
  }
  const servers = await serversOf(server)
  await createDatabase(servers, template)
  await joinNodes(servers, template)
  await migrate({ ...server, database: template })
  if (servers.length > 1) {
    await migrate({ ...server, database: template }, 'keys')
    await distribute({ ...server, database: template })
  }
  project.provide('postgres', { ...server, database: template })
  const s3Servers = await startS3Servers()
  project.provide('s3Servers', s3Servers.url)
  project.provide('servers', servers)
  project.provide('command', await bundling)
  return async () => {
    await s3Servers.stop()
    await dropDatabase(servers, template)
    await end()
    await embedded?.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const roomyBytes = 4e9

/** In memory where there is room: the disk is what most tests would wait for. */
function fastFolder(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > roomyBytes ? '/dev/shm' : tmpdir()
  } catch {
    return tmpdir()
  }
}

function addressOf(url: URL): DbAddress {
  return {
    host: url.searchParams.get('host') ?? url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    database: url.pathname.slice(1),
    ...(url.password && { password: decodeURIComponent(url.password) }),
  }
}
