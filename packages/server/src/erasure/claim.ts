import { fragment, raw, type Sql } from '../sql.ts'

/* How a worker comes by a job. Works across projects, as a worker does. */

/** An attempt that is lost is noticed this long after its worker last showed that it moves on. */
export const leaseSeconds = 30

/** Jobs that are worked on together at most. */
export const togetherMaximum = 32

/** A person with more browsers, or more sessions and chunks, is worked on alone. */
export const browsersOfSmall = 15
export const rowsOfSmall = 300

/** A job in the hands of one worker, as long as it holds the lease of this token. */
export interface ClaimedJob {
  projectId: number
  id: string
  personId: string
  keepRecordings: boolean
  createdAt: string
  attempt: number
  leaseToken: string
}

/** Jobs that one worker has in hand together: of one project, all with or all without recordings. */
export type ClaimedJobs = readonly [ClaimedJob, ...ClaimedJob[]]

const claimedColumns = fragment`
  project_id as "projectId", id, person_id as "personId", keep_recordings as "keepRecordings",
  created_at as "createdAt", attempts as attempt, lease_token as "leaseToken"`

export const leaseEnd = fragment`app_now() + ${raw(String(leaseSeconds))} * interval '1 second'`

/**
 * Begins the next attempt of the job that is due longest, and of up to `limit` in all that can be
 * worked on together with it: first attempts at persons with little recorded, of one project, all
 * with or all without their recordings. (Where one brings its worker down again and again, it does
 * so alone.) An attempt is counted here, so that one whose worker dies counts like any other.
 */
export async function claimJobs(sql: Sql, limit: number): Promise<ClaimedJob[]> {
  return sql<ClaimedJob>`
    with due as (
      select project_id, id, person_id, keep_recordings, next_attempt_at, attempts, is_alone
      from deletion_jobs
      where status in ('pending', 'running') and lease_token is null
        -- As a subquery it is one moment for the whole statement, which the index can look for.
        and next_attempt_at <= (select app_now())
      order by next_attempt_at
      limit ${limit}
      for update skip locked
    ), sized as (
      select due.*, row_number() over (order by next_attempt_at, id) = 1 as is_first,
        ${isSmall} as is_small
      from due
    ), claimed as (
      update deletion_jobs job
      set status = 'running', attempts = job.attempts + 1,
        started_at = coalesce(job.started_at, app_now()),
        lease_token = gen_random_uuid(), lease_until = ${leaseEnd}
      from sized one, sized first
      where first.is_first and job.project_id = one.project_id and job.id = one.id
        and (one.is_first
          or one.is_small and first.is_small and one.project_id = first.project_id
            and one.keep_recordings = first.keep_recordings)
      returning job.*
    ), noted as (
      insert into deletion_attempts (project_id, job_id, number)
      select project_id, id, attempts from claimed
    )
    select ${claimedColumns} from claimed order by created_at, id`
}

/** Of the person of a job `due`; nothing is added to its recordings any more. */
const isSmall = fragment`(
  due.attempts = 0 and not due.is_alone
  and (select count(*)
   from (
     select from person_browsers l
     where l.project_id = due.project_id and l.person_id = due.person_id
     limit ${raw(String(browsersOfSmall + 1))}
   ) l) <= ${raw(String(browsersOfSmall))}
  and (select coalesce(sum(1 + s.chunks), 0)
   from (
     select s.chunks
     from person_browsers l
     join sessions s on s.project_id = l.project_id and s.browser_id = l.browser_id
     where l.project_id = due.project_id and l.person_id = due.person_id
     limit ${raw(String(rowsOfSmall + 1))}
   ) s) <= ${raw(String(rowsOfSmall))}
)`

/**
 * Takes an open job over from whatever attempt it is in, which thereby loses its lease, and goes
 * on in that attempt's place: none is counted. For the ledger, which knows that the job is to be
 * completed now. Answers undefined where the job is not open.
 */
export async function takeOver(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<ClaimedJob | undefined> {
  const [job] = await sql<ClaimedJob>`
    with taken as (
      update deletion_jobs
      set status = 'running', attempts = greatest(attempts, 1),
        started_at = coalesce(started_at, app_now()),
        lease_token = gen_random_uuid(), lease_until = ${leaseEnd}
      where project_id = ${projectId} and id = ${id} and status in ('pending', 'running')
      returning *
    ), noted as (
      insert into deletion_attempts (project_id, job_id, number)
      select project_id, id, attempts from taken
      on conflict (project_id, job_id, number) do update
      set ended_at = null, outcome = null, error_code = null
    )
    select ${claimedColumns} from taken`
  return job
}
