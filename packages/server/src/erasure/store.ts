import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { fragment, join, type Sql } from '../sql.ts'

/** Who asked for an erasure, for the dashboard: ids alone. */
export type Requester = 'command' | 'ledger' | `key:${string}` | `member:${string}`

export interface NewDeletionJob {
  /** Given where a job is made again that a restored backup forgot. */
  earlier?: { id: string; createdAt: string }
  projectId: number
  personId: string
  keepRecordings: boolean
  requestedBy: Requester
}

export interface LockedPerson {
  id: string
  deletionJobId: string | null
}

const jobColumns = fragment`
  id, external_id as "externalId", keep_recordings as "keepRecordings", status,
  created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt"`

/** Locks a person, so that no other DELETE, POST, PATCH or identify decides about it meanwhile. */
export async function lockPerson(
  tx: Sql,
  projectId: number,
  by: { externalId: string } | { personId: string },
): Promise<LockedPerson | undefined> {
  const condition =
    'externalId' in by
      ? fragment`external_id = ${by.externalId}`
      : fragment`id = ${by.personId}::bigint`
  const [person] = await tx<LockedPerson>`
    select id, deletion_job_id as "deletionJobId"
    from persons
    where project_id = ${projectId} and ${condition}
    for update`
  return person
}

/** Makes a job and flags its person, which the caller has locked and found without a flag. */
export async function insertDeletionJob(tx: Sql, job: NewDeletionJob): Promise<DeletionJob> {
  const { projectId, personId } = job
  const [inserted] = await tx<DeletionJob>`
    with job as (
      insert into deletion_jobs
        (project_id, id, created_at, external_id, person_id, keep_recordings, requested_by)
      select project_id, coalesce(${job.earlier?.id ?? null}::uuid, gen_random_uuid()),
        coalesce(${job.earlier?.createdAt ?? null}::timestamptz, app_now()),
        external_id, id, ${job.keepRecordings}, ${job.requestedBy}
      from persons
      where project_id = ${projectId} and id = ${personId}
      returning *
    ), flagged as (
      update persons set deletion_job_id = job.id
      from job
      where persons.project_id = ${projectId} and persons.id = ${personId}
    )
    select ${jobColumns} from job`
  return inserted as DeletionJob
}

/** The last trace of persons; their links are cut by then. */
export async function deletePersons(
  tx: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await tx`delete from persons where project_id = ${projectId} and id = any(${personIds}::bigint[])`
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
  /** Only jobs that come after this one in the list. */
  after?: { createdAt: string; id: string }
}

/** Newest created first. */
export function listDeletionJobs(
  sql: Sql,
  projectId: number,
  { externalId, status, after }: JobFilter,
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

/** What the API never shows of a job: for the dashboard and the command line. */
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

/** What became of these jobs, by id; those that are not there are missing. */
export async function findStatuses(
  sql: Sql,
  jobs: readonly { projectId: number; jobId: string }[],
): Promise<Map<string, { status: DeletionJob['status']; requestedBy: Requester }>> {
  const rows = await sql<{ id: string; status: DeletionJob['status']; requestedBy: Requester }>`
    select job.id, job.status, job.requested_by as "requestedBy"
    from unnest(
      ${jobs.map(({ projectId }) => projectId)}::integer[],
      ${jobs.map(({ jobId }) => jobId)}::uuid[]) as asked (project_id, id)
    join deletion_jobs job on job.project_id = asked.project_id and job.id = asked.id`
  return new Map(rows.map(({ id, ...job }) => [id, job]))
}

/**
 * Retires browsers by their ids, for the ledger: whose they were is not known any more. Answers
 * those that are there.
 */
export async function retireBrowsers(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    update browsers set retired = true
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])
    returning id`
  return rows.map(({ id }) => id)
}

/** The only clock of the server. */
export async function readClock(sql: Sql): Promise<string> {
  const [row] = await sql<{ now: string }>`select app_now() as now`
  return (row as { now: string }).now
}
