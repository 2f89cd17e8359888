import { Gauge, type Registry } from 'prom-client'
import { failedDeletions } from '../failed-deletions.ts'
import type { Db, Sql } from '../sql.ts'

/** Facts about the whole installation, read from the database. */
export interface Facts {
  pending: number
  running: number
  failed: number
  oldestOpenSeconds: number
  stuck: number
  workerSeenSeconds: number
  pendingDeliveries: number
  failedDeliveries: number
  oldestDeliverySeconds: number
  lostChunks: number
}

/** While a worker runs, it claims a due job, or one whose worker is lost, within seconds. */
const stuckSeconds = 300

/** Older failed deliveries are not counted. */
const failedDeliveryHours = 24

export async function readFacts(sql: Sql): Promise<Facts> {
  const [facts] = await sql<Facts>`
    select jobs.pending, jobs.running, jobs.stuck, jobs.oldest as "oldestOpenSeconds",
      (select count(*)::integer from ${failedDeletions()} f) as failed,
      coalesce(extract(epoch from app_now() - seen.at)::float8, 'infinity')
        as "workerSeenSeconds",
      deliveries.pending as "pendingDeliveries", deliveries.failed as "failedDeliveries",
      deliveries.oldest as "oldestDeliverySeconds",
      (select coalesce(sum(lost_chunks), 0)::float8 from blob_comparisons) as "lostChunks"
    from worker_seen seen
    cross join (
      select count(*) filter (where status = 'pending')::integer as pending,
        count(*) filter (where status = 'running')::integer as running,
        count(*) filter (
          where coalesce(lease_until, next_attempt_at)
            < app_now() - ${stuckSeconds} * interval '1 second'
        )::integer as stuck,
        coalesce(extract(epoch from app_now() - min(created_at)), 0)::float8 as oldest
      from deletion_jobs
      where status in ('pending', 'running')
    ) jobs
    cross join (
      select count(*) filter (where state = 'pending')::integer as pending,
        count(*) filter (where state = 'failed')::integer as failed,
        coalesce(
          extract(epoch from app_now() - min(created_at) filter (where state = 'pending')), 0
        )::float8 as oldest
      from webhook_deliveries
      where state = 'pending'
        or ended_at > app_now() - ${failedDeliveryHours} * interval '1 hour'
    ) deliveries`
  return facts as Facts
}

const gauges: [name: string, help: string, of: (facts: Facts) => number][] = [
  ['deletion_jobs_pending', 'Deletion jobs that wait for an attempt.', (one) => one.pending],
  ['deletion_jobs_running', 'Deletion jobs in an attempt.', (one) => one.running],
  [
    'deletion_jobs_failed',
    'Persons whose erasure failed five times and who were not erased since; an operator has to act.',
    (one) => one.failed,
  ],
  [
    'deletion_jobs_stuck',
    `Open deletion jobs that are due, but that no worker has worked on for ${stuckSeconds} seconds.`,
    (one) => one.stuck,
  ],
  [
    'deletion_jobs_oldest_open_seconds',
    'For how long the oldest unfinished deletion job has been open.',
    (one) => one.oldestOpenSeconds,
  ],
  [
    'worker_last_seen_seconds',
    'How long ago any process last looked for deletion jobs.',
    (one) => one.workerSeenSeconds,
  ],
  ['webhook_deliveries_pending', 'Events on their way to webhooks.', (o) => o.pendingDeliveries],
  [
    'webhook_deliveries_failed',
    `Webhook deliveries of the last ${failedDeliveryHours} hours that failed in all their attempts.`,
    (one) => one.failedDeliveries,
  ],
  [
    'webhook_deliveries_oldest_seconds',
    'Age in seconds of the oldest webhook delivery that has not ended.',
    (one) => one.oldestDeliverySeconds,
  ],
  [
    'chunks_without_blob',
    'Chunks of recordings whose blob was missing at the last daily comparison.',
    (one) => one.lostChunks,
  ],
]

/**
 * Adds metrics that each scrape reads from the database, so that every process has them. If the
 * database is down, they are missing and `lethe_database_up` is 0.
 */
export function addFactMetrics(registry: Registry, db: Db): void {
  const registers = [registry]
  // Collected before the facts, because they need a connection themselves.
  new Gauge({
    name: 'lethe_database_pool_waiting',
    help: 'Statements of this process that wait for a connection of its pool.',
    registers,
    collect() {
      this.set(db.waiting())
    },
  })
  const facts = shared(() => readFacts(db.sql).catch(() => undefined))
  new Gauge({
    name: 'lethe_database_up',
    help: 'Whether this process can reach the database.',
    registers,
    async collect() {
      this.set((await facts()) ? 1 : 0)
    },
  })
  for (const [name, help, of] of gauges) {
    new Gauge({
      name: `lethe_${name}`,
      help,
      registers,
      async collect() {
        const found = await facts()
        if (found) this.set(of(found))
        else this.remove()
      },
    })
  }
}

/** Concurrent calls share one result. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined
  return () => {
    asking ??= ask().finally(() => {
      asking = undefined
    })
    return asking
  }
}
