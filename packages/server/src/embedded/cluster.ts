import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Account, accountFor, isRoot } from './account.ts'
import { EmbeddedError } from './embedded-error.ts'
import { findPrograms } from './programs.ts'
import { run } from './run.ts'

/** The files of one database server, and what it takes to run it. */
export interface Cluster {
  /** `<data folder>/postgres`; the server's socket lies in it too. */
  folder: string
  /** What the server itself writes: its starts and stops, and what went wrong with them. */
  log: string
  bin: string
  account: Account | undefined
}

export const superuser = 'lethe'
export const database = 'lethe'

/**
 * What may lie in a data folder that has no cluster yet: blobs and keys brought back from a
 * backup, and what a start leaves that was killed.
 */
const ownNames = /^(postgres|postgres\.(new-.+|log(\.old)?)|programs|blobs|keys|lost\+found)$/
const startOfUnfinished = 'postgres.new-'

/** Finds the cluster of a data folder, and makes it if there is none. */
export async function prepareCluster(dataDir: string): Promise<Cluster> {
  refuseUnsupportedSystems()
  const home = await forFolder(dataDir, () => openHome(resolve(dataDir)))
  const folder = join(home, 'postgres')
  const account = accountFor(folder)
  refuseFolderOfOther(folder)
  const { bin, major } = await findPrograms(account, home)
  const cluster = { folder, log: join(home, 'postgres.log'), bin, account }
  if (!isCluster(folder)) await forFolder(home, () => initialise(cluster, home))
  refuseOtherVersion(folder, major)
  removeUnfinished(home)
  return cluster
}

/** How PostgreSQL is told where its cluster is; it runs with that folder as its working directory. */
export function folderArgument({ folder, account }: Cluster): string {
  // Another user than us may not be able to reach the folder by its path. Through the working
  // directory, which was entered by root, it can, and no folder above needs to be opened to it.
  return account ? '/proc/self/cwd' : folder
}

function refuseUnsupportedSystems(): void {
  if (process.platform === 'win32') {
    throw new EmbeddedError(
      'The built-in PostgreSQL does not run on Windows: set DATABASE_URL to a PostgreSQL of your own.',
    )
  }
  if (isRoot() && process.platform !== 'linux') {
    throw new EmbeddedError(
      'PostgreSQL does not run as root: start Lethe as an ordinary user, or set DATABASE_URL.',
    )
  }
}

function openHome(home: string): string {
  if (!existsSync(home)) {
    mkdirSync(dirname(home), { recursive: true })
    mkdirSync(home, { recursive: true, mode: 0o700 })
    syncFolder(dirname(home))
  }
  const names = readdirSync(home)
  const foreign = names.find((name) => !ownNames.test(name))
  if (foreign !== undefined && !names.includes('postgres')) {
    throw new EmbeddedError(
      `The data folder ${home} holds other things ("${foreign}") and no data of Lethe:` +
        ' set DATA_DIR to a new or empty folder.',
    )
  }
  // On a volume that was prepared for us the folder may be another user's; postgres/ is closed anyway.
  if (statSync(home).uid === process.getuid?.()) chmodSync(home, 0o700)
  return realpathSync(home)
}

function refuseFolderOfOther(folder: string): void {
  if (isRoot() || !existsSync(folder)) return
  const { uid } = statSync(folder)
  const own = process.getuid?.()
  if (uid === own) return
  throw new EmbeddedError(
    `The database in ${folder} belongs to another user (id ${uid}, and this is ${own}):` +
      ' start Lethe as that user or as root.',
  )
}

function isCluster(folder: string): boolean {
  return existsSync(join(folder, 'PG_VERSION'))
}

/**
 * Makes the cluster under another name and gives it its own when it is whole: what a killed start
 * leaves is never taken for a database, and of two that start at once the slower uses the other's.
 */
async function initialise(cluster: Cluster, home: string): Promise<void> {
  const { folder, account } = cluster
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new EmbeddedError(`${folder} holds no database, but is not empty: move it away.`)
  }
  const fresh = mkdtempSync(join(home, startOfUnfinished))
  try {
    if (account) lchownSync(fresh, account.uid, account.gid)
    await initdb({ ...cluster, folder: fresh })
    renameSync(fresh, folder)
    syncFolder(home)
  } catch (error) {
    if (!isCluster(folder)) throw error
  } finally {
    rmSync(fresh, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function initdb(cluster: Cluster): Promise<void> {
  const { folder, bin, account } = cluster
  const at = folderArgument(cluster)
  const args = (ctype: string) => [
    ...['-D', at, '--username', superuser, '--encoding', 'UTF8', '--no-instructions'],
    ...['--locale-provider', 'builtin', '--builtin-locale', 'PG_UNICODE_FAST'],
    ...['--locale', 'C', '--lc-ctype', ctype],
    // The socket lies in a folder of mode 0700, so whoever reaches it could read the files as well.
    ...['--auth-local', 'trust', '--auth-host', 'reject'],
    ...Object.entries(firstSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const program = join(bin, 'initdb')
  let made = await run({ program, args: args('C.UTF-8'), folder, account })
  if (!made.ok && made.complaint.includes('invalid locale name')) {
    // Old systems do not have it. All but the trigrams of pg_trgm goes by the built-in locale.
    made = await run({ program, args: args('C'), folder, account })
  }
  if (!made.ok) throw initdbError(made.complaint, folder)
  const created = await run({
    program: join(bin, 'postgres'),
    args: ['--single', '-D', at, '-c', 'log_checkpoints=off', 'template1'],
    input: `create database ${database}\n`,
    folder,
    account,
  })
  // In this mode PostgreSQL ends with 0 also after a statement that failed.
  const failed = !created.ok || /ERROR|FATAL|PANIC/.test(created.complaint)
  if (failed) throw initdbError(created.complaint, folder)
}

/** What an operator may change afterwards, in postgresql.conf; for a machine of two cores. */
const firstSettings = {
  max_connections: 100,
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '8MB',
  maintenance_work_mem: '128MB',
  max_wal_size: '1GB',
  random_page_cost: 1.1,
  jit: 'off',
  // Parallel workers share memory through /dev/shm, of which a container has 64 MB.
  max_parallel_workers_per_gather: 0,
  max_parallel_maintenance_workers: 0,
  timezone: 'UTC',
  log_timezone: 'UTC',
}

function initdbError(complaint: string, folder: string): EmbeddedError {
  if (complaint.includes('No space left on device')) {
    return new EmbeddedError(diskIsFull(dirname(folder)))
  }
  if (complaint.includes('could not look up effective user ID')) {
    return new EmbeddedError(
      `PostgreSQL needs an entry in /etc/passwd for the user it runs as (${process.getuid?.()}):` +
        ' add one, or set DATABASE_URL to a PostgreSQL of your own.',
    )
  }
  const lines = complaint.split('\n')
  const reason = lines.find((line) => /error|fatal|panic/i.test(line)) ?? lines[0]
  return new EmbeddedError(`The database could not be created: ${reason}`)
}

function refuseOtherVersion(folder: string, major: string): void {
  const version = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
  if (version === major) return
  throw new EmbeddedError(
    `The database in ${folder} was made by PostgreSQL ${version}, and this Lethe comes with ${major}:` +
      ' start it with the Lethe that made it, dump it there and load it here.',
  )
}

/** As the cluster is there, whoever is still making one will find that it came too late. */
function removeUnfinished(home: string): void {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(startOfUnfinished)) continue
    try {
      rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Its maker may still be writing in it; it, or the next start, removes the rest.
    }
  }
}

/** Makes new names in a folder survive a crash of the machine. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** Says what an error of the file system means for the data folder. */
async function forFolder<T>(folder: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === undefined || error instanceof EmbeddedError) throw error
    throw new EmbeddedError(`${meaningOf(code, folder)} (${code}).`, { cause: error })
  }
}

function diskIsFull(folder: string): string {
  return `The disk of ${folder} is full; a new database takes 100 MB`
}

function meaningOf(code: string, folder: string): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `The data folder ${folder} cannot be read and written by this user`
    case 'EROFS':
      return `The data folder ${folder} is on a file system that is read-only`
    case 'ENOTDIR':
    case 'EEXIST':
      return `The data folder ${folder} is not a folder`
    case 'ENOSPC':
    case 'EDQUOT':
      return diskIsFull(folder)
    default:
      return `The data folder ${folder} cannot be used`
  }
}
