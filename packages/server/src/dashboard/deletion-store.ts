import type { Reply } from '@lethe/contract/client.ts'
import type {
  Deletion,
  DeletionAttempt,
  DeletionFilter,
  previewDeletion as previewEndpoint,
} from '@lethe/contract/dashboard-deletions.ts'
import { attemptsMaximum } from '../erasure/job-leases.ts'
import type { Position } from '../http/page.ts'
import { fragment, join, type Sql } from '../sql.ts'

interface DeletionRow extends Omit<Deletion, 'requestedBy' | 'attemptsMaximum'> {
  requestedBy: string
  requesterName: string | null
}

/** Newest requested first. */
export async function listDeletions(
  sql: Sql,
  projectId: number,
  filter: DeletionFilter,
  after: Position<'createdAt' | 'id'> | null,
  limit: number,
): Promise<Deletion[]> {
  const conditions = [fragment`job.project_id = ${projectId}`, ...conditionsOf(filter)]
  if (after) {
    conditions.push(
      fragment`(job.created_at, job.id) < (${after.createdAt}::timestamptz, ${after.id}::uuid)`,
    )
  }
  const rows = await sql<DeletionRow>`
    ${selectDeletion(projectId)}
    where ${join(conditions, ' and ')}
    order by job.created_at desc, job.id desc
    limit ${limit}`
  return (await named(sql, rows)).map(deletionOf)
}

export async function findDeletion(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<Deletion | undefined> {
  const rows = await sql<DeletionRow>`
    ${selectDeletion(projectId)}
    where job.project_id = ${projectId} and job.id = ${id}`
  const [row] = await named(sql, rows)
  return row && deletionOf(row)
}

/** Oldest first. */
export function listAttempts(
  sql: Sql,
  projectId: number,
  jobId: string,
): Promise<DeletionAttempt[]> {
  return sql<DeletionAttempt>`
    select number, started_at as "startedAt", ended_at as "endedAt",
      coalesce(outcome, 'running') as outcome, step, error_code as "errorCode",
      json_build_object(
        'keys', removed_keys, 'sessions', removed_sessions, 'chunks', removed_chunks,
        'blobs', removed_blobs, 'bytes', removed_bytes, 'browsers', removed_browsers) as removed
    from deletion_attempts
    where project_id = ${projectId} and job_id = ${jobId}
    order by number`
}

export type DeletionPreview = Reply<typeof previewEndpoint>['body']

/** Counts what would be deleted with these persons. */
export async function previewDeletion(
  sql: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<DeletionPreview> {
  const [preview] = await sql<DeletionPreview>`
    select
      (select count(*)::integer from persons
       where project_id = ${projectId} and id = any(${personIds}::bigint[])) as persons,
      count(distinct l.browser_id)::integer as browsers,
      count(s.id)::integer as sessions,
      count(s.id) filter (
        where coalesce(s.last_event_at, s.last_chunk_at, s.started_at) < l.linked_at)::integer
        as "sessionsBeforeIdentification",
      coalesce(sum(s.bytes), 0)::float8 as bytes
    from person_browsers l
    left join sessions s
      on s.project_id = l.project_id and s.browser_id = l.browser_id and not s.closed
    where l.project_id = ${projectId} and l.person_id = any(${personIds}::bigint[])`
  return preview as DeletionPreview
}

const selectDeletion = (projectId: number) => fragment`
  select json_build_object(
      'id', job.id, 'externalId', job.external_id, 'keepRecordings', job.keep_recordings,
      'status', job.status, 'createdAt', instant_text(job.created_at),
      'startedAt', instant_text(job.started_at), 'completedAt', instant_text(job.completed_at)
    ) as job,
    case
      when job.person_id is not null then job.person_id
      when job.status = 'failed' then (
        select p.id from persons p
        where p.project_id = ${projectId} and p.external_id = job.external_id
          and p.created_at <= job.created_at)
    end as "personId",
    job.requested_by as "requestedBy",
    (select k.name from keys k
     where k.project_id = ${projectId} and 'key:' || k.id = job.requested_by) as "requesterName",
    job.attempts, last.step,
    case when job.status in ('pending', 'running') and job.lease_token is null
      then job.next_attempt_at end as "nextAttemptAt",
    last.error_code as "lastErrorCode",
    case when job.status = 'failed' then last.ended_at end as "failedAt",
    json_build_object(
      'keys', coalesce(last.keys, 0), 'sessions', job.removed_sessions, 'chunks', job.removed_chunks, 'blobs', job.removed_blobs,
      'bytes', job.removed_bytes, 'browsers', job.removed_browsers) as removed,
    exists (
      select from receipts r where r.project_id = ${projectId} and r.job_id = job.id
    ) as "hasReceipt",
    (select p.purged_at from job_purges p
     where p.project_id = ${projectId} and p.job_id = job.id) as "purgedAt"
  from deletion_jobs job
  left join lateral (
    select (array_agg(a.step order by a.number desc)
        filter (where a.step is not null))[1] as step,
      (array_agg(a.error_code order by a.number desc)
        filter (where a.error_code is not null))[1] as error_code,
      max(a.ended_at) as ended_at, sum(a.removed_keys) as keys
    from deletion_attempts a
    where a.project_id = ${projectId} and a.job_id = job.id
  ) last on true`

/** Adds the names of requesting members; in a second query, because members have no project. */
async function named(sql: Sql, rows: DeletionRow[]): Promise<DeletionRow[]> {
  const members = await sql<{ requester: string; name: string }>`
    select 'member:' || id as requester, name
    from auth.members
    where 'member:' || id = any(${rows.map(({ requestedBy }) => requestedBy)})`
  const names = new Map(members.map(({ requester, name }) => [requester, name]))
  return rows.map((row) => ({
    ...row,
    requesterName: row.requesterName ?? names.get(row.requestedBy) ?? null,
  }))
}

function conditionsOf({ status, externalId, keepRecordings, from, to }: DeletionFilter) {
  const conditions = []
  if (status === 'open') conditions.push(fragment`job.status in ('pending', 'running')`)
  else if (status !== undefined) conditions.push(fragment`job.status = ${status}`)
  if (externalId !== undefined) conditions.push(fragment`job.external_id = ${externalId}`)
  if (keepRecordings !== undefined) {
    conditions.push(fragment`job.keep_recordings = ${keepRecordings}`)
  }
  if (from !== undefined) conditions.push(fragment`job.created_at >= ${from}::timestamptz`)
  if (to !== undefined) conditions.push(fragment`job.created_at < ${to}::timestamptz`)
  return conditions
}

function deletionOf({ requestedBy, requesterName: name, ...row }: DeletionRow): Deletion {
  const [kind, id = null] = requestedBy.split(':')
  const requester = { kind: kind as Deletion['requestedBy']['kind'], id, name }
  return { ...row, requestedBy: requester, attemptsMaximum }
}
