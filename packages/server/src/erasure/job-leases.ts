import { randomUUID } from 'node:crypto'
import { type Fragment, fragment, raw, type Sql } from '../sql.ts'
import { notifyDeliveries, type Removed } from './jobs.ts'

/*
 * How a worker claims jobs, what it may do while it holds their leases, and how attempts end.
 * Claiming and reaping look up the projects with work first, so that each statement that writes
 * names its project.
 */

/** How long a lease lasts, and so when a dead worker is noticed at the latest. */
export const leaseSeconds = 30

/** The most jobs processed together. */
export const togetherMaximum = 32

/** A person with more browsers, or more sessions and chunks, is erased alone. */
export const browsersOfSmall = 15
export const rowsOfSmall = 300

/** A job that a worker holds for as long as the lease with this token lasts. */
export interface ClaimedJob {
  projectId: number
  id: string
  personId: string
  keepRecordings: boolean
  createdAt: string
  attempt: number
  leaseToken: string
}

/** Jobs that a worker processes together: of one project, with the same keepRecordings. */
export type ClaimedJobs = readonly [ClaimedJob, ...ClaimedJob[]]

const claimedColumns = fragment`
  project_id as "projectId", id, person_id as "personId", keep_recordings as "keepRecordings",
  created_at as "createdAt", attempts as attempt, lease_token as "leaseToken"`

export const leaseEnd = fragment`app_now() + ${raw(String(leaseSeconds))} * interval '1 second'`

/**
 * Starts the next attempt of the job that has been due longest, and of others that can be processed
 * with it (`limit` in all): first attempts for persons with few recordings, of one project, with
 * the same keepRecordings. (Only first attempts, so that a job that repeatedly kills its worker
 * takes no other job along.) The attempt is counted here, so that it counts even if its worker
 * dies.
 */
export async function claimJobs(sql: Sql, limit: number): Promise<ClaimedJob[]> {
  for (const projectId of await projectsWithDueJobs(sql)) {
    const claimed = await claimJobsOf(sql, projectId, limit)
    if (claimed.length > 0) return claimed
  }
  return []
}

/** How many due jobs are read to find their projects. */
const dueJobsSeen = 100

/** The project whose job has been due longest comes first. */
async function projectsWithDueJobs(sql: Sql): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select project_id as id
    from (
      select project_id, next_attempt_at
      from deletion_jobs
      where status in ('pending', 'running')
        and lease_token is null -- fault: find-free
        -- A subquery is evaluated once per statement, so that the index can be used.
        and next_attempt_at <= (select app_now())
      order by next_attempt_at
      limit ${dueJobsSeen}
    ) due
    group by project_id
    order by min(next_attempt_at)`
  return rows.map(({ id }) => id)
}

function claimJobsOf(sql: Sql, projectId: number, limit: number): Promise<ClaimedJob[]> {
  return sql<ClaimedJob>`
    with due as (
      select id, person_id, keep_recordings, next_attempt_at, attempts, is_alone,
        app_now() as begun_at
      from deletion_jobs
      where project_id = ${projectId} and status in ('pending', 'running')
        and lease_token is null -- fault: claim-free
        and next_attempt_at <= (select app_now()) -- fault: claim-due
      order by next_attempt_at
      limit ${limit}
      for update skip locked -- fault: claim-locks
    ), sized as (
      select due.*, row_number() over (order by next_attempt_at, id) = 1 as is_first,
        ${isSmall(projectId)} as is_small
      from due
    ), claimed as (
      update deletion_jobs job
      set status = 'running', attempts = job.attempts + 1,
        started_at = coalesce(job.started_at, one.begun_at),
        lease_token = md5(${randomUUID()} || job.id)::uuid, lease_until = ${leaseEnd}
      from sized one, sized first
      where first.is_first and job.project_id = ${projectId} and job.id = one.id
        and (one.is_first
          or one.is_small and first.is_small
            and one.keep_recordings = first.keep_recordings -- fault: claim-alike
        )
      returning job.*
    ), noted as (
      insert into deletion_attempts (project_id, job_id, number)
      select project_id, id, attempts from claimed
    )
    select ${claimedColumns} from claimed order by created_at, id`
}

/** Whether the person of the job `due` has few recordings. No more can be added to them. */
const isSmall = (projectId: number) => fragment`(
  due.attempts = 0 and not due.is_alone
  and (select count(*)
   from (
     select from person_browsers l
     where l.project_id = ${projectId} and l.person_id = due.person_id
     limit ${raw(String(browsersOfSmall + 1))}
   ) l) <= ${raw(String(browsersOfSmall))}
  and (select coalesce(sum(1 + s.chunks), 0)
   from (
     select s.chunks
     from person_browsers l
     join sessions s on s.project_id = ${projectId} and s.browser_id = l.browser_id
     where l.project_id = ${projectId} and l.person_id = due.person_id
     limit ${raw(String(rowsOfSmall + 1))}
   ) s) <= ${raw(String(rowsOfSmall))}
)`

/**
 * Takes an open job over from the attempt it is in, which loses its lease, and continues as that
 * attempt: no new one is counted. For the ledger, which shows that the job must be completed now.
 * Returns undefined if the job is not open.
 */
export async function takeOver(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<ClaimedJob | undefined> {
  const [job] = await sql<ClaimedJob>`
    with clock as materialized (
      select app_now() as now
    ), taken as (
      update deletion_jobs
      set status = 'running', attempts = greatest(attempts, 1),
        started_at = coalesce(started_at, clock.now),
        lease_token = ${randomUUID()}::uuid, lease_until = ${leaseEnd}
      from clock
      where project_id = ${projectId} and id = ${id}
        and status in ('pending', 'running') -- fault: takeover-open
      returning deletion_jobs.*
    ), noted as (
      insert into deletion_attempts (project_id, job_id, number)
      select project_id, id, attempts from taken
      on conflict (project_id, job_id, number) do update
      set ended_at = null, outcome = null, error_code = null
    )
    select ${claimedColumns} from taken`
  return job
}

export const attemptsMaximum = 5

/** The seconds between one attempt and the next. */
export type RetryDelays = readonly [number, number, number, number]

/** Lost attempts that one statement ends. */
const reapedAPart = 100

/** The worker no longer holds the job. It must stop at once and change nothing. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** A token belongs to one attempt of one job, so several jobs can be checked at once. */
const areHeld = (jobs: ClaimedJobs) => fragment`
  project_id = ${jobs[0].projectId} and id = any(${jobs.map(({ id }) => id)}::uuid[])
  and lease_token = any(${jobs.map(({ leaseToken }) => leaseToken)}::uuid[]) -- fault: held-token
  and lease_until > app_now() -- fault: held-until
`

/** What is counted per attempt. Receipts do not list keys: each is removed with its browser. */
export type RemovedNow = Removed & { keys: number }

/** What was removed for each job, by job ID. */
export type RemovedByJob = ReadonlyMap<string, Partial<RemovedNow>>

/** One row per job: its ID and what was removed. */
function removedOf(jobs: ClaimedJobs, removed: RemovedByJob) {
  const counts = (what: keyof RemovedNow) => jobs.map(({ id }) => removed.get(id)?.[what] ?? 0)
  return fragment`unnest(
    ${jobs.map(({ id }) => id)}::uuid[], ${counts('sessions')}::bigint[],
    ${counts('chunks')}::bigint[], ${counts('browsers')}::bigint[], ${counts('blobs')}::bigint[],
    ${counts('bytes')}::bigint[], ${counts('keys')}::bigint[])
    as one (job_id, sessions, chunks, browsers, blobs, bytes, keys)`
}

/** Adds the counts in `held` to the attempt `a`. */
const addToAttempt = fragment`
  removed_keys = a.removed_keys + held.keys, removed_sessions = a.removed_sessions + held.sessions,
  removed_chunks = a.removed_chunks + held.chunks, removed_blobs = a.removed_blobs + held.blobs,
  removed_bytes = a.removed_bytes + held.bytes, removed_browsers = a.removed_browsers + held.browsers`

const removedNow = fragment`
  one.keys, one.sessions, one.chunks, one.blobs, one.bytes, one.browsers`

/**
 * Records the step of attempts and what the blob store removed since the last call, and renews
 * their leases if `renew`. Throws LeaseLost if one of them is lost.
 */
export async function noteProgress(
  sql: Sql,
  jobs: ClaimedJobs,
  { step, removed }: { step: string; removed: RemovedByJob },
  renew: boolean,
): Promise<void> {
  const held = await sql`
    -- statement: renewal
    with held as (
      update deletion_jobs
      set removed_blobs = removed_blobs + one.blobs, removed_bytes = removed_bytes + one.bytes,
        lease_until = ${renew ? leaseEnd : fragment`lease_until`}
      from ${removedOf(jobs, removed)}
      where id = one.job_id and ${areHeld(jobs)}
      returning project_id, id, attempts, ${removedNow}
    )
    update deletion_attempts a set step = ${step}, ${addToAttempt}
    from held
    where a.project_id = ${jobs[0].projectId} and a.job_id = held.id and a.number = held.attempts
    returning a.number`
  if (held.length < jobs.length) throw new LeaseLost()
}

/** The first statement of every transaction of a worker. Throws LeaseLost if a lease is lost. */
export async function fence(tx: Sql, jobs: ClaimedJobs): Promise<void> {
  const held = await tx`
    -- statement: fence
    select from deletion_jobs
    where ${areHeld(jobs)}
    order by id
    for no key update -- fault: fence-locks
    `
  if (held.length < jobs.length) throw new LeaseLost()
}

/** Counts the rows that this transaction removes. It must have begun with the fence. */
export async function addRemovedRows(
  tx: Sql,
  jobs: ClaimedJobs,
  removed: RemovedByJob,
): Promise<void> {
  await tx`
    with held as (
      update deletion_jobs
      set removed_sessions = removed_sessions + one.sessions,
        removed_chunks = removed_chunks + one.chunks,
        removed_browsers = removed_browsers + one.browsers
      from ${removedOf(jobs, removed)}
      where project_id = ${jobs[0].projectId} and id = one.job_id
      returning project_id, id, attempts, ${removedNow}
    )
    update deletion_attempts a set ${addToAttempt}
    from held
    where a.project_id = ${jobs[0].projectId} and a.job_id = held.id and a.number = held.attempts`
}

export interface CompletedJob {
  projectId: number
  id: string
  externalId: string
  keepRecordings: boolean
  createdAt: string
  startedAt: string
  completedAt: string
  /** Whether identify must not create the person again. */
  isSuppressed: boolean
  attempts: number
  removed: Removed
  earlierJobs: EarlierJob[]
  /** Whether a webhook is notified of it. */
  isTold: boolean
}

/** An earlier job for the same person that failed, and what it had removed. */
export interface EarlierJob {
  jobId: string
  keepRecordings: boolean
  removed: Removed
}

/** Completes the jobs in the transaction that deletes their persons. May throw LeaseLost. */
export async function completeJobs(
  tx: Sql,
  jobs: ClaimedJobs,
  removed: RemovedByJob,
): Promise<CompletedJob[]> {
  const { projectId } = jobs[0]
  const completed = await tx<Omit<CompletedJob, 'earlierJobs'> & { earlierJobId: string | null }>`
    -- statement: completion
    with completed as (
      update deletion_jobs
      set status = 'completed', completed_at = app_now(), person_id = null,
        lease_token = null, lease_until = null,
        removed_browsers = removed_browsers + one.browsers,
        removed_blobs = removed_blobs + one.blobs, removed_bytes = removed_bytes + one.bytes
      from ${removedOf(jobs, removed)}
      where id = one.job_id and ${areHeld(jobs)}
      returning deletion_jobs.*, ${removedNow}
    ), entered as (
      update ledger_entries e set state = 'completed'
      from completed
      where e.project_id = ${projectId} and e.job_id = completed.id
    ), ${told(projectId, fragment`(select id, 'completed' as status from completed)`)}, due as (
      insert into job_purges (project_id, job_id)
      select project_id, id from completed
      -- Erased again, after a restored backup brought the person back.
      on conflict (project_id, job_id) do update set purge_id = null, purged_at = null, jws = null
    ), noted as (
      update deletion_attempts a
      set outcome = 'completed', ended_at = held.completed_at, ${addToAttempt}
      from completed held
      where a.project_id = ${projectId} and a.job_id = held.id and a.number = held.attempts
    )
    select project_id as "projectId", id, external_id as "externalId",
      keep_recordings as "keepRecordings", created_at as "createdAt",
      started_at as "startedAt", completed_at as "completedAt", attempts,
      exists (select from told) as "isTold",
      (select suppresses_erased from projects p where p.id = ${projectId}) as "isSuppressed",
      ${removedColumns} as removed, earlier_job_id as "earlierJobId"
    from completed
    order by created_at, id`
  if (completed.length < jobs.length) throw new LeaseLost()
  return Promise.all(
    completed.map(async ({ earlierJobId, ...job }) => {
      return { ...job, earlierJobs: await findEarlierJobs(tx, projectId, earlierJobId) }
    }),
  )
}

/** Returns a job and those before it, oldest first. */
async function findEarlierJobs(
  tx: Sql,
  projectId: number,
  lastId: string | null,
): Promise<EarlierJob[]> {
  const jobs: EarlierJob[] = []
  for (let id = lastId; id !== null; ) {
    const [job] = await tx<EarlierJob & { earlierJobId: string | null }>`
      select id as "jobId", keep_recordings as "keepRecordings", earlier_job_id as "earlierJobId",
        ${removedColumns} as removed
      from deletion_jobs
      where project_id = ${projectId} and id = ${id}`
    if (!job) break
    const { earlierJobId, ...earlier } = job
    jobs.unshift(earlier)
    id = earlierJobId
  }
  return jobs
}

const removedColumns = fragment`json_build_object(
  'sessions', removed_sessions, 'chunks', removed_chunks, 'blobs', removed_blobs,
  'bytes', removed_bytes, 'browsers', removed_browsers)`

/**
 * Ends an attempt that failed. The next one is due after its delay, counted from now; after the
 * last one the job is failed and its person usable again. Returns the status of the job, or
 * undefined if the lease was lost.
 */
export async function failAttempt(
  sql: Sql,
  job: ClaimedJob,
  { step, code }: { step: string; code: string },
  delays: RetryDelays,
): Promise<'running' | 'failed' | undefined> {
  const [ended] = await sql<Ended>`
    -- statement: failure
    with locked as (
      select id, person_id, attempts, (select app_now()) as failed_at
      from deletion_jobs
      where ${areHeld([job])}
      for no key update -- fault: failure-locks
    ), held as (
      select id, person_id, failed_at, ${nextAttemptAt(fragment`failed_at`, delays)}
      from locked
    ), ${endHeld(job.projectId, 'failed', step, code)}
    ${endedColumns} from ended`
  if (ended?.isTold) notifyDeliveries(sql)
  return ended?.status
}

interface Ended {
  status: 'running' | 'failed'
  isTold: boolean
}

const endedColumns = fragment`select status, exists (select from told) as "isTold"`

/**
 * Ends the attempts of all workers whose lease has expired. The next attempt is due after its
 * delay, counted from the end of the lease. Returns how many attempts were lost, and how many jobs
 * failed because of it.
 */
export async function reapLostAttempts(
  sql: Sql,
  delays: RetryDelays,
): Promise<{ lost: number; failed: number }> {
  const count = { lost: 0, failed: 0 }
  const projects = await sql<{ id: number }>`
    select distinct project_id as id
    from deletion_jobs
    where lease_token is not null
      and lease_until <= (select app_now()) -- fault: find-lost
    `
  for (const { id } of projects) {
    for (let isDone = false; !isDone; ) {
      const reaped = await reapLostAttemptsOf(sql, id, delays)
      count.lost += reaped.length
      count.failed += reaped.filter(({ status }) => status === 'failed').length
      if (reaped[0]?.isTold) notifyDeliveries(sql)
      isDone = reaped.length < reapedAPart
    }
  }
  return count
}

function reapLostAttemptsOf(sql: Sql, projectId: number, delays: RetryDelays): Promise<Ended[]> {
  return sql<Ended>`
    with held as (
      select id, person_id, lease_until as failed_at, ${nextAttemptAt(fragment`lease_until`, delays)}
      from deletion_jobs
      where project_id = ${projectId} and lease_token is not null
        and lease_until <= (select app_now()) -- fault: reap-lost
      order by lease_until
      limit ${reapedAPart}
      for no key update skip locked -- fault: reap-locks
    ), ${endHeld(projectId, 'lost', null, 'worker_lost')}
    ${endedColumns} from ended`
}

/** When the next attempt of a job would be due; null after the last one. */
const nextAttemptAt = (failedAt: Fragment, delays: RetryDelays) => fragment`
  ${failedAt} + (${delays}::integer[])[attempts] * interval '1 second' as next_at -- fault: failure-delay
  `

/** Creates the webhook deliveries for the jobs in `ended`, which has their IDs and statuses. */
const told = (projectId: number, ended: Fragment) => fragment`
  told as (
    insert into webhook_deliveries (project_id, webhook_id, event, job_id)
    select w.project_id, w.id, 'person.deletion.' || e.status, e.id
    from ${ended} e
    join webhooks w on w.project_id = ${projectId}
    where w.is_enabled and e.status in ('completed', 'failed')
      and 'person.deletion.' || e.status = any (w.events)
    returning id
  )`

/** Ends the attempts of the jobs in `held`. A job is locked before its person. */
function endHeld(projectId: number, outcome: 'failed' | 'lost', step: string | null, code: string) {
  return fragment`
    ended as (
      update deletion_jobs job
      set status = case when attempts < ${attemptsMaximum} then 'running' else 'failed' end,
        person_id = case when attempts < ${attemptsMaximum} then job.person_id end,
        next_attempt_at = coalesce(held.next_at, job.next_attempt_at),
        lease_token = null, lease_until = null
      from held
      where job.project_id = ${projectId} and job.id = held.id
      returning job.id, job.status, job.attempts, held.person_id, held.failed_at
    ), freed as (
      update persons set deletion_job_id = null, failed_job_id = ended.id -- fault: failure-frees-person
      from ended
      where ended.status = 'failed' and persons.project_id = ${projectId}
        and persons.id = ended.person_id and persons.deletion_job_id = ended.id
    ), entered as (
      update ledger_entries e set state = 'failed'
      from ended
      where ended.status = 'failed' and e.project_id = ${projectId} and e.job_id = ended.id
    ), noted as (
      update deletion_attempts a
      set outcome = ${outcome}, ended_at = ended.failed_at, error_code = ${code},
        step = coalesce(${step}, a.step)
      from ended
      where a.project_id = ${projectId} and a.job_id = ended.id and a.number = ended.attempts
    ), ${told(projectId, fragment`ended`)}`
}

/**
 * Hands back attempts that a graceful stop interrupted, or that failed together and are retried
 * alone: they are not counted. Jobs whose lease is lost stay as they are.
 */
export async function handBack(
  sql: Sql,
  jobs: ClaimedJobs,
  { isAlone }: { isAlone: boolean },
): Promise<void> {
  await sql`
    -- statement: hand-back
    with handed as (
      update deletion_jobs
      set attempts = attempts - 1, next_attempt_at = app_now(),
        lease_token = null, lease_until = null, is_alone = is_alone or ${isAlone}
      where ${areHeld(jobs)}
      returning project_id, id, attempts
    )
    delete from deletion_attempts a
    using handed
    where a.project_id = ${jobs[0].projectId} and a.job_id = handed.id
      and a.number = handed.attempts + 1`
}
