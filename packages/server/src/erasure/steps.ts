import { setTimeout as sleep } from 'node:timers/promises'
import { countBrowserKeys, destroyBrowserKeys } from '../recordings/browser-keys.ts'
import {
  blobPrefixOf,
  browsersOf,
  countOpenIntents,
  countRemains,
  deleteBrowsers,
  deleteRowsOfBrowsers,
  killExpiredIntents,
  type OwnedBrowser,
  unlinkBrowsers,
} from '../recordings/store.ts'
import type { Sql } from '../sql.ts'
import { addRemovedRows, completeJobs, fence, type RemovedByJob } from './attempts.ts'
import type { ClaimedJob, ClaimedJobs } from './claim.ts'
import { inLanes } from './lanes.ts'
import type { Effects, Lease } from './lease.ts'
import { writeLedgerEntry } from './ledger.ts'
import { issueReceipts, type Signer } from './receipts.ts'
import { deletePersons, type Removed, readClock } from './store.ts'

/** What the steps of an attempt work with. */
export interface Erasure extends Effects {
  /** One, or several that are worked on together and end together. */
  jobs: ClaimedJobs
  projectId: number
  personIds: readonly string[]
  lease: Lease
  signer: Signer
  backupRetentionDays: number
  /** When this attempt looked for the recordings and found none. */
  verifiedAt: string | null
  /** The persons' browsers, once they were read and are no more than a part. */
  allBrowsers?: OwnedBrowser[]
}

/** A step could not do what it is there for; the code is all that is ever recorded of it. */
export class ErasureFault extends Error {
  override readonly name = 'ErasureFault'
  readonly code: 'uploads_open' | 'keys_left' | 'blobs_left' | 'rows_left'

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
 * The erasure of a person, or of several together, in order. The DELETE has retired the person's
 * browsers, so what they recorded is a closed set. Six rules make every attempt safe, whatever died
 * before it:
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
      { name: 'drain', run: drain },
      { name: 'write_ledger', run: writeLedger },
      { name: 'forget_person', run: forgetPerson },
    ]
  }
  return [
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

/** Longer than the 60 seconds an upload may be confirmed in. */
const drainSeconds = 90

const drainPollMilliseconds = 100

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
  const { keySql, projectId } = erasure
  for await (const browsers of browserParts(erasure)) {
    await destroyBrowserKeys(keySql, projectId, idsOf(browsers))
  }
}

async function deleteBlobs(erasure: Erasure): Promise<void> {
  const { lease, projectId } = erasure
  const jobOf = jobsByPerson(erasure)
  for await (const browsers of browserParts(erasure)) {
    await inLanes(browsers, browsersAtOnce, ({ id, personId }) =>
      lease.deleteBlobs(jobOf(personId), blobPrefixOf(projectId, id)),
    )
  }
}

async function deleteRows(erasure: Erasure): Promise<void> {
  const { db, jobs, projectId } = erasure
  for await (const browsers of browserParts(erasure)) {
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
  const { db, keySql, blobs, projectId } = erasure
  for await (const browsers of browserParts(erasure)) {
    if ((await countBrowserKeys(keySql, projectId, idsOf(browsers))) > 0) {
      throw new ErasureFault('keys_left')
    }
    const { sessions, chunks } = await countRemains(db.sql, projectId, idsOf(browsers))
    if (sessions + chunks > 0) throw new ErasureFault('rows_left')
    await inLanes(browsers, browsersAtOnce, async ({ id }) => {
      if (!(await blobs.isEmpty(blobPrefixOf(projectId, id)))) throw new ErasureFault('blobs_left')
    })
  }
  erasure.verifiedAt = await readClock(db.sql)
}

/**
 * Says outside of the database that these persons are gone, for the day a backup brings one back.
 * Kept recordings are not named there: that would tie them to the job.
 */
async function writeLedger(erasure: Erasure): Promise<void> {
  const { blobs, jobs } = erasure
  const browserIds = new Map(jobs.map(({ id }) => [id, [] as string[]]))
  if (!jobs[0].keepRecordings) {
    const jobOf = jobsByPerson(erasure)
    for await (const browsers of browserParts(erasure)) {
      for (const { id, personId } of browsers) browserIds.get(jobOf(personId))?.push(id)
    }
  }
  await inLanes(jobs, entriesAtOnce, (job) =>
    writeLedgerEntry(blobs, job, browserIds.get(job.id) ?? []),
  )
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
    await db.begin(async (tx) => {
      await fence(tx, jobs)
      const browsers = await letGoOfBrowsers(tx, erasure)
      await deletePersons(tx, projectId, personIds)
      const removed = jobs.map(
        ({ id }) => [id, { ...unnoted.get(id), ...browsers.get(id) }] as const,
      )
      await issueReceipts(tx, await completeJobs(tx, jobs, new Map(removed)), erasure)
    })
  } catch (error) {
    // Where it was committed and only the answer lost, no lease is left under which to note it.
    lease.putBack(unnoted)
    throw error
  }
}

/** Answers how many browsers were removed. Kept ones stay with their sessions, nobody's. */
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

const idsOf = (browsers: OwnedBrowser[]) => browsers.map(({ id }) => id)

/** Answers the id of a person's job. */
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
