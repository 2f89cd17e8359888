import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  lstatSync,
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
import { type Account, accountFor, isRoot, namedAccount } from './account.ts'
import { EmbeddedError } from './embedded-error.ts'
import { findPrograms } from './programs.ts'
import {
  createDatabaseSql,
  newSecret,
  rolesSql,
  superuser,
  writeAuthentication,
  writeSecret,
} from './roles.ts'
import { run } from './run.ts'

/** The files of a database server, and what is needed to run it. */
export interface Cluster {
  /** The data folder. */
  home: string
  /** `<data folder>/postgres`. It contains the server's socket too. */
  folder: string
  /** The server's own log: its starts and stops, and their errors. */
  log: string
  bin: string
  account: Account | undefined
}

/**
 * What a data folder without a cluster may contain: blobs and keys restored from a backup, a
 * database that was moved aside, and what a killed start leaves.
 */
const ownNames = /^(postgres(\..+)?|programs|blobs|keys|verify-.+|lost\+found)$/
const startOfUnfinished = 'postgres.new-'

/**
 * Finds the cluster of a data folder, or creates it. `programs` is a folder with `bin/postgres`,
 * for a cluster of another version than ours.
 */
export async function prepareCluster(dataDir: string, programs?: string): Promise<Cluster> {
  refuseUnsupportedSystems()
  const home = await forFolder(dataDir, () => openHome(resolve(dataDir)))
  const folder = join(home, 'postgres')
  if (!existsSync(folder)) await forFolder(home, () => finishSwitch(home))
  const account = accountFor(folder)
  refuseFolderOfOther(folder)
  const { bin, major } = await findPrograms(account, home, programs)
  const cluster = { home, folder, log: join(home, 'postgres.log'), bin, account }
  if (!isCluster(folder)) await forFolder(home, () => initialise(cluster, home))
  refuseOtherVersion(folder, major)
  removeUnfinished(home)
  return cluster
}

/** The -D argument of PostgreSQL, which runs with the cluster as its working directory. */
export function folderArgument({ folder, account }: Cluster): string {
  // Another account may not be able to reach the folder by its path. It can through the working
  // directory, which root has entered, without opening any folder above.
  return account ? '/proc/self/cwd' : folder
}

function refuseUnsupportedSystems(): void {
  if (process.platform === 'win32') {
    throw new EmbeddedError(
      'The embedded PostgreSQL does not run on Windows: set DATABASE_URL to your own PostgreSQL.',
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
      `The data folder ${home} holds other files ("${foreign}") and no data of Lethe:` +
        ' set DATA_DIR to a new or empty folder.',
    )
  }
  // On a prepared volume the folder may belong to another user; postgres/ is private anyway.
  if (statSync(home).uid === process.getuid?.()) chmodSync(home, 0o700)
  return realpathSync(home)
}

function refuseFolderOfOther(folder: string): void {
  if (isRoot() || !existsSync(folder)) return
  const { uid } = statSync(folder)
  const own = process.getuid?.()
  if (uid === own) return
  throw new EmbeddedError(
    `The database in ${folder} belongs to another user (id ${uid}; Lethe runs as ${own}):` +
      ' start Lethe as that user or as root.',
  )
}

/** Whether this data folder has a database already. */
export function hasCluster(dataDir: string): boolean {
  return isCluster(join(resolve(dataDir), 'postgres'))
}

function isCluster(folder: string): boolean {
  return existsSync(join(folder, 'PG_VERSION'))
}

/**
 * Creates the cluster under a temporary name and renames it when it is complete: what a killed
 * start leaves is never taken for a database, and of two concurrent starts the slower one uses the
 * other's.
 */
async function initialise(cluster: Cluster, home: string): Promise<void> {
  const { folder, account } = cluster
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new EmbeddedError(`${folder} holds no database, but is not empty: move it away.`)
  }
  const fresh = mkdtempSync(join(home, startOfUnfinished))
  try {
    // Unlike the server, these programs look up the name of their user.
    const maker = account && namedAccount()
    if (maker) lchownSync(fresh, maker.uid, maker.gid)
    await initdb({ ...cluster, folder: fresh, account: maker })
    if (account) giveTo(fresh, account)
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
    // Nobody can connect before the start, and the roles get passwords below.
    ...['--auth-local', 'trust', '--auth-host', 'reject'],
    ...Object.entries(firstSettings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const program = join(bin, 'initdb')
  let made = await run({ program, args: args('C.UTF-8'), folder, account })
  if (!made.ok && made.complaint.includes('invalid locale name')) {
    // Old systems lack it. Only the trigrams of pg_trgm do not use the built-in locale.
    made = await run({ program, args: args('C'), folder, account })
  }
  if (!made.ok) throw initdbError(made.complaint, folder)
  const secret = newSecret()
  const created = await run({
    program: join(bin, 'postgres'),
    args: ['--single', '-j', '-D', at, '-c', 'log_checkpoints=off', 'template1'],
    input: [...rolesSql(secret), createDatabaseSql].map((one) => `${one};\n\n`).join(''),
    folder,
    account,
  })
  // In this mode PostgreSQL exits with 0 even if a statement failed.
  const failed = !created.ok || /ERROR|FATAL|PANIC/.test(created.complaint)
  if (failed) throw initdbError(created.complaint, folder)
  writeSecret(folder, secret)
  writeAuthentication(folder)
}

/** Changes the owner of a new cluster, except of the secret of its roles. */
function giveTo(folder: string, { uid, gid }: Account): void {
  const own = process.getuid?.()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (lstatSync(path).uid !== own) lchownSync(path, uid, gid)
  }
  lchownSync(folder, uid, gid)
}

/** Initial settings, for a machine with two cores. Operators may change them in postgresql.conf. */
const firstSettings = {
  max_connections: 100,
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '8MB',
  maintenance_work_mem: '128MB',
  max_wal_size: '1GB',
  random_page_cost: 1.1,
  jit: 'off',
  // Parallel workers share memory through /dev/shm, and a container has 64 MB of it.
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
        ' add one, or set DATABASE_URL to your own PostgreSQL.',
    )
  }
  const lines = complaint.split('\n')
  const reason = lines.find((line) => /error|fatal|panic/i.test(line)) ?? lines[0]
  return new EmbeddedError(`The database could not be created: ${reason}`)
}

function refuseOtherVersion(folder: string, major: string): void {
  const version = versionOf(folder)
  if (version === major) return
  const what = `The database in ${folder} was created by PostgreSQL ${version}, but this version of Lethe comes with ${major}:`
  throw new EmbeddedError(
    Number(version) < Number(major)
      ? `${what} run \`lethe upgrade-database\`, which keeps the old one.`
      : `${what} use the version of Lethe that last used it.`,
  )
}

/** The major version of PostgreSQL that created a cluster, such as `18`. */
function versionOf(folder: string): string {
  return readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
}

/** The same for a data folder; undefined if it has no cluster. */
export function clusterVersion(dataDir: string): string | undefined {
  return hasCluster(dataDir) ? versionOf(join(resolve(dataDir), 'postgres')) : undefined
}

/** The data folders of a cluster that is being filled, and of one that is complete. */
export const upgradeNames = { unfinished: 'postgres.upgrade', complete: 'postgres.upgraded' }

/**
 * Replaces the cluster by that of `postgres.upgraded`, which must be complete and stopped. If this
 * is interrupted, the next start finishes it. Returns where the old cluster is kept.
 */
export function switchClusters(dataDir: string): string {
  const home = resolve(dataDir)
  const kept = keptName(home, versionOf(join(home, 'postgres')))
  renameSync(join(home, 'postgres'), kept)
  syncFolder(home)
  finishSwitch(home)
  return kept
}

function keptName(home: string, version: string): string {
  for (let n = 1; ; n++) {
    const name = join(home, `postgres.old-${version}${n > 1 ? `-${n}` : ''}`)
    if (!existsSync(name)) return name
  }
}

/** Gives the new cluster its name, once the old one has been renamed. */
function finishSwitch(home: string): void {
  const complete = join(home, upgradeNames.complete)
  if (!isCluster(join(complete, 'postgres'))) return
  renameSync(join(complete, 'postgres'), join(home, 'postgres'))
  syncFolder(home)
  rmSync(complete, { recursive: true, force: true })
}

/** Removes unfinished clusters. A process that is still creating one finds that it is too late. */
function removeUnfinished(home: string): void {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(startOfUnfinished)) continue
    try {
      rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Its process may still be writing to it; that, or the next start, removes the rest.
    }
  }
}

/** Makes new names in a folder survive a machine crash. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** Explains a file system error in terms of the data folder. */
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
      return `The data folder ${folder} is on a read-only file system`
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
