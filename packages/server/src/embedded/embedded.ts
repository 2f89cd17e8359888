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
  giveDatabaseSql,
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
   * For connections of this process, and of those it starts, until `close`: as a role that owns its
   * database and is no superuser.
   */
  address: DbAddress
  /** For the tests and repairs, which make databases and look into statistics. */
  superuserAddress: DbAddress
  /** Call it when all other connections are closed. Stops the database if nobody else uses it. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  /** Told when the database went away while it was used and could not be brought back yet. */
  onFault?: (error: Error) => void
  /** Gives a start up: nothing of it is left running. */
  signal?: AbortSignal
  /** A folder with `bin/postgres`, to run a database of another version than ours. */
  programs?: string
}

/** The longest wait for a server that gives no sign of life, and for one that does. */
const silenceSeconds = 60
const recoverySeconds = 600
const claimSeconds = 2
const statementSeconds = 5

/**
 * Starts the database of a data folder, or joins the one that runs there already, whichever process started
 * it; after a crash it recovers. Should it go away later, it is brought back.
 * @throws {EmbeddedError} for what an operator can mend.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { dataDir, onFault, signal, programs } = options
  const cluster = await prepareCluster(dataDir, programs)
  const { host, release } = socketFolder(cluster.folder)
  const use = await useServer(cluster)
  try {
    if (!hasSecret(cluster.folder)) await makeRoles(cluster, host, signal)
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

/** Makes the roles in a cluster of an older Lethe, or one whose secret was lost. */
async function makeRoles(cluster: Cluster, host: string, signal?: AbortSignal): Promise<void> {
  const { folder } = cluster
  const setAuthentication = (isOpen: boolean) => {
    writeAuthentication(folder, isOpen)
    const pid = postmasterOf(folder)
    if (pid !== undefined) process.kill(pid, 'SIGHUP')
  }
  setAuthentication(true)
  // Another process may create the roles first and close the open access: then we sign in with its secret.
  const address = () =>
    hasSecret(folder)
      ? addressesOf(folder, host).superuser
      : { host, port: 5432, user: superuser, database }
  const session = await joinServer(cluster, address, signal)
  try {
    await session.sql`select pg_advisory_lock(${lock.class}, ${lock.roles})`
    if (hasSecret(folder)) return
    if (!(await takeServiceLock(session))) {
      throw new EmbeddedError('An older Lethe is running on this data folder: stop it first.')
    }
    const secret = newSecret()
    for (const statement of [...rolesSql(secret), giveDatabaseSql]) {
      await session.client.query(statement)
    }
    writeSecret(folder, secret)
  } finally {
    if (hasSecret(folder)) setAuthentication(false)
    await session.end()
  }
}

/**
 * Makes this process the service of an embedded database, until `release` or its end.
 * @throws {EmbeddedError} if another process is it, and still is after 2 s.
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
 * Throws `EmbeddedError` where others than this process, which uses it once, use the database, and
 * still do after 2 s: one that was killed does until PostgreSQL has noticed.
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

/** A service that was killed holds its lock until PostgreSQL has noticed. */
async function takeServiceLock({ sql }: Session): Promise<boolean> {
  for (const end = Date.now() + claimSeconds * 1_000; ; await sleep(50)) {
    const rows = await sql<{ taken: boolean }>`
      select pg_try_advisory_lock(${lock.class}, ${lock.service}) as "taken"`
    if (rows[0]?.taken) return true
    if (Date.now() > end) return false
  }
}

/** The folder of the server's socket, under a name that is not too long for a socket's address. */
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

/** Starts the server if need be, and returns the session that makes us a user of it. */
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
    const answer = await tryToJoin(addressNow())
    if (typeof answer === 'object') return answer
    const now = Date.now()
    if (answer === 'later') heard = now
    if (now - heard > silenceSeconds * 1_000 || now - begin > recoverySeconds * 1_000) {
      throw silence(cluster, failure)
    }
    if (start && !start.goesOn()) {
      failure = start.failure()
      refuseFailure(failure, cluster)
      start = undefined
      // A start that lost to another one, or to the last children of a killed server.
      await sleep(100)
    }
    if (!start && postmasterOf(cluster.folder) === undefined) start = startPostmaster(cluster)
    await sleep(Math.min(20 + (now - begin) / 10, 200))
  }
}

/** `later`: the server starts or stops. `silent`: there is none, as far as can be seen. */
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
    const isAnswer = code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')
    if (isAnswer) {
      throw new EmbeddedError(`The embedded database rejected the connection (SQLSTATE ${code}).`, {
        cause: error,
      })
    }
    return 'silent'
  }
}

/** Throws unless the start ended for a reason that passes. */
function refuseFailure(failure: string | undefined, { folder, log }: Cluster): void {
  if (failure === undefined) return
  if (/lock file .* already exists|pre-existing shared memory block/.test(failure)) return
  if (failure.includes('No space left on device')) {
    throw new EmbeddedError(`The disk of ${folder} is full: the database cannot start.`)
  }
  throw new EmbeddedError(`PostgreSQL does not start: ${failure} (see ${log}).`)
}

function silence({ folder, log }: Cluster, failure = 'it gives no answer'): EmbeddedError {
  const pid = postmasterOf(folder)
  const who =
    pid === undefined ? 'PostgreSQL does not start' : `PostgreSQL (process ${pid}) does not respond`
  return new EmbeddedError(`${who} in ${folder}: ${failure} (see ${log}).`)
}

/** Stops the server when nobody else uses it; a process that comes while it stops waits, and starts it. */
async function leaveServer({ sql }: Session, folder: string): Promise<void> {
  try {
    await sql`select pg_advisory_unlock_shared(${lock.class}, ${lock.user})`
    const rows = await sql<{ last: boolean }>`
      select pg_try_advisory_lock(${lock.class}, ${lock.user}) as "last"`
    if (rows[0]?.last) await stopPostmaster(folder)
  } catch (error) {
    // Anything else means that it went away by itself.
    if (error instanceof EmbeddedError) throw error
  }
}
