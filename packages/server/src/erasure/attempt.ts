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
} from './job-leases.ts'
import { type Effects, holdLease, type Lease, type LeasePace } from './lease.ts'
import type { ErasureMetrics } from './metrics.ts'
import type { Signer } from './receipts.ts'
import { type Erasure, ErasureFault, stepsFor } from './steps.ts'

/** What an attempt needs. */
export interface AttemptOptions extends Effects {
  log: Log
  metrics: ErasureMetrics
  signer: Signer
  suppressions: Suppressions
  retryDelaysSeconds: RetryDelays
  backupRetentionDays: number
  leasePace?: LeasePace
  /** Whether the ledger says that the persons were erased before: blobs may be missing. */
  isErasedAgain?: boolean
}

export type AttemptOutcome = 'completed' | 'failed' | 'lost' | 'handed_back'

/** The abort reason of a graceful stop. */
export class Stopping extends Error {
  override readonly name = 'Stopping'
}

/**
 * Claims the job that has been due longest, and others that can be processed with it (`limit` in
 * all), and makes one attempt. Returns undefined if no job is due.
 */
export async function runNextAttempt(
  options: AttemptOptions,
  limit = 1,
): Promise<AttemptOutcome | undefined> {
  const sentAt = performance.now()
  const jobs = await claimJobs(options.db.sql, limit)
  return isAny(jobs) ? runAttempts(options, jobs, sentAt) : undefined
}

export const isAny = (jobs: readonly ClaimedJob[]): jobs is ClaimedJobs => jobs.length > 0

/**
 * Runs all steps for these claimed jobs together. If that fails for several jobs, each is retried
 * alone, without delay. `sentAt` is the performance.now() at which the claim was sent. Aborting
 * `stopping` hands the attempts back. Throws only if the outcome could not be recorded; the process
 * that reaps the attempts then records it.
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

/** Counts what the blob store removed even if the attempt fails. */
async function noteRemoved({ db }: AttemptOptions, jobs: ClaimedJobs, lease: Lease): Promise<void> {
  const removed = lease.takeUnnoted()
  if (removed.size === 0) return
  const { step } = lease
  // Best effort: the lease may be lost, or the database unreachable.
  await noteProgress(db.sql, jobs, { step, removed }, false).catch(() => {})
}

/** Records the outcome of attempts that did not complete their jobs. */
async function endAttempts(
  { db, log, metrics, retryDelaysSeconds }: AttemptOptions,
  jobs: ClaimedJobs,
  lease: Lease,
  error: unknown,
): Promise<AttemptOutcome> {
  const { step } = lease
  const [job, ...others] = jobs
  const fields = { ...fieldsOf(job), step }
  // After an abort, the reason of the abort counts, not the error it caused.
  const reason = lease.signal.aborted ? lease.signal.reason : error
  if (reason instanceof Stopping) {
    await handBack(db.sql, jobs, { isAlone: false })
    for (const one of jobs) log.event('info', 'erasure.handed_back', { ...fieldsOf(one), step })
    return 'handed_back'
  }
  if (others.length > 0) {
    // Retried alone, each job shows whether it was the cause.
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
  // If only the response to the last commit was lost, the job is completed, not failed.
  if (status === undefined) return 'lost'
  if (status === 'failed') {
    metrics.observeFailedJobs(1)
    log.event('error', 'erasure.gave_up', { ...fields, code })
  }
  return 'failed'
}

/** The code recorded for a fault: one of ours, never a message. */
export function codeOf(error: unknown): string {
  if (error instanceof ErasureFault) return error.code
  if (error instanceof BlobFault) return `blobs_${error.code}`
  if (isUnavailable(error)) return 'database_unavailable'
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code))
    return `database_${code.toLowerCase()}`
  return 'fault'
}
