import { failedDeletions } from '../failed-deletions.ts'
import type { Sql } from '../sql.ts'

/** Workers poll every few seconds; after this time without a poll none is running. */
const workerSeconds = 60

export interface SystemFacts {
  databaseBytes: number
  workerSeenAt: string | null
  isWorkerThere: boolean
  pending: number
  running: number
  failed: number
  oldestPendingAt: string | null
  oldestPendingJobId: string | null
  pendingDeliveries: number
  oldestDeliveryAt: string | null
  now: string
}

/** Facts about the whole installation, over all projects. */
export async function readSystemFacts(sql: Sql): Promise<SystemFacts> {
  const [facts] = await sql<SystemFacts>`
    select pg_database_size(current_database())::float8 as "databaseBytes",
      seen.at as "workerSeenAt",
      coalesce(seen.at > app_now() - ${workerSeconds} * interval '1 second', false)
        as "isWorkerThere",
      jobs.pending, jobs.running,
      (select count(*)::integer from ${failedDeletions()} f) as failed,
      oldest.created_at as "oldestPendingAt", oldest.id as "oldestPendingJobId",
      deliveries.pending as "pendingDeliveries", deliveries.oldest as "oldestDeliveryAt",
      app_now() as now
    from worker_seen seen
    cross join (
      select count(*) filter (where status = 'pending')::integer as pending,
        count(*) filter (where status = 'running')::integer as running
      from deletion_jobs
      where status in ('pending', 'running')
    ) jobs
    cross join (
      select count(*)::integer as pending, min(created_at) as oldest
      from webhook_deliveries
      where state = 'pending'
    ) deliveries
    left join lateral (
      select id, created_at
      from deletion_jobs
      where status in ('pending', 'running') and lease_token is null
      order by next_attempt_at
      limit 1
    ) oldest on true`
  return facts as SystemFacts
}
