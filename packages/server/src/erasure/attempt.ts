import { BlobFault } from '../blobs/blobs.ts'
import { isUnavailable } from '../error-handler.ts'
import type { Log } from '../log.ts'
import {
  type ClaimedJob,
  claimJobs,
  failAttempt,
  handBack,
  LeaseLost,
  type RetryDelays,
} from './attempts.ts'
import { type Effects, holdLease, type Lease, type LeasePace } from './lease.ts'
import type { ErasureMetrics } from './metrics.ts'
import type { Signer } from './receipts.ts'
import { type Erasure, ErasureFault, stepsFor } from './steps.ts'

/** What attempts need, wherever they run. */
export interface AttemptOptions extends Effects {
  log: Log
  metrics: ErasureMetrics
  signer: Signer
  retryDelaysSeconds: RetryDelays
  backupRetentionDays: number
  leasePace?: LeasePace
}

export type AttemptOutcome = 'completed' | 'failed' | 'lost' | 'handed_back'

/** The reason of a signal that ends attempts since the process is about to end. */
export class Stopping extends Error {
  override readonly name = 'Stopping'
}

/** Claims the job that is due longest and makes one attempt; undefined where none is due. */
export async function runNextAttempt(options: AttemptOptions): Promise<AttemptOutcome | undefined> {
  const sentAt = performance.now()
  const [job] = await claimJobs(options.db.sql, 1)
  return job && runAttempt(options, job, sentAt)
}

/** Attempts until none is due. */
export async function runAll(options: AttemptOptions): Promise<void> {
  while ((await runNextAttempt(options)) !== undefined);
}

/**
 * Makes one attempt at a claimed job: its steps from the first to the last. `sentAt` is when the
 * claim was sent, on the clock of performance.now(). An aborted `stopping` hands the attempt back.
 * Throws only where the end of the attempt could not be noted; whoever reaps it does that then.
 */
export async function runAttempt(
  options: AttemptOptions,
  job: ClaimedJob,
  sentAt: number,
  stopping?: AbortSignal,
): Promise<AttemptOutcome> {
  const lease = holdLease(options, job, sentAt, stopping, options.leasePace)
  const fields = { projectId: job.projectId, jobId: job.id, attempt: job.attempt }
  let outcome: AttemptOutcome
  try {
    await runSteps(options, job, lease)
    outcome = 'completed'
    options.log.event('info', 'erasure.completed', fields)
  } catch (error) {
    outcome = await endAttempt(options, job, lease, error)
  } finally {
    lease.end()
  }
  options.metrics.observeAttempt(outcome, (performance.now() - sentAt) / 1_000)
  return outcome
}

async function runSteps(
  { signer, backupRetentionDays }: AttemptOptions,
  job: ClaimedJob,
  lease: Lease,
): Promise<void> {
  const { effects } = lease
  const erasure: Erasure = { ...effects, job, lease, signer, backupRetentionDays, verifiedAt: null }
  for (const step of stepsFor(job)) {
    lease.step = step.name
    await step.run(erasure)
  }
}

/** Notes how an attempt ended that did not complete its job. */
async function endAttempt(
  { db, log, metrics, retryDelaysSeconds }: AttemptOptions,
  job: ClaimedJob,
  lease: Lease,
  error: unknown,
): Promise<AttemptOutcome> {
  const { step } = lease
  const fields = { projectId: job.projectId, jobId: job.id, attempt: job.attempt, step }
  // Whatever was aborted says so in its own words; why it was aborted is what counts.
  const reason = lease.signal.aborted ? lease.signal.reason : error
  if (reason instanceof LeaseLost) {
    log.event('warn', 'erasure.lease_lost', fields)
    return 'lost'
  }
  if (reason instanceof Stopping) {
    await handBack(db.sql, job)
    log.event('info', 'erasure.handed_back', fields)
    return 'handed_back'
  }
  const code = codeOf(error)
  log.fault('erasure.failed', error, { ...fields, code })
  const status = await failAttempt(db.sql, job, { step, code }, retryDelaysSeconds)
  // The answer to the last commit may have been lost: then the job is completed, not failed.
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
