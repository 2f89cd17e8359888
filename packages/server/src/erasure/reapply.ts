import { setTimeout as sleep } from 'node:timers/promises'
import { browserPrefix } from '../blobs/blobs.ts'
import { inLanes } from '../lanes.ts'
import { lockPerson } from '../persons/store.ts'
import { countBrowserKeys, destroyBrowserKeys } from '../recordings/browser-keys.ts'
import {
  deleteBrowsers,
  deleteRowsOfBrowsers,
  killIntentsBefore,
  retireBrowsers,
} from '../recordings/removal.ts'
import { type AttemptOptions, runAttempts } from './attempt.ts'
import { takeOver } from './job-leases.ts'
import { findStatuses, insertDeletionJob } from './jobs.ts'
import { type LedgerEntry, type LedgerPlace, listLedger, readLedgerEntry } from './ledger.ts'
import {
  countExpected,
  findEntries,
  giveUpEntries,
  insertKnownEntry,
  noteComparison,
  readLedgerState,
} from './ledger-store.ts'

/** What the comparison of ledger and database found and did. */
export interface Reapplied {
  /** Entries of the ledger that were compared for the first time. */
  entries: number
  /** Persons that existed again, or still, and are erased now. */
  persons: number
  /** Browsers that existed again without their person, and are erased now. */
  browsers: number
  /** Entries that are not genuine, or in the wrong place. They erase nobody. */
  refused: number
  /** Completed erasures whose entry is missing. */
  missing: number
}

/** The ledger is missing or older than the database, so erased persons could be back unnoticed. */
export class LedgerMissing extends Error {
  override readonly name = 'LedgerMissing'

  constructor() {
    super(
      'The ledger of erasures is missing, or older than the database: check BLOBS_URL or DATA_DIR. To give up the missing part, start once with --without-ledger; people erased in it may be back.',
    )
  }
}

/** A person could not be erased again. Serving requests now would bring the person back. */
export class ReapplyFailed extends Error {
  override readonly name = 'ReapplyFailed'
}

/** How long a job may take to complete after its entry was written. */
const momentSeconds = 2

/** Several processes that start may take the same job over; one of them succeeds. */
const roundsMaximum = 10

/** Persons erased again at the same time. Requests are served only after the last one. */
const erasedAtOnce = 4

const browsersAPart = 500

const browsersAtOnce = 4

export interface ReapplyTerms {
  /** Accepts a missing ledger, also in later comparisons. */
  withoutLedger?: boolean
  /** Entries compared so far, and of how many. */
  onProgress?: (done: number, total: number) => void
}

/**
 * Compares the ledger with the database, and erases all persons again whom a restored backup
 * brought back. Call it before anything is served. It reads only entries that are newer than the
 * last comparison in this database, so it finds nothing unless a backup was restored.
 *
 * An entry stands for an erasure that was verified. So an open job is completed now, in place of
 * its current attempt, and a missing job is created again. A failed job failed after its entry was
 * written: its person is in use.
 *
 * Throws LedgerMissing, and ReapplyFailed if an erasure fails.
 */
export async function reapplyLedger(
  options: AttemptOptions,
  { withoutLedger = false, onProgress }: ReapplyTerms = {},
): Promise<Reapplied> {
  const { db, blobs, log } = options
  if (withoutLedger) await giveUpEntries(db.sql)
  const { lastNumber, comparedTo, newestCompleted } = await readLedgerState(db.sql)
  const from = Math.min(comparedTo + 1, newestCompleted ?? comparedTo + 1)
  const comparison: Comparison = {
    entries: 0,
    persons: 0,
    browsers: 0,
    refused: 0,
    missing: 0,
    completed: 0,
    to: 0,
    hasWaited: false,
  }
  for await (const { places, strange } of listLedger(blobs, from, lastNumber)) {
    comparison.refused += strange
    await comparePart(options, comparison, places)
    onProgress?.(comparison.to - from + 1, lastNumber - from + 1)
  }
  if (newestCompleted !== null && comparison.to < newestCompleted) throw new LedgerMissing()
  const expected = await countExpected(db.sql, from, newestCompleted ?? 0)
  const missing = Math.max(0, expected - comparison.completed)
  const { entries, persons, browsers, refused } = comparison
  const to = Math.max(comparedTo, comparison.to)
  await db.begin((tx) => noteComparison(tx, { to, refused, missing }))
  if (refused > 0) log.event('warn', 'ledger.refused', { count: refused })
  if (missing > 0) log.event('warn', 'ledger.missing', { count: missing })
  if (persons > 0) log.event('warn', 'ledger.erased_again', { count: persons })
  return { entries, persons, browsers, refused, missing }
}

interface Comparison extends Reapplied {
  /** Entries of erasures that the database knows as completed. */
  completed: number
  /** The highest number of a genuine entry. */
  to: number
  hasWaited: boolean
}

async function comparePart(
  options: AttemptOptions,
  comparison: Comparison,
  places: LedgerPlace[],
): Promise<void> {
  const { db, blobs, signer } = options
  let known = await findEntries(db.sql, places)
  const isSettled = ({ jobId, number }: LedgerPlace) => {
    const entry = known.get(jobId)
    return entry?.number === number && entry.state !== 'open'
  }
  if (!places.every(isSettled) && !comparison.hasWaited) {
    await sleep(momentSeconds * 1_000)
    comparison.hasWaited = true
    known = await findEntries(db.sql, places)
  }
  const compare = async (place: LedgerPlace) => {
    if (!isSettled(place)) {
      const entry = await readLedgerEntry(blobs, signer.ledger, place)
      if (entry === 'missing') return
      if (entry === 'refused') {
        comparison.refused += 1
        return
      }
      await eraseAgain(options, comparison, entry)
    } else if (place.part === 0 && known.get(place.jobId)?.state === 'completed') {
      comparison.completed += 1
    }
    if (place.part === 0) comparison.entries += 1
    comparison.to = Math.max(comparison.to, place.number)
  }
  // The parts of a job in their order: at the same time they would take the job from each other.
  const jobs = [...Map.groupBy(places, ({ jobId }) => jobId).values()]
  await inLanes(inAnyOrder(jobs), erasedAtOnce, async (parts) => {
    for (const place of parts) await compare(place)
  })
}

/** Processes that compare at the same time must not all take over the same jobs in turn. */
function inAnyOrder<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

async function eraseAgain(
  options: AttemptOptions,
  comparison: Comparison,
  entry: LedgerEntry,
): Promise<void> {
  // After a failed job its person is in use, unless an earlier comparison created the job.
  const known = (await findStatuses(options.db.sql, [entry])).get(entry.jobId)
  if (known?.status === 'failed' && known.requestedBy !== 'ledger') return
  if (await patiently(() => erasePerson(options, entry))) comparison.persons += 1
  comparison.browsers += await patiently(() => eraseBrowsers(options, entry))
}

/**
 * A frozen worker holds its locks until PostgreSQL ends its transaction, after 10 seconds; a lock
 * times out after 2 seconds. `work` must be safe to repeat.
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

/** Returns whether the person existed. */
async function erasePerson(options: AttemptOptions, entry: LedgerEntry): Promise<boolean> {
  const jobId = await options.db.begin(async (tx) => {
    const { projectId, personId, keepRecordings } = entry
    const person = await lockPerson(tx, projectId, { personId })
    if (!person) return undefined
    if (person.deletionJobId) {
      if (person.deletionJobId === entry.jobId) await insertKnownEntry(tx, entry)
      return person.deletionJobId
    }
    const known = await findStatuses(tx, [entry])
    const job = await insertDeletionJob(tx, {
      // The ID that the customer knows, unless an earlier comparison has used it.
      ...(!known.has(entry.jobId) && {
        earlier: { id: entry.jobId, createdAt: entry.createdAt },
      }),
      projectId,
      personId,
      keepRecordings,
      requestedBy: 'ledger',
    })
    if (job.id === entry.jobId) await insertKnownEntry(tx, entry)
    return job.id
  })
  if (jobId === undefined) return false
  // The erasure had waited for uploads from before its request. Here they are open again, and the
  // start would wait until they expire.
  const { projectId, personId, createdAt } = entry
  await killIntentsBefore(options.db.sql, projectId, personId, createdAt)
  await completeNow(options, entry.projectId, jobId)
  return true
}

async function completeNow(options: AttemptOptions, projectId: number, jobId: string) {
  for (let round = 1; round <= roundsMaximum; round++) {
    const sentAt = performance.now()
    const job = await takeOver(options.db.sql, projectId, jobId)
    if (!job) return
    const outcome = await runAttempts({ ...options, isErasedAgain: true }, [job], sentAt)
    if (outcome === 'completed') return
    if (outcome === 'failed') break
    await sleep(momentSeconds * 1_000)
  }
  throw new ReapplyFailed(
    `A person who was erased is in the database again, as after a restored backup, and could not be erased again (deletion job ${jobId}; the log says why). Fix the cause and start again.`,
  )
}

/**
 * Erases the browsers of an entry that exist without their person: the backup is from before they
 * were identified. Returns how many.
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
    await inLanes(part, browsersAtOnce, (id) => blobs.deletePrefix(browserPrefix(projectId, id)))
    while (!(await deleteRowsOfBrowsers(db.sql, projectId, part)).isDone);
    erased += (await db.begin((tx) => deleteBrowsers(tx, projectId, part))).length
  }
  return erased
}
