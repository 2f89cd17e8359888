import { setTimeout as sleep } from 'node:timers/promises'
import type { PurgeStatement } from '@lethe/contract/receipt.ts'
import { readNodes } from '../distribute.ts'
import { DatabaseRefused } from '../migrate.ts'
import { connectOne, type Db, type DbAddress, type Sql } from '../sql.ts'
import {
  claimPurge,
  endPurge,
  holdPurge,
  isPurgeDue,
  isPurgeTime,
  listUnsigned,
  notePart,
  notePurged,
  noteStatements,
  type Purge,
} from './purge-store.ts'
import { hashOfReceipt, purgeMediaType, type Signer, signStatement } from './receipts.ts'

/*
 * A deleted row stays in PostgreSQL's files until its space is reused. A purge rewrites each table
 * (VACUUM FULL), then the planner's statistics, then enough of the write-ahead log (WAL) that its
 * older files are gone. Each completed part is recorded, so that an interrupted purge can continue.
 */

export interface PurgedDatabase {
  name: 'main' | 'keys'
  connection: DbAddress
  /** A role that may switch WAL files, if that of `connection` may not. */
  logConnection?: DbAddress
}

export interface PurgeOptions {
  db: Db
  databases: readonly PurgedDatabase[]
  signer: Signer
  signal?: AbortSignal
  /** How long to wait for a lock. */
  lockMilliseconds?: number
  pauseMilliseconds?: number
  /** Called with each part before it is purged. */
  onPart?: (part: string) => void
}

/** Why a part could not be purged. */
export type PurgeObstacle =
  | 'locked'
  | 'no_right'
  | 'disk_full'
  | 'old_transaction'
  | 'replication_slot'
  | 'log_kept'

export interface PurgeOutcome {
  /** Jobs whose persons are in no file since `purgedAt`. */
  jobs: number
  purgedAt: string | null
  left: { part: string; code: PurgeObstacle }[]
}

const triesAPart = 5

/** Another process is purging. */
export class PurgeClaimed extends Error {
  override readonly name = 'PurgeClaimed'
}

/** Continues an unfinished purge, or starts one if jobs wait for it. Throws `PurgeClaimed`. */
export async function purge(options: PurgeOptions): Promise<PurgeOutcome> {
  const { db, databases } = options
  if ((await readNodes(db.sql)) !== undefined) {
    throw new DatabaseRefused(
      'The purge does not work on Citus, because it cannot check the files of the nodes. See docs/scaling.md.',
    )
  }
  const claimed = await claimPurge(db.sql)
  if (claimed === 'claimed') throw new PurgeClaimed('Another process is purging.')
  if (!claimed) return { jobs: 0, purgedAt: null, left: [] }
  const left: PurgeOutcome['left'] = []
  try {
    for (const database of databases)
      left.push(...(await purgeDatabase(options, claimed, database)))
    if (left.length > 0) return { jobs: 0, purgedAt: null, left }
    const purgedAt = await notePurged(db.sql, claimed)
    const jobs = await signAll(options, claimed, purgedAt)
    await endPurge(db.sql, claimed)
    return { jobs, purgedAt, left }
  } finally {
    await holdPurge(db.sql, claimed, false)
  }
}

interface Session {
  sql: Sql
  /** Runs VACUUM and returns the codes of its warnings: if it lacks a right, it only warns. */
  vacuum(table: string): Promise<string[]>
}

async function purgeDatabase(
  options: PurgeOptions,
  purge: Purge,
  { name, connection, logConnection = connection }: PurgedDatabase,
): Promise<PurgeOutcome['left']> {
  const left: PurgeOutcome['left'] = []
  const attempt = async (what: string, work: () => Promise<PurgeObstacle | undefined>) => {
    const part = `${name}/${what}`
    if (purge.done.includes(part)) return
    options.signal?.throwIfAborted()
    options.onPart?.(part)
    await holdPurge(options.db.sql, purge, true)
    const code = await tryOften(options, work)
    if (code) left.push({ part, code })
    else if (what !== 'canary') await notePart(options.db.sql, purge, part)
  }
  await withSession(options, connection, async ({ sql, vacuum }) => {
    // Not recorded as done: later there may be another old transaction.
    await attempt('canary', oldTransactions(sql, vacuum))
    if (left.length > 0) return
    for (const table of await listTables(sql)) {
      await attempt(table, async () => obstacleOf(await vacuum(table)))
    }
    if (left.length > 0) return
    const ended = oldTransactions(sql, vacuum)
    await attempt('statistics', async () => (await ended()) ?? purgeStatistics(sql, vacuum))
  })
  if (left.length > 0) return left
  await withSession(options, logConnection, ({ sql }) => attempt('log', () => purgeLog(sql)))
  return left
}

async function tryOften(
  { signal, pauseMilliseconds = 5_000 }: PurgeOptions,
  work: () => Promise<PurgeObstacle | undefined>,
): Promise<PurgeObstacle | undefined> {
  let obstacle: PurgeObstacle | undefined
  for (let round = 1; round <= triesAPart; round++) {
    if (round > 1) await sleep(pauseMilliseconds, undefined, { signal })
    try {
      obstacle = await work()
    } catch (error) {
      obstacle = obstacleOf([(error as { code?: string }).code ?? ''])
      if (!obstacle) throw error
    }
    if (obstacle === undefined || obstacle === 'no_right') return obstacle
  }
  return obstacle
}

function obstacleOf(codes: readonly string[]): PurgeObstacle | undefined {
  // VACUUM warns of a missing right with the generic code of a warning.
  if (codes.includes('42501') || codes.includes('01000')) return 'no_right'
  if (codes.includes('55P03')) return 'locked'
  if (codes.includes('53100')) return 'disk_full'
  return undefined
}

async function withSession(
  { signal, lockMilliseconds = 2_000 }: PurgeOptions,
  connection: DbAddress,
  work: (session: Session) => Promise<void>,
): Promise<void> {
  const { sql, client, end } = await connectOne(connection)
  let warnings: string[] = []
  client.on('notice', ({ code = '' }) => warnings.push(code))
  // Settings do not last through a pooler, so tables in use are skipped there.
  const how = connection.pooler ? 'full, analyze, skip_locked' : 'full, analyze'
  // Does not wait until a large table is copied: PostgreSQL discards an incomplete copy.
  const stop = () => void end().catch(() => {})
  signal?.addEventListener('abort', stop)
  try {
    if (!connection.pooler) {
      await client.query(`set lock_timeout = ${lockMilliseconds}`)
      await client.query('set statement_timeout = 0')
    }
    await work({
      sql,
      async vacuum(table) {
        warnings = []
        await client.query(`vacuum (${how}) ${table}`)
        return warnings
      },
    })
  } finally {
    signal?.removeEventListener('abort', stop)
    await end()
  }
}

/**
 * A transaction that began before a row was deleted keeps it in the files, and so does one that
 * writes to another database of the server. If a row that is deleted now is gone after VACUUM FULL,
 * so is everything deleted before.
 */
function oldTransactions(sql: Sql, vacuum: Session['vacuum']) {
  // Deleted once and waited for: on a busy server some transaction is always older than a new row.
  let isDeleted = false
  return async (): Promise<PurgeObstacle | undefined> => {
    if (!isDeleted) {
      await sql`insert into purge_canary (id) values (1)`
      await sql`delete from purge_canary`
      isDeleted = true
    }
    const obstacle = obstacleOf(await vacuum('purge_canary'))
    if (obstacle) return obstacle
    const [canary] = await sql<{ bytes: number }>`
      select pg_relation_size('purge_canary')::float8 as bytes`
    return canary?.bytes === 0 ? undefined : 'old_transaction'
  }
}

/** Our tables, smallest first. */
async function listTables(sql: Sql): Promise<string[]> {
  const tables = await sql<{ name: string }>`
    select format('%I.%I', n.nspname, c.relname) as name
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and c.relpersistence = 'p' and n.nspname in ('public', 'auth')
      -- Others may have tables here too.
      and c.relowner = (select relowner from pg_class where oid = 'purge_canary'::regclass)
    order by pg_total_relation_size(c.oid), name`
  return tables.map(({ name }) => name)
}

/**
 * Statistics contain sample values, and ANALYZE leaves those it replaces as old rows. A slot of
 * logical replication keeps old rows of catalogs.
 */
async function purgeStatistics(
  sql: Sql,
  vacuum: Session['vacuum'],
): Promise<PurgeObstacle | undefined> {
  const [found] = await sql<{ isOwner: boolean; isHeld: boolean }>`
    select pg_has_role(datdba, 'usage') as "isOwner", exists (
      select from pg_replication_slots
      where age(catalog_xmin) > age(pg_current_xact_id()::xid)
    ) as "isHeld"
    from pg_database
    where datname = current_database()`
  if (!found?.isOwner) return 'no_right'
  if (found.isHeld) return 'replication_slot'
  const codes = await vacuum('pg_catalog.pg_statistic')
  return obstacleOf([...codes, ...(await vacuum('pg_catalog.pg_statistic_ext_data'))])
}

/**
 * Switches WAL files until the older ones, and those kept for reuse, are overwritten or gone. Each
 * switch fills the rest of a file with zeros.
 */
async function purgeLog(sql: Sql): Promise<PurgeObstacle | undefined> {
  const [last] = await sql<{ file: string }>`
    select pg_walfile_name(pg_current_wal_insert_lsn()) as file`
  const switchFiles = async (count: number) => {
    for (let index = 0; index < count; index++) {
      await sql`select pg_logical_emit_message(false, 'lethe', '')`
      await sql`select pg_switch_wal()`
    }
  }
  // The checkpoint renames files for reuse that are no longer needed, with the current one.
  await switchFiles(1)
  await sql`checkpoint`
  const [found] = await sql<{ files: number }>`
    select count(*)::integer as files from pg_ls_waldir()`
  await switchFiles((found?.files ?? 0) + 1)
  await sql`checkpoint`
  const [old] = await sql<{ isKept: boolean }>`
    select exists (
      select from pg_ls_waldir()
      where name ~ '^[0-9A-F]{24}$' and substr(name, 9) <= substr(${last?.file}::text, 9)
    ) as "isKept"`
  return old?.isKept ? 'log_kept' : undefined
}

/** Signs the statements of the purge's jobs. Returns how many there were. */
async function signAll({ db, signer }: PurgeOptions, purge: Purge, purgedAt: string) {
  let count = 0
  for (;;) {
    const jobs = await listUnsigned(db.sql, purge)
    if (jobs.length === 0) return count
    const signed = await Promise.all(
      jobs.map(async ({ projectId, jobId, receipt }) => {
        const receiptHash = hashOfReceipt(receipt)
        const statement: PurgeStatement = { version: 1, jobId, projectId, receiptHash, purgedAt }
        return { projectId, jobId, jws: await signStatement(signer, statement, purgeMediaType) }
      }),
    )
    await noteStatements(db.sql, purge, purgedAt, signed)
    count += signed.length
  }
}

/** How long after its time of day a purge may start or continue. */
const nightHours = 4

/** Purges if it is time for it. Called at intervals. */
export async function purgeAt(
  minuteOfDay: number,
  options: PurgeOptions,
): Promise<PurgeOutcome | undefined> {
  const { sql } = options.db
  if (!(await isPurgeTime(sql, minuteOfDay, nightHours)) || !(await isPurgeDue(sql)))
    return undefined
  try {
    return await purge(options)
  } catch (error) {
    if (error instanceof PurgeClaimed) return undefined
    throw error
  }
}
