import { BlobFault } from '../blobs/blobs.ts'
import { isUnavailable } from '../http/errors.ts'
import type { Log } from '../log.ts'
import type { Suppressions } from '../projects/suppressions.ts'
import {
  type ClaimedJob,
  type ClaimedJobs,
  claimJobs,
  failAttempt,
  handBack,
  LeaseLost,
  noteProgress,
  type RetryDelays,
  togetherMaximum,
} from './job-leases.ts'
import { type Effects, holdLease, type Lease, type LeasePace } from './lease.ts'
import type { ErasureMetrics } from './metrics.ts'
import type { Signer } from './receipts.ts'
import { type Erasure, ErasureFault, stepsFor } from './steps.ts'

/** What attempts need, wherever they run. */
export interface AttemptOptions extends Effects {
  log: Log
  metrics: ErasureMetrics
  signer: Signer
  suppressions: Suppressions
  retryDelaysSeconds: RetryDelays
  backupRetentionDays: number
  leasePace?: LeasePace
  /** Whether the ledger says that these persons were erased once: blobs are missing by right then. */
  isErasedAgain?: boolean
}

export type AttemptOutcome = 'completed' | 'failed' | 'lost' | 'handed_back'

/** The reason of a signal that ends attempts since the process is about to end. */
export class Stopping extends Error {
  override readonly name = 'Stopping'
}

/**
 * Claims the job that is due longest, with up to `limit` in all that can be worked on together, and
 * makes one attempt; undefined where none is due.
 */
export async function runNextAttempt(
  options: AttemptOptions,
  limit = 1,
): Promise<AttemptOutcome | undefined> {
  const sentAt = performance.now()
  const jobs = await claimJobs(options.db.sql, limit)
  return isAny(jobs) ? runAttempts(options, jobs, sentAt) : undefined
}

/** Attempts until none is due. */
export async function runAll(options: AttemptOptions): Promise<void> {
  while ((await runNextAttempt(options, togetherMaximum)) !== undefined);
}

export const isAny = (jobs: readonly ClaimedJob[]): jobs is ClaimedJobs => jobs.length > 0

/**
 * Makes one attempt at each of these claimed jobs, together: the steps from the first to the last.
 * Where that fails, each is to be done alone, without delay. `sentAt` is when the claim was sent, on
 * the clock of performance.now(). An aborted `stopping` hands the attempts back. Throws only where
 * the end of the attempts could not be noted; the process that reaps them does that then.
 */
export async function runAttempts(
  options: AttemptOptions,
  jobs: ClaimedJobs,
  sentAt: number,
  stopping?: AbortSignal,
): Promise<AttemptOutcome> {
  const lease = holdLease(options, jobs, sentAt, stopping, options.leasePace)
  let outcome: AttemptOutcome
  try {
    await runSteps(options, jobs, lease)
    outcome = 'completed'
    for (const job of jobs) options.log.event('info', 'erasure.completed', fieldsOf(job))
  } catch (error) {
    await noteRemoved(options, jobs, lease)
    outcome = await endAttempts(options, jobs, lease, error)
  } finally {
    lease.end()
  }
  const seconds = (performance.now() - sentAt) / 1_000
  for (const _ of jobs) options.metrics.observeAttempt(outcome, seconds)
  return outcome
}

const fieldsOf = ({ projectId, id, attempt }: ClaimedJob) => ({ projectId, jobId: id, attempt })

async function runSteps(
  { signer, suppressions, backupRetentionDays, isErasedAgain = false }: AttemptOptions,
  jobs: ClaimedJobs,
  lease: Lease,
): Promise<void> {
  const [{ projectId }] = jobs
  const personIds = jobs.map(({ personId }) => personId)
  const erasure: Erasure = {
    ...lease.effects,
    jobs,
    projectId,
    personIds,
    lease,
    signer,
    suppressions,
    backupRetentionDays,
    isErasedAgain,
    verifiedAt: null,
  }
  for (const step of stepsFor(jobs[0])) {
    lease.step = step.name
    await step.run(erasure)
  }
}

/** What the blob store removed is counted also where the attempt goes no further. */
async function noteRemoved({ db }: AttemptOptions, jobs: ClaimedJobs, lease: Lease): Promise<void> {
  const removed = lease.takeUnnoted()
  if (removed.size === 0) return
  const { step } = lease
  // Of jobs whose lease is lost nothing is noted, and where the database is away nothing can be.
  await noteProgress(db.sql, jobs, { step, removed }, false).catch(() => {})
}

/** Notes how attempts ended that did not complete their jobs. */
async function endAttempts(
  { db, log, metrics, retryDelaysSeconds }: AttemptOptions,
  jobs: ClaimedJobs,
  lease: Lease,
  error: unknown,
): Promise<AttemptOutcome> {
  const { step } = lease
  const [job, ...others] = jobs
  const fields = { ...fieldsOf(job), step }
  // Whatever was aborted says so in its own words; why it was aborted is what counts.
  const reason = lease.signal.aborted ? lease.signal.reason : error
  if (reason instanceof Stopping) {
    await handBack(db.sql, jobs, { isAlone: false })
    for (const one of jobs) log.event('info', 'erasure.handed_back', { ...fieldsOf(one), step })
    return 'handed_back'
  }
  if (others.length > 0) {
    // Which of them it was is found out by each alone.
    log.fault('erasure.apart', error, { ...fields, count: jobs.length })
    await handBack(db.sql, jobs, { isAlone: true })
    return 'handed_back'
  }
  if (reason instanceof LeaseLost) {
    log.event('warn', 'erasure.lease_lost', fields)
    return 'lost'
  }
  const code = codeOf(error)
  log.fault('erasure.failed', error, { ...fields, code })
  const status = await failAttempt(db.sql, job, { step, code }, retryDelaysSeconds)
  // The response to the last commit may have been lost: then the job is completed, not failed.
  if (status === undefined) return 'lost'
  if (status === 'failed') {
    metrics.observeFailedJobs(1)
    log.event('error', 'erasure.gave_up', { ...fields, code })
  }
  return 'failed'
}

/** What is recorded of a fault: a code of ours, never words. */
export function codeOf(error: unknown): string {
  if (error instanceof ErasureFault) return error.code
  if (error instanceof BlobFault) return `blobs_${error.code}`
  if (isUnavailable(error)) return 'database_unavailable'
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code))
    return `database_${code.toLowerCase()}`
  return 'fault'
}
