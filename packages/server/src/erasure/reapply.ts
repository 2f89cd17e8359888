import { setTimeout as sleep } from 'node:timers/promises'
import { countBrowserKeys, destroyBrowserKeys } from '../recordings/browser-keys.ts'
import {
  blobPrefixOf,
  deleteBrowsers,
  deleteRowsOfBrowsers,
  retireBrowsersOf,
} from '../recordings/store.ts'
import { type AttemptOptions, runAttempts } from './attempt.ts'
import { takeOver } from './claim.ts'
import { inLanes } from './lanes.ts'
import { type LedgerEntry, listLedger, readLedgerEntry } from './ledger.ts'
import { findStatuses, insertDeletionJob, lockPerson, retireBrowsers } from './store.ts'

/** What the comparison of ledger and database found and did. */
export interface Reapplied {
  /** Entries of the ledger. */
  entries: number
  /** Persons that were there again, or still, and are erased now. */
  persons: number
  /** Browsers that were there again without their person, and are erased now. */
  browsers: number
}

/** Whoever the ledger says is gone could not be erased again; serving now would bring them back. */
export class ReapplyFailed extends Error {
  override readonly name = 'ReapplyFailed'
}

/** An entry is written a moment before its job is completed. */
const momentSeconds = 2

/** Other processes that start may take the same job over; one of them gets through. */
const roundsMaximum = 10

const browsersAPart = 500

const browsersAtOnce = 4

/**
 * Compares the ledger with the database, and erases again whoever a restored backup brought back.
 * To be called before anything is served; in a database that was not restored it finds nothing.
 *
 * An entry stands for an erasure that was verified. So a job that the database shows as open is
 * completed here and now, in the place of the attempt it is in, and one that it does not know is
 * made again. One that it shows as failed failed after its entry was written: its person is in use.
 *
 * Throws ReapplyFailed where an erasure fails.
 */
export async function reapplyLedger(options: AttemptOptions): Promise<Reapplied> {
  const reapplied: Reapplied = { entries: 0, persons: 0, browsers: 0 }
  let hasWaited = false
  for await (const listed of listLedger(options.blobs)) {
    reapplied.entries += listed.length
    let open = await notCompleted(options, listed)
    if (open.length > 0 && !hasWaited) {
      await sleep(momentSeconds * 1_000)
      hasWaited = true
      open = await notCompleted(options, open)
    }
    for (const { projectId, jobId } of open) {
      const entry = await readLedgerEntry(options.blobs, projectId, jobId)
      if (!entry) continue
      if (await patiently(() => erasePerson(options, entry))) reapplied.persons += 1
      reapplied.browsers += await patiently(() => eraseBrowsers(options, entry))
    }
  }
  return reapplied
}

/**
 * A worker that stands still in a transaction holds its rows until PostgreSQL ends it, after 10
 * seconds; a lock is waited for 2 seconds at a time. Each piece of work here is safe to repeat.
 */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let round = 1; ; round++) {
    try {
      return await work()
    } catch (error) {
      if ((error as { code?: string }).code !== lockNotAvailable || round === roundsMaximum) {
        throw error
      }
    }
  }
}

const lockNotAvailable = '55P03'

async function notCompleted<Listed extends { projectId: number; jobId: string }>(
  { db }: AttemptOptions,
  listed: Listed[],
): Promise<Listed[]> {
  const statuses = await findStatuses(db.sql, listed)
  return listed.filter(({ jobId }) => {
    const known = statuses.get(jobId)
    if (known?.status === 'completed') return false
    // What failed in the hands of an earlier comparison is no business of the person's.
    return known?.status !== 'failed' || known.requestedBy === 'ledger'
  })
}

/** Answers whether the person was there. */
async function erasePerson(options: AttemptOptions, entry: LedgerEntry): Promise<boolean> {
  const jobId = await options.db.begin(async (tx) => {
    const { projectId, personId, keepRecordings } = entry
    const person = await lockPerson(tx, projectId, { personId })
    if (!person) return undefined
    if (person.deletionJobId) return person.deletionJobId
    const known = await findStatuses(tx, [entry])
    const job = await insertDeletionJob(tx, {
      // The id the customer knows, unless an earlier comparison has used it up.
      ...(!known.has(entry.jobId) && {
        earlier: { id: entry.jobId, createdAt: entry.createdAt },
      }),
      projectId,
      personId,
      keepRecordings,
      requestedBy: 'ledger',
    })
    await retireBrowsersOf(tx, projectId, personId)
    return job.id
  })
  if (jobId === undefined) return false
  await completeNow(options, entry.projectId, jobId)
  return true
}

async function completeNow(options: AttemptOptions, projectId: number, jobId: string) {
  for (let round = 1; round <= roundsMaximum; round++) {
    const sentAt = performance.now()
    const job = await takeOver(options.db.sql, projectId, jobId)
    if (!job) return
    const outcome = await runAttempts(options, [job], sentAt)
    if (outcome === 'completed') return
    if (outcome === 'failed') break
    await sleep(momentSeconds * 1_000)
  }
  throw new ReapplyFailed(
    `A person that the ledger says is erased is in the database, as after a restored backup, and could not be erased again (deletion job ${jobId}; the log says why). Start again when the cause is mended.`,
  )
}

/**
 * Erases the browsers of an entry that the database has although their person is not there: a
 * backup from before they were identified. Answers how many.
 */
async function eraseBrowsers(options: AttemptOptions, entry: LedgerEntry): Promise<number> {
  const { db, keySql, blobs } = options
  const { projectId, browserIds } = entry
  let erased = 0
  for (let start = 0; start < browserIds.length; start += browsersAPart) {
    const part = browserIds.slice(start, start + browsersAPart)
    const retired = await retireBrowsers(db.sql, projectId, part)
    const keys = await countBrowserKeys(keySql, projectId, part)
    if (retired.length === 0 && keys === 0) continue
    await destroyBrowserKeys(keySql, projectId, part)
    await inLanes(part, browsersAtOnce, (id) => blobs.deletePrefix(blobPrefixOf(projectId, id)))
    while (!(await deleteRowsOfBrowsers(db.sql, projectId, part)).isDone);
    erased += (await db.begin((tx) => deleteBrowsers(tx, projectId, part))).length
  }
  return erased
}
