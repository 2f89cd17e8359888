import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectOne, type DbAddress } from '../sql.ts'
import { type Cluster, prepareCluster } from './cluster.ts'
import { EmbeddedError } from './embedded-error.ts'
import { postmasterOf, type Start, startPostmaster, stopPostmaster } from './postmaster.ts'
import {
  addressesOf,
  database,
  hasSecret,
  newSecret,
  rolesSql,
  superuser,
  writeAuthentication,
  writeSecret,
} from './roles.ts'
import { keepSession, lock, type Session } from './session.ts'
import { useServer, waitForUnused } from './watcher.ts'

export { EmbeddedError }

export interface EmbeddedDatabase {
  /**
   * For connections of this process and its children, until `close`. The role owns its database and
   * is no superuser.
   */
  address: DbAddress
  /** For tests and repairs, which create databases and read statistics. */
  superuserAddress: DbAddress
  /** Call it after all other connections are closed. Stops the database if nobody else uses it. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  /** Called when the database was lost while in use and could not be restarted yet. */
  onFault?: (error: Error) => void
  /** Aborts a start and leaves nothing of it running. */
  signal?: AbortSignal
  /** A folder with `bin/postgres`, for a database of another version than ours. */
  programs?: string
}

/** The longest wait for a server that does not respond at all, and for one that does. */
const silenceSeconds = 60
const recoverySeconds = 600
const claimSeconds = 2
const statementSeconds = 5

/**
 * Starts the database of a data folder, or joins it if any process has started it. It recovers
 * after a crash, and is restarted if it is lost later.
 * @throws {EmbeddedError} for problems that an operator can fix.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { dataDir, onFault, signal, programs } = options
  const cluster = await prepareCluster(dataDir, programs)
  const { host, release } = socketFolder(cluster.folder)
  const use = await useServer(cluster)
  try {
    if (!hasSecret(cluster.folder)) await renewSecret(cluster, host, signal)
    const addresses = addressesOf(cluster.folder, host)
    const address = addresses.service
    const joined = await keepSession(() => joinServer(cluster, () => address, signal), onFault)
    const close = async () => {
      await joined.end((session) => leaveServer(session, cluster.folder))
      use.release()
      release()
    }
    let closing: Promise<void> | undefined
    return {
      address,
      superuserAddress: addresses.superuser,
      close() {
        closing ??= close()
        return closing
      },
    }
  } catch (error) {
    use.release()
    await waitForUnused(cluster.folder)
    release()
    throw error
  }
}

/** Gives the roles new passwords if the secret was lost. */
async function renewSecret(cluster: Cluster, host: string, signal?: AbortSignal): Promise<void> {
  const { folder } = cluster
  const setAuthentication = (isOpen: boolean) => {
    writeAuthentication(folder, isOpen)
    const pid = postmasterOf(folder)
    if (pid !== undefined) process.kill(pid, 'SIGHUP')
  }
  setAuthentication(true)
  // Another process may do so first and close the open access; then its secret is used.
  const address = () =>
    hasSecret(folder)
      ? addressesOf(folder, host).superuser
      : { host, port: 5432, user: superuser, database }
  const session = await joinServer(cluster, address, signal)
  try {
    await session.sql`select pg_advisory_lock(${lock.class}, ${lock.roles})`
    if (hasSecret(folder)) return
    if (!(await takeServiceLock(session))) {
      throw new EmbeddedError(
        'A Lethe whose secret was lost is running on this data folder: stop it first.',
      )
    }
    const secret = newSecret()
    for (const statement of rolesSql(secret)) await session.client.query(statement)
    writeSecret(folder, secret)
  } finally {
    if (hasSecret(folder)) setAuthentication(false)
    await session.end()
  }
}

/**
 * Makes this process the service of an embedded database, until `release` or its end.
 * @throws {EmbeddedError} if another process is and still is after 2 s.
 */
export async function claimService(
  connection: string | DbAddress,
): Promise<{ release(): Promise<void> }> {
  const claim = await keepSession(async () => {
    const session = await connectOne(connection, statementSeconds)
    if (await takeServiceLock(session)) return session
    await session.end()
    throw new EmbeddedError(
      'Another Lethe service is running on this data folder: stop it, or set another DATA_DIR.',
    )
  })
  return { release: () => claim.end() }
}

/**
 * Throws `EmbeddedError` if anybody but this process uses the database and still does after 2 s: a
 * killed process counts until PostgreSQL notices.
 */
export async function refuseOtherUsers(connection: string | DbAddress): Promise<void> {
  const { sql, end } = await connectOne(connection, statementSeconds)
  try {
    for (const limit = Date.now() + claimSeconds * 1_000; ; await sleep(50)) {
      const [users] = await sql<{ count: number }>`
        select count(*)::integer as count from pg_locks
        where locktype = 'advisory' and classid = ${lock.class} and objid = ${lock.user}`
      if ((users?.count ?? 0) <= 1) return
      if (Date.now() > limit) {
        throw new EmbeddedError('The database is in use by another Lethe: stop it first.')
      }
    }
  } finally {
    await end()
  }
}

/** A killed service holds its lock until PostgreSQL notices. */
async function takeServiceLock({ sql }: Session): Promise<boolean> {
  for (const end = Date.now() + claimSeconds * 1_000; ; await sleep(50)) {
    const rows = await sql<{ taken: boolean }>`
      select pg_try_advisory_lock(${lock.class}, ${lock.service}) as "taken"`
    if (rows[0]?.taken) return true
    if (Date.now() > end) return false
  }
}

/** The folder of the server's socket, by a path that is short enough for a socket address. */
function socketFolder(folder: string): { host: string; release(): void } {
  const limitBytes = 103
  if (Buffer.byteLength(join(folder, '.s.PGSQL.5432')) <= limitBytes) {
    return { host: folder, release() {} }
  }
  if (process.platform !== 'linux') {
    throw new EmbeddedError(`The path of the data folder is too long for a socket: ${folder}`)
  }
  const handle = openSync(folder, 'r')
  return { host: `/proc/${process.pid}/fd/${handle}`, release: () => closeSync(handle) }
}

/** Starts the server if necessary, and returns the session that makes this process a user of it. */
async function joinServer(
  cluster: Cluster,
  addressNow: () => DbAddress,
  signal?: AbortSignal,
): Promise<Session> {
  const begin = Date.now()
  let heard = begin
  let start: Start | undefined
  let failure: string | undefined
  for (;;) {
    signal?.throwIfAborted()
    const joined = await tryToJoin(addressNow())
    if (typeof joined === 'object') return joined
    const now = Date.now()
    if (joined === 'later') heard = now
    if (now - heard > silenceSeconds * 1_000 || now - begin > recoverySeconds * 1_000) {
      throw silence(cluster, failure)
    }
    if (start && !start.isRunning()) {
      failure = start.failure()
      refuseFailure(failure, cluster)
      start = undefined
      // The start lost to another one, or to the last children of a killed server.
      await sleep(100)
    }
    if (!start && postmasterOf(cluster.folder) === undefined) start = startPostmaster(cluster)
    await sleep(Math.min(20 + (now - begin) / 10, 200))
  }
}

/** `later`: the server is starting or stopping. `silent`: there seems to be none. */
async function tryToJoin(address: DbAddress): Promise<Session | 'later' | 'silent'> {
  let session: Session | undefined
  try {
    session = await connectOne(address, statementSeconds)
    const rows = await session.sql<{ joined: boolean }>`
      select pg_try_advisory_lock_shared(${lock.class}, ${lock.user}) as "joined"`
    if (rows[0]?.joined) return session
    // Its last user is about to stop it.
    await session.end()
    return 'later'
  } catch (error) {
    await session?.end().catch(() => {})
    const { code } = error as { code?: string }
    const comesOrGoes = code?.startsWith('57P')
    if (comesOrGoes) return 'later'
    const isResponse = code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')
    if (isResponse) {
      throw new EmbeddedError(`The embedded database rejected the connection (SQLSTATE ${code}).`, {
        cause: error,
      })
    }
    return 'silent'
  }
}

/** Throws unless the start failed for a temporary reason. */
function refuseFailure(failure: string | undefined, { folder, log }: Cluster): void {
  if (failure === undefined) return
  if (/lock file .* already exists|pre-existing shared memory block/.test(failure)) return
  if (failure.includes('No space left on device')) {
    throw new EmbeddedError(`The disk of ${folder} is full: the database cannot start.`)
  }
  throw new EmbeddedError(`PostgreSQL does not start: ${failure} (see ${log}).`)
}

function silence({ folder, log }: Cluster, failure = 'it does not respond'): EmbeddedError {
  const pid = postmasterOf(folder)
  const who =
    pid === undefined ? 'PostgreSQL does not start' : `PostgreSQL (process ${pid}) does not respond`
  return new EmbeddedError(`${who} in ${folder}: ${failure} (see ${log}).`)
}

/** Stops the server if nobody else uses it. A process that joins meanwhile restarts it. */
async function leaveServer({ sql }: Session, folder: string): Promise<void> {
  try {
    await sql`select pg_advisory_unlock_shared(${lock.class}, ${lock.user})`
    const rows = await sql<{ last: boolean }>`
      select pg_try_advisory_lock(${lock.class}, ${lock.user}) as "last"`
    if (rows[0]?.last) await stopPostmaster(folder)
  } catch (error) {
    // Any other error means that the server is already gone.
    if (error instanceof EmbeddedError) throw error
  }
}
