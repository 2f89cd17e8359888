import type { Sql } from '../sql.ts'

/* What the database knows about purges and their jobs. */

export interface Purge {
  id: string
  done: string[]
}

const claimSeconds = 600

/** Jobs that are assigned to a purge, or signed, at a time. */
const jobsAPart = 500

/** Whether a purge is unfinished, or jobs wait for one. */
export async function isPurgeDue(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ isDue: boolean }>`
    select exists (select from purges where completed_at is null)
      or exists (select from job_purges where purge_id is null) as "isDue"`
  return row?.isDue ?? false
}

/**
 * Claims the unfinished purge, or a new one for all jobs completed by now. Returns undefined if
 * there is nothing to do, `claimed` if another process is purging.
 */
export async function claimPurge(sql: Sql): Promise<Purge | 'claimed' | undefined> {
  if (!(await isPurgeDue(sql))) return undefined
  await sql`insert into purges default values on conflict do nothing`
  const [purge] = await sql<Purge>`
    update purges set claimed_until = app_now() + ${claimSeconds} * interval '1 second'
    where completed_at is null and coalesce(claimed_until <= app_now(), true)
    returning id, done`
  if (!purge) return 'claimed'
  // Only before the first part: jobs completed later may have left something in parts already done.
  if (purge.done.length === 0) await assignJobs(sql, purge.id)
  return purge
}

async function assignJobs(sql: Sql, purgeId: string): Promise<void> {
  const projects = await sql<{ id: number }>`
    select distinct project_id as id from job_purges where purge_id is null`
  for (const { id } of projects) {
    for (let isDone = false; !isDone; ) {
      const assigned = await sql`
        update job_purges j set purge_id = ${purgeId}
        from (
          select job_id from job_purges
          where project_id = ${id} and purge_id is null limit ${jobsAPart}
        ) waiting
        where j.project_id = ${id} and j.job_id = waiting.job_id and j.purge_id is null
        returning j.job_id`
      isDone = assigned.length < jobsAPart
    }
  }
}

/** Extends the claim, or gives it up. */
export async function holdPurge(sql: Sql, { id }: Purge, isHeld: boolean): Promise<void> {
  await sql`
    update purges
    set claimed_until = case when ${isHeld}::boolean
      then app_now() + ${claimSeconds} * interval '1 second' end
    where id = ${id}`
}

export async function notePart(sql: Sql, { id }: Purge, part: string): Promise<void> {
  await sql`
    update purges set done = array_append(done, ${part}::text)
    where id = ${id} and not ${part}::text = any(done)`
}

/** Records that nothing is left of its jobs' persons. Returns when that was first recorded. */
export async function notePurged(sql: Sql, { id }: Purge): Promise<string> {
  const [purge] = await sql<{ purgedAt: string }>`
    update purges set purged_at = coalesce(purged_at, app_now())
    where id = ${id}
    returning purged_at as "purgedAt"`
  return (purge as { purgedAt: string }).purgedAt
}

export interface PurgedJob {
  projectId: number
  jobId: string
  receipt: string
}

/** Some jobs of a purge that have no statement yet. */
export function listUnsigned(sql: Sql, { id }: Purge): Promise<PurgedJob[]> {
  return sql<PurgedJob>`
    select j.project_id as "projectId", j.job_id as "jobId", r.jws as receipt
    from job_purges j
    join receipts r on r.project_id = j.project_id and r.job_id = j.job_id
    where j.purge_id = ${id} and j.jws is null
    limit ${jobsAPart}`
}

/** Leaves out jobs that were completed again meanwhile: they are not of this purge any more. */
export async function noteStatements(
  sql: Sql,
  { id }: Purge,
  purgedAt: string,
  signed: readonly { projectId: number; jobId: string; jws: string }[],
): Promise<void> {
  for (const [projectId, its] of Map.groupBy(signed, (one) => one.projectId)) {
    await sql`
      update job_purges j set purged_at = ${purgedAt}::timestamptz, jws = one.jws
      from unnest(
        ${its.map(({ jobId }) => jobId)}::uuid[],
        ${its.map(({ jws }) => jws)}::text[]) as one (job_id, jws)
      where j.project_id = ${projectId} and j.job_id = one.job_id and j.purge_id = ${id}`
  }
}

export async function endPurge(sql: Sql, { id }: Purge): Promise<void> {
  await sql`
    update purges set completed_at = app_now(), claimed_until = null
    where id = ${id} and completed_at is null`
}

export async function findPurgeStatement(
  sql: Sql,
  projectId: number,
  jobId: string,
): Promise<string | null> {
  const [found] = await sql<{ jws: string | null }>`
    select jws from job_purges where project_id = ${projectId} and job_id = ${jobId}`
  return found?.jws ?? null
}

/**
 * Whether it is time for a purge: within some hours after a minute of the day (UTC), unless one
 * that started in that time has completed.
 */
export async function isPurgeTime(sql: Sql, minuteOfDay: number, hours: number): Promise<boolean> {
  const [row] = await sql<{ isTime: boolean }>`
    select minutes < ${hours}::integer * 60 and not exists (
      select from purges
      where completed_at is not null
        and started_at > app_now() - (minutes + 1) * interval '1 minute'
    ) as "isTime"
    from (
      select mod(
        floor(extract(epoch from app_now()) / 60)::bigint % 1440 + 1440 - ${minuteOfDay}::integer,
        1440)::integer as minutes
    ) since`
  return row?.isTime ?? false
}
