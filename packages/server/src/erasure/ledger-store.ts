import type { Sql } from '../sql.ts'
import type { LedgerPlace } from './ledger.ts'

/* What the database knows about the ledger. */

export interface LedgerState {
  lastNumber: number
  comparedTo: number
  /** The number of the newest completed erasure that must have an entry; null if there is none. */
  newestCompleted: number | null
}

export async function readInstallation(sql: Sql): Promise<string> {
  const [row] = await sql<{ installation: string }>`select installation from ledger_state`
  return (row as { installation: string }).installation
}

export async function readLedgerState(sql: Sql): Promise<LedgerState> {
  const [state] = await sql<LedgerState>`
    select last_number::float8 as "lastNumber", compared_to::float8 as "comparedTo",
      (select max(number)::float8 from ledger_entries
       where state = 'completed' and number > (select lost_to from ledger_state)) as "newestCompleted"
    from ledger_state`
  return state as LedgerState
}

/** Tells whether a database is still the same one. */
export interface Standing {
  /** When the server was started. It differs after a failover. */
  server: string
  lastNumber: number
}

export async function readStanding(sql: Sql): Promise<Standing> {
  const [standing] = await sql<Standing>`
    select pg_postmaster_start_time()::text as server, last_number::float8 as "lastNumber"
    from ledger_state`
  return standing as Standing
}

/**
 * Returns the entry numbers of these jobs, and assigns those that are missing. Call it at the end
 * of a transaction: others wait for its commit.
 */
export async function numberEntries(
  tx: Sql,
  projectId: number,
  jobIds: readonly string[],
): Promise<Map<string, number>> {
  const numbers = new Map<string, number>()
  const known = await tx<{ jobId: string; number: number }>`
    select job_id as "jobId", number::float8 as number
    from ledger_entries
    where project_id = ${projectId} and job_id = any(${jobIds}::uuid[])`
  for (const { jobId, number } of known) numbers.set(jobId, number)
  const fresh = jobIds.filter((id) => !numbers.has(id))
  if (fresh.length === 0) return numbers
  const [{ last } = { last: 0 }] = await tx<{ last: number }>`
    update ledger_state set last_number = last_number + ${fresh.length}::integer
    returning last_number::float8 as last`
  fresh.forEach((id, index) => {
    numbers.set(id, last - index)
  })
  await tx`
    insert into ledger_entries (project_id, job_id, number)
    select ${projectId}, job_id, number
    from unnest(${fresh}::uuid[], ${fresh.map((id) => numbers.get(id))}::bigint[])
      as one (job_id, number)`
  return numbers
}

/** Records the entry number of a job that is created again from its entry. */
export async function insertKnownEntry(tx: Sql, { projectId, jobId, number }: LedgerPlace) {
  await tx`
    insert into ledger_entries (project_id, job_id, number)
    values (${projectId}, ${jobId}, ${number})
    on conflict (project_id, job_id) do nothing`
}

export interface KnownEntry {
  jobId: string
  number: number
  state: 'open' | 'completed' | 'failed'
}

export async function findEntries(
  sql: Sql,
  places: readonly LedgerPlace[],
): Promise<Map<string, KnownEntry>> {
  const found = new Map<string, KnownEntry>()
  for (const id of new Set(places.map(({ projectId }) => projectId))) {
    const ids = places.filter(({ projectId }) => projectId === id).map(({ jobId }) => jobId)
    const rows = await sql<KnownEntry>`
      select job_id as "jobId", number::float8 as number, state
      from ledger_entries
      where project_id = ${id} and job_id = any(${ids}::uuid[])`
    for (const row of rows) found.set(row.jobId, row)
  }
  return found
}

/** Counts the completed erasures with these numbers that must have an entry. */
export async function countExpected(sql: Sql, from: number, to: number): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::integer as count
    from ledger_entries
    where state = 'completed' and number between ${from} and ${to}
      and number > (select lost_to from ledger_state)`
  return row?.count ?? 0
}

/**
 * Records a comparison of all entries up to `to`. Those of open jobs, and all after them, will be
 * compared again.
 */
export async function noteComparison(
  tx: Sql,
  found: { to: number; refused: number; missing: number },
): Promise<void> {
  // Locks first, so that the next statement sees every number that was assigned.
  await tx`
    select from ledger_state
    for update -- fault: comparison-locks-state
    `
  const [open] = await tx<{ before: string | null }>`
    select min(number) - 1 as before from ledger_entries where state = 'open'`
  await tx`
    update ledger_state
    set compared_at = app_now(), refused = ${found.refused}, missing = ${found.missing},
      last_number = greatest(last_number, ${found.to}::bigint),
      compared_to = greatest(
        compared_to, least(${found.to}::bigint, ${open?.before ?? null}::bigint))`
}

/** No longer expects the entries up to now. */
export async function giveUpEntries(sql: Sql): Promise<void> {
  await sql`update ledger_state set lost_to = last_number, missing = 0`
}

export interface LedgerHealth {
  entries: number
  refused: number
  missing: number
  comparedAt: string | null
}

export async function readLedgerHealth(sql: Sql): Promise<LedgerHealth> {
  const [health] = await sql<LedgerHealth>`
    select last_number::float8 as entries, refused, missing, compared_at as "comparedAt"
    from ledger_state`
  return health as LedgerHealth
}

/** The master key that all entries are known to be signed under. */
export async function readSignedUnder(sql: Sql): Promise<string | null> {
  const [state] = await sql<{ signedUnder: string | null }>`
    select signed_under as "signedUnder" from ledger_state`
  return state?.signedUnder ?? null
}

export async function noteSignedUnder(sql: Sql, masterKeyId: string): Promise<void> {
  await sql`update ledger_state set signed_under = ${masterKeyId}`
}

/** Marks an entry as completed that no running job completes. */
export async function completeEntry(tx: Sql, projectId: number, jobId: string): Promise<void> {
  await tx`
    update ledger_entries set state = 'completed'
    where project_id = ${projectId} and job_id = ${jobId}`
}
