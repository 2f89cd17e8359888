import { setTimeout as sleep } from 'node:timers/promises'
import { browserPrefix, isBlobKey } from '../blobs/blobs.ts'
import { inLanes } from '../lanes.ts'
import { deletePersons, forgetInAudit } from '../persons/store.ts'
import type { Suppressions } from '../projects/suppressions.ts'
import {
  countBrowserKeys,
  destroyBrowserKeys,
  findKeyedBrowsers,
} from '../recordings/browser-keys.ts'
import {
  browsersOf,
  countOpenIntents,
  countRemains,
  countStoredChunks,
  deleteBrowsers,
  deleteRowsOfBrowsers,
  findBlobs,
  findRemovalBegun,
  killExpiredIntents,
  markCounted,
  type OwnedBrowser,
  retireBrowsers,
  unlinkBrowsers,
} from '../recordings/removal.ts'
import type { Sql } from '../sql.ts'
import {
  addRemovedRows,
  attemptsMaximum,
  type ClaimedJob,
  type ClaimedJobs,
  completeJobs,
  fence,
  type RemovedByJob,
} from './job-leases.ts'
import { notifyDeliveries, type Removed, readClock } from './jobs.ts'
import type { Effects, Lease } from './lease.ts'
import { readLedgerEntry, writeLedgerEntry } from './ledger.ts'
import { numberEntries } from './ledger-store.ts'
import { issueReceipts, type Signer } from './receipts.ts'

/** What the steps of an attempt work with. */
export interface Erasure extends Effects {
  /** One, or several that are processed and end together. */
  jobs: ClaimedJobs
  projectId: number
  personIds: readonly string[]
  lease: Lease
  signer: Signer
  suppressions: Suppressions
  backupRetentionDays: number
  /** Whether the ledger says that the recordings were erased before, with their blobs. */
  isErasedAgain: boolean
  /** What was wrong with the blobs before they were deleted. */
  blobsWere?: ErasureFault['code'] | undefined
  /** When this attempt verified that no recordings are left. */
  verifiedAt: string | null
  /** All browsers of the persons, if they fit into one part, once they were read. */
  allBrowsers?: OwnedBrowser[]
}

/** A step failed. Only the code is recorded. */
export class ErasureFault extends Error {
  override readonly name = 'ErasureFault'
  readonly code:
    | 'uploads_open'
    | 'keys_left'
    | 'blobs_left'
    | 'blobs_missing'
    | 'blobs_foreign_entry'
    | 'rows_left'

  constructor(code: ErasureFault['code']) {
    super(`The erasure cannot go on: ${code}.`)
    this.code = code
  }
}

export interface Step {
  name: string
  run(erasure: Erasure): Promise<void>
}

/*
 * The steps that erase a person, or several together, in order. The DELETE has flagged the person,
 * so its browsers are a closed set; once they are retired, so are their recordings. Six rules make
 * every attempt safe, at whatever point an earlier one died:
 *
 *   1. Every attempt runs all steps. A step that was completed finds nothing to do.
 *   2. What leads to data is deleted after the data: keys before blobs, blobs before rows, sessions
 *      before browsers, browsers before the person.
 *   3. Every transaction begins with the fence: a worker that lost its lease changes nothing.
 *   4. No effect outside the database within a transaction, and each loop works in parts.
 *   5. The last row of the person is deleted in the transaction that completes the job.
 *   6. Jobs processed together end together. A fault of one ends the attempt for all of them, and
 *      each is then retried alone (rule 1).
 */
export function stepsFor({ keepRecordings }: ClaimedJob): Step[] {
  if (keepRecordings) {
    return [
      { name: 'retire_browsers', run: retire },
      { name: 'drain', run: drain },
      { name: 'delete_blobs', run: deleteBlobs },
      { name: 'delete_rows', run: deleteRows },
      { name: 'verify', run: verify },
      { name: 'delete_browsers', run: deleteUnreadableBrowsers },
      { name: 'write_ledger', run: writeLedger },
      { name: 'forget_person', run: forgetPerson },
    ]
  }
  return [
    { name: 'retire_browsers', run: retire },
    { name: 'drain', run: drain },
    { name: 'destroy_keys', run: destroyKeys },
    { name: 'delete_blobs', run: deleteBlobs },
    { name: 'delete_rows', run: deleteRows },
    { name: 'verify', run: verify },
    { name: 'write_ledger', run: writeLedger },
    { name: 'delete_browsers', run: deleteManyBrowsers },
    { name: 'forget_person', run: forgetPerson },
  ]
}

/** Browsers handled by one statement. */
const browsersAPart = 500

/** Browsers whose blobs are deleted or looked for at the same time. */
const browsersAtOnce = 16

/** Entries of the ledger written at the same time. */
const entriesAtOnce = 16

/** Browsers named by one entry of the ledger; up to a part more. */
const browsersAnEntry = 5_000

/** Longer than the 60 seconds within which an upload can be confirmed. */
const drainSeconds = 90

const drainPollMilliseconds = 100

/**
 * A start or a chunk that overlapped with the DELETE may still have been accepted. This waits for
 * it, and prevents any other.
 */
async function retire(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId } = erasure
  for await (const browsers of browserParts(erasure)) {
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      const isRemoved = !jobs[0].keepRecordings
      await retireBrowsers(tx, projectId, idsOf(browsers), { isRemoved })
    })
  }
}

/** Waits until no upload that began before the DELETE can still be confirmed. */
async function drain({ db, jobs, projectId, personIds, lease }: Erasure): Promise<void> {
  const until = performance.now() + drainSeconds * 1_000
  while ((await countOpenIntents(db.sql, projectId, personIds)) > 0) {
    // No person waits for the uploads of another.
    if (jobs.length > 1 || performance.now() > until) throw new ErasureFault('uploads_open')
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      await killExpiredIntents(tx, projectId, personIds)
    })
    await sleep(drainPollMilliseconds, undefined, { signal: lease.signal })
  }
}

/**
 * From here on every copy of the recordings is unreadable. The keys may be in a database of their
 * own, so the statement cannot include the fence; the lease is checked right before it.
 */
async function destroyKeys(erasure: Erasure): Promise<void> {
  const { keySql, projectId, lease } = erasure
  const jobOf = jobsByPerson(erasure)
  for await (const browsers of browserParts(erasure)) {
    const destroyed = new Set(await destroyBrowserKeys(keySql, projectId, idsOf(browsers)))
    for (const { id, personId } of browsers) {
      if (destroyed.has(id)) lease.count(jobOf(personId), { keys: 1 })
    }
  }
}

async function deleteBlobs(erasure: Erasure): Promise<void> {
  const { lease, projectId } = erasure
  const jobOf = jobsByPerson(erasure)
  for await (const browsers of removedParts(erasure)) {
    if (!erasure.isErasedAgain) await compareBlobs(erasure, browsers)
    await inLanes(browsers, browsersAtOnce, ({ id, personId }) =>
      lease.deleteBlobs(jobOf(personId), browserPrefix(projectId, id)),
    )
  }
}

/**
 * Until blobs are deleted, every chunk must have its blob: if some are missing, somebody has moved
 * them. Blobs that none of our uploads named belong to somebody else. In both cases attempts fail,
 * so that it can be investigated; the last one deletes everything and then fails.
 */
async function compareBlobs(erasure: Erasure, browsers: OwnedBrowser[]): Promise<void> {
  const { db, jobs, projectId } = erasure
  const known = await countStoredChunks(db.sql, projectId, idsOf(browsers))
  if (known.size === 0) return
  let code: ErasureFault['code'] | undefined
  const found = await visitBlobs(erasure, [...known.keys()])
  if (found.isForeign) code = 'blobs_foreign_entry'
  const lacking = [...known.keys()].filter((id) => found.chunksOf(id) < (known.get(id) ?? 0))
  if (lacking.length > 0) {
    // The retention may have deleted a session meanwhile.
    const now = await countStoredChunks(db.sql, projectId, lacking)
    const again = await visitBlobs(erasure, lacking)
    if (lacking.some((id) => again.chunksOf(id) < (now.get(id) ?? 0))) code = 'blobs_missing'
  }
  if (code && jobs[0].attempt < attemptsMaximum) throw new ErasureFault(code)
  erasure.blobsWere ??= code
  await db.begin(async (tx) => {
    await fence(tx, jobs)
    await markCounted(tx, projectId, [...known.keys()])
  })
}

/** How many keys a statement looks up. */
const keysAPart = 1_000

/** Looks up each blob, some at a time: strangers decide how long the list is. */
async function visitBlobs({ db, blobs, projectId }: Erasure, browserIds: string[]) {
  const chunks = new Map<string, number>()
  const chunksOf = (browserId: string) => chunks.get(browserId) ?? 0
  let isForeign = false
  let waiting: { browserId: string; key: string }[] = []
  async function lookUp(): Promise<void> {
    const part = waiting
    waiting = []
    for (const found of await findBlobs(db.sql, projectId, part)) {
      chunks.set(found.browserId, chunksOf(found.browserId) + found.chunks)
      // Those with a key of our form are uploads that came too late.
      isForeign ||= !found.unknown.every(isBlobKey)
    }
  }
  await inLanes(browserIds, browsersAtOnce, (browserId) =>
    blobs.visit(browserPrefix(projectId, browserId), async (keys) => {
      waiting.push(...keys.map((key) => ({ browserId, key })))
      if (waiting.length >= keysAPart) await lookUp()
    }),
  )
  if (waiting.length > 0) await lookUp()
  return { chunksOf, isForeign }
}

async function deleteRows(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId } = erasure
  for await (const browsers of removedParts(erasure)) {
    for (let isDone = false; !isDone; ) {
      isDone = await db.begin(async (tx) => {
        await fence(tx, jobs)
        const part = await deleteRowsOfBrowsers(tx, projectId, idsOf(browsers))
        if (part.removed.size > 0) {
          await addRemovedRows(
            tx,
            jobs,
            countByJob(erasure, browsers, ({ id }) => part.removed.get(id)),
          )
        }
        return part.isDone
      })
    }
  }
}

/** Checks that everything is gone, each in another way than it was removed. */
async function verify(erasure: Erasure): Promise<void> {
  const { db, keySql, blobs, jobs, projectId } = erasure
  let isAny = !jobs[0].keepRecordings
  for await (const browsers of removedParts(erasure)) {
    isAny = true
    if ((await countBrowserKeys(keySql, projectId, idsOf(browsers))) > 0) {
      throw new ErasureFault('keys_left')
    }
    const { sessions, chunks } = await countRemains(db.sql, projectId, idsOf(browsers))
    if (sessions + chunks > 0) throw new ErasureFault('rows_left')
    await inLanes(browsers, browsersAtOnce, async ({ id }) => {
      if (!(await blobs.isEmpty(browserPrefix(projectId, id)))) throw new ErasureFault('blobs_left')
    })
  }
  if (erasure.blobsWere) throw new ErasureFault(erasure.blobsWere)
  if (isAny) erasure.verifiedAt = await readClock(db.sql)
}

/**
 * Records outside the database that these persons are erased, in case a backup brings one back.
 * Kept recordings are not named: that would tie them to the job.
 */
async function writeLedger(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId } = erasure
  const ids = jobs.map(({ id }) => id)
  const numbers = await db.begin(async (tx) => {
    await fence(tx, jobs)
    return numberEntries(tx, projectId, ids)
  })
  await inLanes(jobs, entriesAtOnce, (job) =>
    writeEntry(erasure, job, numbers.get(job.id) as number),
  )
}

async function writeEntry(erasure: Erasure, job: ClaimedJob, number: number): Promise<void> {
  const { blobs, projectId } = erasure
  const keys = erasure.signer.ledger
  const place = { number, projectId, jobId: job.id, part: 0 }
  // An earlier attempt may have written it, and removed some of the browsers since.
  if (typeof (await readLedgerEntry(blobs, keys, place)) === 'object') return
  const { personId, keepRecordings, createdAt } = job
  const entry = { version: 2 as const, ...place, personId, keepRecordings, createdAt }
  let browserIds: string[] = []
  let part = 0
  if (!keepRecordings) {
    for await (const browsers of browserParts(erasure)) {
      browserIds.push(...idsOf(browsers.filter((browser) => browser.personId === personId)))
      if (browserIds.length < browsersAnEntry) continue
      part += 1
      await writeLedgerEntry(blobs, keys, { ...entry, part, browserIds })
      browserIds = []
    }
  }
  await writeLedgerEntry(blobs, keys, { ...entry, browserIds })
}

/** Recordings that an earlier job made unreadable are not kept. */
async function deleteUnreadableBrowsers(erasure: Erasure): Promise<void> {
  const { db, jobs } = erasure
  for await (const browsers of removedParts(erasure)) {
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      await addRemovedRows(tx, jobs, await removeBrowsers(tx, erasure, browsers))
    })
  }
}

/** Deletes browsers, which are empty by now, until the rest can be deleted with the person. */
async function deleteManyBrowsers(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId, personIds, allBrowsers } = erasure
  if (allBrowsers) return
  const next = () => browsersOf(db.sql, projectId, personIds, null, browsersAPart + 1)
  for (let some = await next(); some.length > browsersAPart; some = await next()) {
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      await addRemovedRows(
        tx,
        jobs,
        await removeBrowsers(tx, erasure, some.slice(0, browsersAPart)),
      )
    })
  }
}

/**
 * Deletes the persons and completes the jobs, all or nothing. The receipts of a project form a
 * chain, so these transactions wait for each other.
 */
async function forgetPerson(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId, personIds, lease } = erasure
  const unnoted = lease.takeUnnoted()
  try {
    const isTold = await db.begin(async (tx) => {
      await fence(tx, jobs)
      const browsers = await letGoOfBrowsers(tx, erasure)
      await deletePersons(tx, projectId, personIds)
      const removed = jobs.map(
        ({ id }) => [id, { ...unnoted.get(id), ...browsers.get(id) }] as const,
      )
      const completed = await completeJobs(tx, jobs, new Map(removed))
      if (completed[0]?.isSuppressed) {
        const externalIds = completed.map(({ externalId }) => externalId)
        await erasure.suppressions.add(tx, projectId, externalIds)
      }
      await forgetElsewhere(tx, jobs)
      await issueReceipts(tx, completed, erasure)
      return completed.some(({ isTold }) => isTold)
    })
    if (isTold) notifyDeliveries(db.sql)
  } catch (error) {
    // If it was committed and only the response lost, there is no lease left to record them under.
    lease.putBack(unnoted)
    throw error
  }
}

/** Returns how many browsers were removed. Kept ones stay with their sessions, linked to nobody. */
async function letGoOfBrowsers(tx: Sql, erasure: Erasure): Promise<RemovedByJob> {
  const { jobs, projectId, personIds } = erasure
  if (jobs[0].keepRecordings) {
    await unlinkBrowsers(tx, projectId, personIds)
    return new Map()
  }
  return removeBrowsers(
    tx,
    erasure,
    await browsersOf(tx, projectId, personIds, null, browsersAPart),
  )
}

async function removeBrowsers(
  tx: Sql,
  erasure: Erasure,
  browsers: OwnedBrowser[],
): Promise<RemovedByJob> {
  if (browsers.length === 0) return new Map()
  const deleted = new Set(await deleteBrowsers(tx, erasure.projectId, idsOf(browsers)))
  return countByJob(erasure, browsers, ({ id }) => ({ browsers: deleted.has(id) ? 1 : 0 }))
}

/**
 * The persons' browsers in parts. They are a closed set, so they are read once per attempt if they
 * fit into one part.
 */
async function* browserParts(erasure: Erasure): AsyncGenerator<OwnedBrowser[]> {
  const { db, projectId, personIds } = erasure
  if (erasure.allBrowsers) {
    if (erasure.allBrowsers.length > 0) yield erasure.allBrowsers
    return
  }
  let after: string | null = null
  for (;;) {
    const browsers: OwnedBrowser[] = await browsersOf(
      db.sql,
      projectId,
      personIds,
      after,
      browsersAPart,
    )
    const isLast = browsers.length < browsersAPart
    if (isLast && after === null) erasure.allBrowsers = browsers
    if (browsers.length > 0) yield browsers
    if (isLast) return
    after = browsers.at(-1)?.id ?? null
  }
}

/** The browsers whose recordings are deleted, in parts. */
async function* removedParts(erasure: Erasure): AsyncGenerator<OwnedBrowser[]> {
  const { jobs } = erasure
  for await (const browsers of browserParts(erasure)) {
    const removed = jobs[0].keepRecordings ? await unreadable(erasure, browsers) : browsers
    if (removed.length > 0) yield removed
  }
}

/** Returns those whose keys an earlier job destroyed before it failed. */
async function unreadable(
  { db, keySql, projectId }: Erasure,
  browsers: OwnedBrowser[],
): Promise<OwnedBrowser[]> {
  const begun = await findRemovalBegun(db.sql, projectId, idsOf(browsers))
  if (begun.length === 0) return []
  const keyed = new Set(await findKeyedBrowsers(keySql, projectId, begun))
  const ids = new Set(begun.filter((id) => !keyed.has(id)))
  return browsers.filter(({ id }) => ids.has(id))
}

const idsOf = (browsers: OwnedBrowser[]) => browsers.map(({ id }) => id)

/** Returns the id of a person's job. */
function jobsByPerson({ jobs }: Erasure): (personId: string) => string {
  const ids = new Map(jobs.map(({ id, personId }) => [personId, id]))
  return (personId) => ids.get(personId) as string
}

/** Sums up what was removed, by the job of the browser's person. */
function countByJob(
  erasure: Erasure,
  browsers: OwnedBrowser[],
  removedOf: (browser: OwnedBrowser) => Partial<Removed> | undefined,
): RemovedByJob {
  const jobOf = jobsByPerson(erasure)
  const sums = new Map<string, { sessions: number; chunks: number; browsers: number }>()
  for (const browser of browsers) {
    const { sessions = 0, chunks = 0, browsers = 0 } = removedOf(browser) ?? {}
    const id = jobOf(browser.personId)
    const sum = sums.get(id) ?? { sessions: 0, chunks: 0, browsers: 0 }
    sum.sessions += sessions
    sum.chunks += chunks
    sum.browsers += browsers
    sums.set(id, sum)
  }
  return sums
}

/**
 * Removes the persons from everything else, in the transaction that completes their jobs: only a
 * hash says who was erased, and the audit log names nobody.
 */
async function forgetElsewhere(tx: Sql, jobs: ClaimedJobs): Promise<void> {
  const [{ projectId, keepRecordings }] = jobs
  const personIds = jobs.map(({ personId }) => personId)
  await tx`
    insert into erased_persons (project_id, person_hash, job_id)
    select ${projectId}::integer, erased_person_hash(${projectId}, one.person_id), one.job_id
    from unnest(${personIds}::bigint[], ${jobs.map(({ id }) => id)}::uuid[]) as one (person_id, job_id)
    -- A person whom a restored backup brought back is erased a second time.
    on conflict (project_id, person_hash) do update set job_id = excluded.job_id`
  await forgetInAudit(tx, projectId, personIds, keepRecordings)
}
