import { fragment, type Sql } from '../sql.ts'
import { type ClaimedJob, type ClaimedJobs, leaseEnd } from './claim.ts'
import type { Removed } from './store.ts'

/*
 * Attempts: what whoever has a job may do, and what comes after. The functions that end attempts work
 * across projects, as a worker does; all others name the project of their jobs.
 */

export const attemptsMaximum = 5

/** The seconds between one attempt and the next, from the first to the fifth. */
export type RetryDelays = readonly [number, number, number, number]

/** Where workers listen for new jobs. What is sent is empty: the database knows the rest. */
export const jobsChannel = 'lethe_deletion_jobs'

/** Jobs whose lost attempts are noted by one statement. */
const reapedAPart = 100

/** Another worker has the job, or nobody: whoever gets this stops at once and changes nothing. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** A token belongs to one attempt at one job, so that those of several can be asked for at once. */
const areHeld = (jobs: ClaimedJobs) => fragment`
  project_id = ${jobs[0].projectId} and id = any(${jobs.map(({ id }) => id)}::uuid[])
  and lease_token = any(${jobs.map(({ leaseToken }) => leaseToken)}::uuid[])
  and lease_until > app_now()`

/** Says that there is a job. Whether it is heard does not matter: workers look by themselves too. */
export function notifyWorkers(sql: Sql): void {
  sql`select pg_notify(${jobsChannel}, '')`.catch(() => {})
}

/** What was removed of each job, by the job's id. */
export type RemovedByJob = ReadonlyMap<string, Partial<Removed>>

/** A row for each job: its id and what was removed. */
function removedOf(jobs: ClaimedJobs, removed: RemovedByJob) {
  const counts = (what: keyof Removed) => jobs.map(({ id }) => removed.get(id)?.[what] ?? 0)
  return fragment`unnest(
    ${jobs.map(({ id }) => id)}::uuid[], ${counts('sessions')}::bigint[],
    ${counts('chunks')}::bigint[], ${counts('browsers')}::bigint[], ${counts('blobs')}::bigint[],
    ${counts('bytes')}::bigint[]) as one (job_id, sessions, chunks, browsers, blobs, bytes)`
}

/**
 * Notes how far attempts are, and what the blob store removed since the last time; where `renew`
 * says so their leases begin anew. Throws LeaseLost where one of them is lost.
 */
export async function noteProgress(
  sql: Sql,
  jobs: ClaimedJobs,
  { step, removed }: { step: string; removed: RemovedByJob },
  renew: boolean,
): Promise<void> {
  const held = await sql`
    with held as (
      update deletion_jobs
      set removed_blobs = removed_blobs + one.blobs, removed_bytes = removed_bytes + one.bytes,
        lease_until = case when ${renew}::boolean then ${leaseEnd} else lease_until end
      from ${removedOf(jobs, removed)}
      where id = one.job_id and ${areHeld(jobs)}
      returning project_id, id, attempts
    )
    update deletion_attempts a set step = ${step}
    from held
    where a.project_id = held.project_id and a.job_id = held.id and a.number = held.attempts
    returning a.number`
  if (held.length < jobs.length) throw new LeaseLost()
}

/** The first statement of every transaction of a worker. Throws LeaseLost where one is lost. */
export async function fence(tx: Sql, jobs: ClaimedJobs): Promise<void> {
  const held = await tx`
    select from deletion_jobs where ${areHeld(jobs)} order by id for no key update`
  if (held.length < jobs.length) throw new LeaseLost()
}

/** Counts the rows that this transaction removes, which has begun with the fence. */
export async function addRemovedRows(
  tx: Sql,
  jobs: ClaimedJobs,
  removed: RemovedByJob,
): Promise<void> {
  await tx`
    update deletion_jobs
    set removed_sessions = removed_sessions + one.sessions,
      removed_chunks = removed_chunks + one.chunks,
      removed_browsers = removed_browsers + one.browsers
    from ${removedOf(jobs, removed)}
    where project_id = ${jobs[0].projectId} and id = one.job_id`
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

/**
 * Completes the jobs, in the transaction in which their persons go. Throws LeaseLost where one is
 * lost.
 */
export async function completeJobs(
  tx: Sql,
  jobs: ClaimedJobs,
  removed: RemovedByJob,
): Promise<CompletedJob[]> {
  const completed = await tx<CompletedJob>`
    with completed as (
      update deletion_jobs
      set status = 'completed', completed_at = app_now(), person_id = null,
        lease_token = null, lease_until = null,
        removed_browsers = removed_browsers + one.browsers,
        removed_blobs = removed_blobs + one.blobs, removed_bytes = removed_bytes + one.bytes
      from ${removedOf(jobs, removed)}
      where id = one.job_id and ${areHeld(jobs)}
      returning deletion_jobs.*
    ), noted as (
      update deletion_attempts a
      set outcome = 'completed', ended_at = completed.completed_at
      from completed
      where a.project_id = completed.project_id and a.job_id = completed.id
        and a.number = completed.attempts
    )
    select project_id as "projectId", id, external_id as "externalId",
      keep_recordings as "keepRecordings", created_at as "createdAt",
      started_at as "startedAt", completed_at as "completedAt", attempts,
      json_build_object(
        'sessions', removed_sessions, 'chunks', removed_chunks, 'blobs', removed_blobs,
        'bytes', removed_bytes, 'browsers', removed_browsers) as removed
    from completed
    order by created_at, id`
  if (completed.length < jobs.length) throw new LeaseLost()
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
      where ${areHeld([job])}
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

/**
 * Gives attempts back that a graceful stop cut short, or that failed together with others and are to
 * be made alone: nothing of one's own failed, so they never were. Those whose lease is lost stay.
 */
export async function handBack(
  sql: Sql,
  jobs: ClaimedJobs,
  { isAlone }: { isAlone: boolean },
): Promise<void> {
  await sql`
    with handed as (
      update deletion_jobs
      set attempts = attempts - 1, next_attempt_at = app_now(),
        lease_token = null, lease_until = null, is_alone = is_alone or ${isAlone}
      where ${areHeld(jobs)}
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
