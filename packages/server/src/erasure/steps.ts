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
  unlinkBrowsers,
} from '../recordings/store.ts'
import type { Sql } from '../sql.ts'
import { addRemovedRows, type ClaimedJob, completeJob, fence } from './attempts.ts'
import { inLanes } from './lanes.ts'
import type { Effects, Lease } from './lease.ts'
import { writeLedgerEntry } from './ledger.ts'
import { issueReceipt, type Signer } from './receipts.ts'
import { deletePerson, readClock } from './store.ts'

/** What the steps of one attempt work with. */
export interface Erasure extends Required<Effects> {
  job: ClaimedJob
  lease: Lease
  signer: Signer
  backupRetentionDays: number
  /** When this attempt looked for the recordings and found none. */
  verifiedAt: string | null
  /** The person's browsers, once they were read and are no more than a part. */
  allBrowserIds?: string[]
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
 * The erasure of a person, in order. The DELETE has retired the person's browsers, so what they
 * recorded is a closed set. Five rules make every attempt safe, whatever died before it:
 *
 *   1. Every attempt runs the whole list. A step that is done finds nothing to do.
 *   2. What leads to data outlives the data: keys go before blobs, blobs before rows, sessions
 *      before browsers, browsers before the person.
 *   3. Every transaction begins with the fence: a worker that lost its lease changes nothing.
 *   4. No effect outside of the database within a transaction, and each loop works in parts.
 *   5. The person's last trace and the job's completion go in one transaction.
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
const browsersAtOnce = 4

/** Longer than the 60 seconds an upload may be confirmed in. */
const drainSeconds = 90

const drainPollMilliseconds = 100

/** Waits until no upload that began before the DELETE can be confirmed any more. */
async function drain({ db, job, lease }: Erasure): Promise<void> {
  const { projectId, personId } = job
  const until = performance.now() + drainSeconds * 1_000
  while ((await countOpenIntents(db.sql, projectId, personId)) > 0) {
    if (performance.now() > until) throw new ErasureFault('uploads_open')
    await db.begin(async (tx) => {
      await fence(tx, job)
      await killExpiredIntents(tx, projectId, personId)
    })
    await sleep(drainPollMilliseconds, undefined, { signal: lease.signal })
  }
}

/**
 * From here on every copy of the recordings is unreadable. The keys may stand in a database of
 * their own, so no fence can be in the statement; the lease is checked right before it.
 */
async function destroyKeys(erasure: Erasure): Promise<void> {
  const { keySql, job } = erasure
  for await (const browserIds of browserParts(erasure)) {
    await destroyBrowserKeys(keySql, job.projectId, browserIds)
  }
}

async function deleteBlobs(erasure: Erasure): Promise<void> {
  const { blobs, job } = erasure
  for await (const browserIds of browserParts(erasure)) {
    await inLanes(browserIds, browsersAtOnce, (id) =>
      blobs.deletePrefix(blobPrefixOf(job.projectId, id)),
    )
  }
}

async function deleteRows(erasure: Erasure): Promise<void> {
  const { db, job } = erasure
  for await (const browserIds of browserParts(erasure)) {
    for (let isDone = false; !isDone; ) {
      isDone = await db.begin(async (tx) => {
        await fence(tx, job)
        const removed = await deleteRowsOfBrowsers(tx, job.projectId, browserIds)
        if (removed.sessions + removed.chunks > 0) await addRemovedRows(tx, job, removed)
        return removed.isDone
      })
    }
  }
}

/** Looks for what should be gone, each thing in another way than it was removed. */
async function verify(erasure: Erasure): Promise<void> {
  const { db, keySql, blobs, job } = erasure
  for await (const browserIds of browserParts(erasure)) {
    if ((await countBrowserKeys(keySql, job.projectId, browserIds)) > 0) {
      throw new ErasureFault('keys_left')
    }
    const { sessions, chunks } = await countRemains(db.sql, job.projectId, browserIds)
    if (sessions + chunks > 0) throw new ErasureFault('rows_left')
    await inLanes(browserIds, browsersAtOnce, async (id) => {
      if (!(await blobs.isEmpty(blobPrefixOf(job.projectId, id)))) {
        throw new ErasureFault('blobs_left')
      }
    })
  }
  erasure.verifiedAt = await readClock(db.sql)
}

/**
 * Says outside of the database that this person is gone, for the day a backup brings it back. Kept
 * recordings are not named there: that would tie them to the job.
 */
async function writeLedger(erasure: Erasure): Promise<void> {
  const { blobs, job } = erasure
  const browserIds: string[] = []
  if (!job.keepRecordings) {
    for await (const part of browserParts(erasure)) browserIds.push(...part)
  }
  await writeLedgerEntry(blobs, job, browserIds)
}

/** Leaves so few browsers that they can go with the person; they have nothing left by now. */
async function deleteManyBrowsers({ db, job, allBrowserIds }: Erasure): Promise<void> {
  const { projectId, personId } = job
  if (allBrowserIds) return
  const next = () => browsersOf(db.sql, projectId, personId, null, browsersAPart + 1)
  for (let ids = await next(); ids.length > browsersAPart; ids = await next()) {
    await db.begin(async (tx) => {
      await fence(tx, job)
      const browsers = await deleteBrowsers(tx, projectId, ids.slice(0, browsersAPart))
      await addRemovedRows(tx, job, { browsers })
    })
  }
}

/**
 * The person goes and the job is completed: all or nothing. The receipts of a project follow one on
 * the other, so these transactions wait for one another, and are committed together.
 */
async function forgetPerson(erasure: Erasure): Promise<void> {
  const { commitTogether, job, lease } = erasure
  const unnoted = lease.takeUnnoted()
  await commitTogether(async (tx) => {
    await fence(tx, job)
    const browsers = await letGoOfBrowsers(tx, job)
    await deletePerson(tx, job.projectId, job.personId)
    const completed = await completeJob(tx, job, { browsers, ...unnoted })
    await issueReceipt(tx, completed, erasure)
  })
}

/** Answers how many browsers were removed. Kept ones stay with their sessions, nobody's. */
async function letGoOfBrowsers(tx: Sql, { projectId, personId, keepRecordings }: ClaimedJob) {
  if (keepRecordings) {
    await unlinkBrowsers(tx, projectId, personId)
    return 0
  }
  const browserIds = await browsersOf(tx, projectId, personId, null, browsersAPart)
  return browserIds.length === 0 ? 0 : deleteBrowsers(tx, projectId, browserIds)
}

/**
 * The person's browsers in parts. They are a closed set, so a first part that is all of them is
 * read once an attempt.
 */
async function* browserParts(erasure: Erasure): AsyncGenerator<string[]> {
  const { db, job } = erasure
  if (erasure.allBrowserIds) {
    if (erasure.allBrowserIds.length > 0) yield erasure.allBrowserIds
    return
  }
  let after: string | null = null
  for (;;) {
    const { projectId, personId } = job
    const ids: string[] = await browsersOf(db.sql, projectId, personId, after, browsersAPart)
    const isLast = ids.length < browsersAPart
    if (isLast && after === null) erasure.allBrowserIds = ids
    if (ids.length > 0) yield ids
    if (isLast) return
    after = ids.at(-1) as string
  }
}
