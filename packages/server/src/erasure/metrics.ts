import { Counter, Histogram, type Registry } from 'prom-client'

export interface ErasureMetrics {
  observeAttempt(outcome: string, seconds: number): void
  /** Attempts of dead workers that this process has reaped. */
  observeReaped(attempts: number): void
  /** Jobs that ended as failed. */
  observeFailedJobs(jobs: number): void
}

/** The metrics of erasures. The only label is the outcome: no project, job or person. */
export function createErasureMetrics(registry: Registry): ErasureMetrics {
  const registers = [registry]
  const attempts = new Histogram({
    name: 'lethe_erasure_attempt_seconds',
    help: 'Duration of the attempts this process ran, by outcome.',
    labelNames: ['outcome'],
    buckets: [0.01, 0.05, 0.25, 1, 5, 30, 120, 600, 3_600],
    registers,
  })
  const reaped = new Counter({
    name: 'lethe_erasure_attempts_reaped_total',
    help: 'Attempts of dead workers that this process reaped.',
    registers,
  })
  const failed = new Counter({
    name: 'lethe_deletion_jobs_failed_total',
    help: 'Deletion jobs that this process saw end as failed.',
    registers,
  })
  return {
    observeAttempt: (outcome, seconds) => attempts.labels(outcome).observe(seconds),
    observeReaped: (count) => reaped.inc(count),
    observeFailedJobs: (count) => failed.inc(count),
  }
}
