import { randomUUID } from 'node:crypto'
import type { Sql } from '../sql.ts'
import { readClock } from './jobs.ts'
import type { Effects } from './lease.ts'
import { writeLedgerEntry } from './ledger.ts'
import { completeEntry, numberEntries } from './ledger-store.ts'
import type { Signer } from './receipts.ts'

/** How many browsers an entry names, and how many rows a statement deletes. */
const browsersAnEntry = 5_000

/** No person has this ID, so the comparison erases only the browsers of the entry. */
const nobody = '0'

/**
 * Adds the browsers that were discarded without a deletion job to the ledger, many in one entry, so
 * that a restored backup brings none back. After an interruption it continues: an entry whose
 * browsers were chosen is written again unchanged. Returns how many browsers it added.
 */
export async function enterWithdrawals({
  db,
  blobs,
  signer,
}: Pick<Effects, 'db' | 'blobs'> & { signer: Signer }): Promise<number> {
  let entered = 0
  for (const projectId of await findProjects(db.sql)) {
    while (await db.begin((tx) => decideOnEntry(tx, projectId)));
    for (const entryId of await findOpenEntries(db.sql, projectId)) {
      const browserIds = await findBrowsers(db.sql, projectId, entryId)
      const numbers = await db.begin((tx) => numberEntries(tx, projectId, [entryId]))
      await writeLedgerEntry(blobs, signer.ledger, {
        version: 2,
        number: numbers.get(entryId) as number,
        part: 0,
        jobId: entryId,
        projectId,
        personId: nobody,
        keepRecordings: false,
        createdAt: await readClock(db.sql),
        browserIds,
      })
      await db.begin((tx) => closeEntry(tx, projectId, entryId))
      entered += browserIds.length
    }
  }
  await forgetDeleted(db.sql)
  return entered
}

async function findProjects(sql: Sql): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select distinct project_id as id from withdrawals where not is_entered`
  return rows.map(({ id }) => id)
}

/** Chooses the browsers of an entry for good. Returns whether there may be more. */
async function decideOnEntry(tx: Sql, projectId: number): Promise<boolean> {
  const entryId = randomUUID()
  const chosen = await tx`
    update withdrawals w set entry_id = ${entryId}
    from (
      select browser_id from withdrawals
      where project_id = ${projectId} and entry_id is null
      order by browser_id
      limit ${browsersAnEntry}
    ) as next
    where w.project_id = ${projectId} and w.browser_id = next.browser_id and w.entry_id is null
    returning w.browser_id`
  if (chosen.length > 0) await numberEntries(tx, projectId, [entryId])
  return chosen.length === browsersAnEntry
}

async function findOpenEntries(sql: Sql, projectId: number): Promise<string[]> {
  const rows = await sql<{ entryId: string }>`
    select distinct entry_id as "entryId" from withdrawals
    where project_id = ${projectId} and entry_id is not null and not is_entered`
  return rows.map(({ entryId }) => entryId)
}

async function findBrowsers(sql: Sql, projectId: number, entryId: string): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select browser_id as id from withdrawals
    where project_id = ${projectId} and entry_id = ${entryId}
    order by browser_id`
  return rows.map(({ id }) => id)
}

async function closeEntry(tx: Sql, projectId: number, entryId: string): Promise<void> {
  await tx`
    update withdrawals set is_entered = true
    where project_id = ${projectId} and entry_id = ${entryId}`
  await completeEntry(tx, projectId, entryId)
}

/** Keeps the rows of browsers that still exist, so that each is named only once. */
export async function forgetDeleted(sql: Sql, rowsAPart = browsersAnEntry): Promise<void> {
  const projects = await sql<{ id: number }>`
    select distinct project_id as id from withdrawals where is_entered`
  for (const { id } of projects) {
    for (let isDone = false; !isDone; ) {
      const gone = await sql`
        delete from withdrawals w
        using (
          select browser_id from withdrawals w
          where project_id = ${id} and is_entered and not exists (
            select from browsers b where b.project_id = w.project_id and b.id = w.browser_id)
          limit ${rowsAPart}
        ) part
        where w.project_id = ${id} and w.browser_id = part.browser_id and w.is_entered
        returning w.browser_id`
      isDone = gone.length < rowsAPart
    }
  }
}
