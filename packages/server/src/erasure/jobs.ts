import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import type { Position } from '../http/page.ts'
import { fragment, join, type Sql } from '../sql.ts'

/** Who requested an erasure, for the dashboard. IDs only. */
export type Requester = 'command' | 'ledger' | `key:${string}` | `member:${string}`

export interface NewDeletionJob {
  /** Set when a job is created again that is missing after the restore of a backup. */
  earlier?: { id: string; createdAt: string }
  projectId: number
  personId: string
  keepRecordings: boolean
  requestedBy: Requester
}

const jobColumns = fragment`
  id, external_id as "externalId", keep_recordings as "keepRecordings", status,
  created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt"`

/** Creates a job and flags its person. The caller has locked the person and seen no flag. */
export async function insertDeletionJob(tx: Sql, job: NewDeletionJob): Promise<DeletionJob> {
  const { projectId, personId } = job
  const [inserted] = await tx<DeletionJob>`
    with job as (
      insert into deletion_jobs
        (project_id, id, created_at, external_id, person_id, keep_recordings, requested_by,
          earlier_job_id)
      select project_id, coalesce(${job.earlier?.id ?? null}::uuid, gen_random_uuid()),
        coalesce(${job.earlier?.createdAt ?? null}::timestamptz, app_now()),
        external_id, id, ${job.keepRecordings}, ${job.requestedBy}, failed_job_id
      from persons
      where project_id = ${projectId} and id = ${personId}
      returning *
    ), flagged as (
      update persons set deletion_job_id = job.id -- fault: delete-flags-person
      from job
      where persons.project_id = ${projectId} and persons.id = ${personId}
    )
    select ${jobColumns} from job`
  return inserted as DeletionJob
}

export async function findDeletionJob(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<DeletionJob | undefined> {
  const [job] = await sql<DeletionJob>`
    select ${jobColumns} from deletion_jobs where project_id = ${projectId} and id = ${id}`
  return job
}

export interface JobFilter {
  externalId?: string
  status?: DeletionJob['status']
}

/** Newest created first. */
export function listDeletionJobs(
  sql: Sql,
  projectId: number,
  { externalId, status }: JobFilter,
  after: Position<'createdAt' | 'id'> | null,
  limit: number,
): Promise<DeletionJob[]> {
  const conditions = [fragment`project_id = ${projectId}`]
  if (externalId !== undefined) conditions.push(fragment`external_id = ${externalId}`)
  if (status !== undefined) conditions.push(fragment`status = ${status}`)
  if (after) {
    conditions.push(
      fragment`(created_at, id) < (${after.createdAt}::timestamptz, ${after.id}::uuid)`,
    )
  }
  return sql<DeletionJob>`
    select ${jobColumns}
    from deletion_jobs
    where ${join(conditions, ' and ')}
    order by created_at desc, id desc
    limit ${limit}`
}

/** Details for the dashboard and the command line; the API never returns them. */
export interface DeletionJobDetails {
  requestedBy: Requester
  nextAttemptAt: string | null
  removed: Removed
  attempts: AttemptNote[]
}

export interface Removed {
  sessions: number
  chunks: number
  blobs: number
  bytes: number
  browsers: number
}

export interface AttemptNote {
  number: number
  startedAt: string
  endedAt: string | null
  step: string | null
  outcome: 'completed' | 'failed' | 'lost' | null
  errorCode: string | null
}

export async function findDeletionJobDetails(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<DeletionJobDetails | undefined> {
  const [job] = await sql<Omit<DeletionJobDetails, 'attempts'>>`
    select requested_by as "requestedBy",
      case when status in ('pending', 'running') and lease_token is null
        then next_attempt_at end as "nextAttemptAt",
      json_build_object(
        'sessions', removed_sessions, 'chunks', removed_chunks, 'blobs', removed_blobs,
        'bytes', removed_bytes, 'browsers', removed_browsers) as removed
    from deletion_jobs
    where project_id = ${projectId} and id = ${id}`
  if (!job) return undefined
  const attempts = await sql<AttemptNote>`
    select number, started_at as "startedAt", ended_at as "endedAt", step, outcome,
      error_code as "errorCode"
    from deletion_attempts
    where project_id = ${projectId} and job_id = ${id}
    order by number`
  return { ...job, attempts }
}

/** Returns the jobs' statuses by ID, without jobs that do not exist. */
export async function findStatuses(
  sql: Sql,
  jobs: readonly { projectId: number; jobId: string }[],
): Promise<Map<string, { status: DeletionJob['status']; requestedBy: Requester }>> {
  const found = new Map<string, { status: DeletionJob['status']; requestedBy: Requester }>()
  for (const [projectId, its] of Map.groupBy(jobs, (one) => one.projectId)) {
    const rows = await sql<{ id: string; status: DeletionJob['status']; requestedBy: Requester }>`
      select id, status, requested_by as "requestedBy"
      from deletion_jobs
      where project_id = ${projectId} and id = any(${its.map(({ jobId }) => jobId)}::uuid[])`
    for (const { id, ...job } of rows) found.set(id, job)
  }
  return found
}

/** Reads the clock of the database, which all processes share. */
export async function readClock(sql: Sql): Promise<string> {
  const [row] = await sql<{ now: string }>`select app_now() as now`
  return (row as { now: string }).now
}

/** Signals new jobs to workers. The payload is empty. */
export const jobsChannel = 'lethe_deletion_jobs'

/** Notifies workers of a job. A missed notification does not matter: workers also poll. */
export function notifyWorkers(sql: Sql): void {
  sql`select pg_notify(${jobsChannel}, '')`.catch(() => {})
}

/** Signals new deliveries to the processes that send them. */
export const deliveriesChannel = 'lethe_webhook_deliveries'

/** Notifies workers of a delivery. A missed notification does not matter: workers also poll. */
export function notifyDeliveries(sql: Sql): void {
  sql`select pg_notify(${deliveriesChannel}, '')`.catch(() => {})
}

/** Records that a worker is running, for the dashboard. */
export async function noteWorker(sql: Sql): Promise<void> {
  await sql`update worker_seen set at = app_now()`
}
