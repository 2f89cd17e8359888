import { fragment, raw, type Sql } from '../sql.ts'
import type { Removed } from './store.ts'

/*
 * Attempts: who may work on a job, until when, and what comes after. The functions that begin and
 * end attempts work across projects, as a worker does; all others name the project of their job.
 */

/** An attempt that is lost is noticed this long after its worker last showed that it moves on. */
export const leaseSeconds = 30

export const attemptsMaximum = 5

/** The seconds between one attempt and the next, from the first to the fifth. */
export type RetryDelays = readonly [number, number, number, number]

/** Where workers listen for new jobs. What is sent is empty: the database knows the rest. */
export const jobsChannel = 'lethe_deletion_jobs'

/** Jobs whose lost attempts are noted by one statement. */
const reapedAPart = 100

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

/** Another worker has the job, or nobody: whoever gets this stops at once and changes nothing. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

const claimedColumns = fragment`
  project_id as "projectId", id, person_id as "personId", keep_recordings as "keepRecordings",
  created_at as "createdAt", attempts as attempt, lease_token as "leaseToken"`

const leaseEnd = fragment`app_now() + ${raw(String(leaseSeconds))} * interval '1 second'`

const isHeld = (job: ClaimedJob) => fragment`
  project_id = ${job.projectId} and id = ${job.id}
  and lease_token = ${job.leaseToken} and lease_until > app_now()`

/** Says that there is a job. Whether it is heard does not matter: workers look by themselves too. */
export function notifyWorkers(sql: Sql): void {
  sql`select pg_notify(${jobsChannel}, '')`.catch(() => {})
}

/**
 * Begins the next attempt of the jobs that are due longest, at most `limit`. The attempt is counted
 * here, so that one whose worker dies counts like any other.
 */
export function claimJobs(sql: Sql, limit: number): Promise<ClaimedJob[]> {
  return sql<ClaimedJob>`
    with due as (
      select project_id, id
      from deletion_jobs
      where status in ('pending', 'running') and lease_token is null
        -- As a subquery it is one moment for the whole statement, which the index can look for.
        and next_attempt_at <= (select app_now())
      order by next_attempt_at
      limit ${limit}
      for update skip locked
    ), claimed as (
      update deletion_jobs job
      set status = 'running', attempts = attempts + 1,
        started_at = coalesce(started_at, app_now()),
        lease_token = gen_random_uuid(), lease_until = ${leaseEnd}
      from due
      where job.project_id = due.project_id and job.id = due.id
      returning job.*
    ), noted as (
      insert into deletion_attempts (project_id, job_id, number)
      select project_id, id, attempts from claimed
    )
    select ${claimedColumns} from claimed`
}

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

export interface Progress {
  step: string
  /** What the blob store removed since the last time it was noted. */
  blobs: number
  bytes: number
}

/** Notes how far the attempt is; where `renew` says so the lease begins anew. Throws LeaseLost. */
export async function noteProgress(
  sql: Sql,
  job: ClaimedJob,
  { step, blobs, bytes }: Progress,
  renew: boolean,
): Promise<void> {
  const held = await sql`
    with held as (
      update deletion_jobs
      set removed_blobs = removed_blobs + ${blobs}, removed_bytes = removed_bytes + ${bytes},
        lease_until = case when ${renew}::boolean then ${leaseEnd} else lease_until end
      where ${isHeld(job)}
      returning project_id, id, attempts
    )
    update deletion_attempts a set step = ${step}
    from held
    where a.project_id = held.project_id and a.job_id = held.id and a.number = held.attempts
    returning a.number`
  if (held.length === 0) throw new LeaseLost()
}

/** The first statement of every transaction of a worker. Throws LeaseLost. */
export async function fence(tx: Sql, job: ClaimedJob): Promise<void> {
  const held = await tx`
    select from deletion_jobs where ${isHeld(job)} for no key update`
  if (held.length === 0) throw new LeaseLost()
}

/** Counts the rows that this transaction removes, which has begun with the fence. */
export async function addRemovedRows(
  tx: Sql,
  job: ClaimedJob,
  { sessions = 0, chunks = 0, browsers = 0 }: Partial<Removed>,
): Promise<void> {
  await tx`
    update deletion_jobs
    set removed_sessions = removed_sessions + ${sessions},
      removed_chunks = removed_chunks + ${chunks},
      removed_browsers = removed_browsers + ${browsers}
    where project_id = ${job.projectId} and id = ${job.id}`
}

export interface CompletedJob {
  projectId: number
  id: string
  externalId: string
  keepRecordings: boolean
  createdAt: string
  startedAt: string
  completedAt: string
  attempts: number
  removed: Removed
}

/** Completes the job, in the transaction in which the person goes. Throws LeaseLost. */
export async function completeJob(
  tx: Sql,
  job: ClaimedJob,
  { browsers, blobs, bytes }: Pick<Removed, 'browsers' | 'blobs' | 'bytes'>,
): Promise<CompletedJob> {
  const [completed] = await tx<CompletedJob>`
    with completed as (
      update deletion_jobs
      set status = 'completed', completed_at = app_now(), person_id = null,
        lease_token = null, lease_until = null,
        removed_browsers = removed_browsers + ${browsers},
        removed_blobs = removed_blobs + ${blobs}, removed_bytes = removed_bytes + ${bytes}
      where ${isHeld(job)}
      returning *
    ), noted as (
      update deletion_attempts a
      set outcome = 'completed', ended_at = completed.completed_at
      from completed
      where a.project_id = completed.project_id and a.job_id = completed.id
        and a.number = completed.attempts
    )
    select project_id as "projectId", id, external_id as "externalId",
      keep_recordings as "keepRecordings", created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt",
      attempts,
      json_build_object(
        'sessions', removed_sessions, 'chunks', removed_chunks, 'blobs', removed_blobs,
        'bytes', removed_bytes, 'browsers', removed_browsers) as removed
    from completed`
  if (!completed) throw new LeaseLost()
  return completed
}

/**
 * Ends an attempt that failed: the next one is due after its delay, counted from now; after the
 * last one the job is failed and its person usable again. Answers what became of the job, or
 * undefined where the lease is lost, as whoever noticed that has seen to it.
 */
export async function failAttempt(
  sql: Sql,
  job: ClaimedJob,
  { step, code }: { step: string; code: string },
  delays: RetryDelays,
): Promise<'running' | 'failed' | undefined> {
  const [ended] = await sql<{ status: 'running' | 'failed' }>`
    with held as (
      select project_id, id, person_id, app_now() as failed_at
      from deletion_jobs
      where ${isHeld(job)}
      for no key update
    ), ${endHeld('failed', step, code, delays)}
    select status from ended`
  return ended?.status
}

/**
 * Ends the attempts whose lease has run out, wherever their workers are. The next one is due after
 * its delay, counted from the end of the lease. Answers how many were lost, and how many jobs have
 * failed by that.
 */
export async function reapLostAttempts(
  sql: Sql,
  delays: RetryDelays,
): Promise<{ lost: number; failed: number }> {
  const count = { lost: 0, failed: 0 }
  for (;;) {
    const reaped = await sql<{ status: 'running' | 'failed' }>`
      with held as (
        select project_id, id, person_id, lease_until as failed_at
        from deletion_jobs
        where lease_token is not null and lease_until <= (select app_now())
        order by lease_until
        limit ${reapedAPart}
        for no key update skip locked
      ), ${endHeld('lost', null, 'worker_lost', delays)}
      select status from ended`
    count.lost += reaped.length
    count.failed += reaped.filter(({ status }) => status === 'failed').length
    if (reaped.length < reapedAPart) return count
  }
}

/** Ends the attempts of the jobs in `held`. The lock of a job comes before that of its person. */
function endHeld(
  outcome: 'failed' | 'lost',
  step: string | null,
  code: string,
  delays: RetryDelays,
) {
  return fragment`
    ended as (
      update deletion_jobs job
      set status = case when attempts < ${attemptsMaximum} then 'running' else 'failed' end,
        person_id = case when attempts < ${attemptsMaximum} then job.person_id end,
        next_attempt_at = coalesce(
          held.failed_at + (${delays}::integer[])[attempts] * interval '1 second',
          next_attempt_at),
        lease_token = null, lease_until = null
      from held
      where job.project_id = held.project_id and job.id = held.id
      returning job.project_id, job.id, job.status, job.attempts, held.person_id, held.failed_at
    ), freed as (
      update persons set deletion_job_id = null
      from ended
      where ended.status = 'failed' and persons.project_id = ended.project_id
        and persons.id = ended.person_id and persons.deletion_job_id = ended.id
    ), noted as (
      update deletion_attempts a
      set outcome = ${outcome}, ended_at = ended.failed_at, error_code = ${code},
        step = coalesce(${step}, a.step)
      from ended
      where a.project_id = ended.project_id and a.job_id = ended.id and a.number = ended.attempts
    )`
}

/** Gives an attempt back that a graceful stop cut short: nothing failed, so it never was. */
export async function handBack(sql: Sql, job: ClaimedJob): Promise<void> {
  await sql`
    with handed as (
      update deletion_jobs
      set attempts = attempts - 1, next_attempt_at = app_now(),
        lease_token = null, lease_until = null
      where ${isHeld(job)}
      returning project_id, id, attempts
    )
    delete from deletion_attempts a
    using handed
    where a.project_id = handed.project_id and a.job_id = handed.id
      and a.number = handed.attempts + 1`
}

/** Open jobs, and for how many seconds the oldest of them has been; for the metrics. */
export async function readBacklog(
  sql: Sql,
): Promise<{ pending: number; running: number; oldestSeconds: number }> {
  const [backlog] = await sql<{ pending: number; running: number; oldestSeconds: number }>`
    select count(*) filter (where status = 'pending')::integer as pending,
      count(*) filter (where status = 'running')::integer as running,
      coalesce(extract(epoch from app_now() - min(created_at)), 0)::float8 as "oldestSeconds"
    from deletion_jobs
    where status in ('pending', 'running')`
  return backlog as NonNullable<typeof backlog>
}

/** Says that a worker is there, for the dashboard. */
export async function noteWorker(sql: Sql): Promise<void> {
  await sql`update worker_seen set at = app_now()`
}
