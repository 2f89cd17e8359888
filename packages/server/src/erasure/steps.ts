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
  /** One, or several that are worked on together and end together. */
  jobs: ClaimedJobs
  projectId: number
  personIds: readonly string[]
  lease: Lease
  signer: Signer
  suppressions: Suppressions
  backupRetentionDays: number
  /** Whether the ledger says that the recordings were erased once, with their blobs. */
  isErasedAgain: boolean
  /** What was wrong with the blobs before any was deleted. */
  blobsWere?: ErasureFault['code'] | undefined
  /** When this attempt looked for the recordings and found none. */
  verifiedAt: string | null
  /** The persons' browsers, once they were read and are no more than a part. */
  allBrowsers?: OwnedBrowser[]
}

/** A step could not do what it is there for; the code is all that is ever recorded of it. */
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
 * The erasure of a person, or of several together, in order. The DELETE has flagged the person, so
 * its browsers are a closed set; once they are retired, what they recorded is one too. Six rules
 * make every attempt safe, whatever died before it:
 *
 *   1. Every attempt runs the whole list. A step that is done finds nothing to do.
 *   2. What leads to data outlives the data: keys go before blobs, blobs before rows, sessions
 *      before browsers, browsers before the person.
 *   3. Every transaction begins with the fence: a worker that lost its lease changes nothing.
 *   4. No effect outside of the database within a transaction, and each loop works in parts.
 *   5. The person's last trace and the job's completion go in one transaction.
 *   6. Jobs worked on together end together. Whatever goes wrong with one ends the attempt at all of
 *      them, and each is then done alone (rule 1).
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

/** Browsers that one entry of the ledger names, and up to a part more. */
const browsersAnEntry = 5_000

/** Longer than the 60 seconds an upload may be confirmed in. */
const drainSeconds = 90

const drainPollMilliseconds = 100

/**
 * A start or a chunk that overlapped with the DELETE may still have been let in. This waits for it,
 * and lets no other in.
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

/** Waits until no upload that began before the DELETE can be confirmed any more. */
async function drain({ db, jobs, projectId, personIds, lease }: Erasure): Promise<void> {
  const until = performance.now() + drainSeconds * 1_000
  while ((await countOpenIntents(db.sql, projectId, personIds)) > 0) {
    // Nobody is to wait for the uploads of somebody else.
    if (jobs.length > 1 || performance.now() > until) throw new ErasureFault('uploads_open')
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      await killExpiredIntents(tx, projectId, personIds)
    })
    await sleep(drainPollMilliseconds, undefined, { signal: lease.signal })
  }
}

/**
 * From here on every copy of the recordings is unreadable. The keys may stand in a database of
 * their own, so no fence can be in the statement; the lease is checked right before it.
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
 * Every chunk has to have its blob, until blobs are deleted: where some are not there, somebody has
 * taken them elsewhere. What no upload of ours has named is somebody's too. Attempts fail, so that it
 * can be looked into; the last one deletes what there is, and fails when that is done.
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
    // The retention may have closed a session in between.
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

/** So many keys are looked up by one statement. */
const keysAPart = 1_000

/** Looks each blob up, some at a time: nothing of a list whose length strangers decide is kept. */
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
      // An upload that came too late is nobody's either.
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

/** Looks for what should be gone, each thing in another way than it was removed. */
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
 * Says outside of the database that these persons are gone, for the day a backup brings one back.
 * Kept recordings are not named there: that would tie them to the job.
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
  // An attempt that wrote all of it may have removed some of the browsers since.
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

/** Of recordings that are kept, those that an earlier job has made unreadable are not. */
async function deleteUnreadableBrowsers(erasure: Erasure): Promise<void> {
  const { db, jobs } = erasure
  for await (const browsers of removedParts(erasure)) {
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      await addRemovedRows(tx, jobs, await removeBrowsers(tx, erasure, browsers))
    })
  }
}

/** Leaves so few browsers that they can go with the person; they have nothing left by now. */
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
 * The persons go and the jobs are completed: all or nothing. The receipts of a project follow one
 * on the other, so these transactions wait for one another.
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
    // Where it was committed and only the response lost, no lease is left under which to note it.
    lease.putBack(unnoted)
    throw error
  }
}

/** Returns how many browsers were removed. Kept ones stay with their sessions, nobody's. */
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
 * The persons' browsers in parts. They are a closed set, so a first part that is all of them is
 * read once an attempt.
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

/** Those whose keys an earlier job has destroyed, which then failed. */
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

/** Sums up what was removed of browsers, by the jobs of those whose they were. */
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
 * What else knows of persons is made to forget them, in the transaction that completes their jobs and
 * after that: who was erased is told by a hash, and the audit log names nobody.
 */
async function forgetElsewhere(tx: Sql, jobs: ClaimedJobs): Promise<void> {
  const [{ projectId, keepRecordings }] = jobs
  const personIds = jobs.map(({ personId }) => personId)
  await tx`
    insert into erased_persons (project_id, person_hash, job_id)
    select ${projectId}::integer, erased_person_hash(${projectId}, one.person_id), one.job_id
    from unnest(${personIds}::bigint[], ${jobs.map(({ id }) => id)}::uuid[]) as one (person_id, job_id)
    -- Who was brought back by a restored backup is erased a second time.
    on conflict (project_id, person_hash) do update set job_id = excluded.job_id`
  await forgetInAudit(tx, projectId, personIds, keepRecordings)
}
