import type { Reply } from '@lethe/contract/client.ts'
import type { getHome } from '@lethe/contract/dashboard-home.ts'
import type { getInstallState, getProjectSummary } from '@lethe/contract/dashboard-projects.ts'
import { failedDeletions } from '../failed-deletions.ts'
import { fragment, type Sql } from '../sql.ts'

/** What the navigation shows about a project on every screen. */
export type ProjectSummary = Reply<typeof getProjectSummary>['body']

export async function readProjectSummary(sql: Sql, projectId: number): Promise<ProjectSummary> {
  const [summary] = await sql<ProjectSummary>`
    select
      (select count(*)::integer from deletion_jobs
       where project_id = ${projectId} and status in ('pending', 'running'))
        as "deletionsInProgress",
      (select count(*)::integer from ${failedDeletions(projectId)} f) as "deletionsFailed",
      exists (select from persons where project_id = ${projectId}) as "hasPersons",
      exists (select from sessions where project_id = ${projectId} and not closed)
        as "hasSessions",
      today.bytes as "recordedBytesToday", today.refused as "recordingsRefusedToday",
      today.requests_refused as "requestsRefusedToday",
      (select count(*)::integer
       from (select from suppressions where project_id = ${projectId} limit 10000) as held)
        as "suppressedPeople"
    from (
      select coalesce(sum(bytes), 0)::float8 as bytes, coalesce(sum(refused), 0)::float8 as refused,
        coalesce(sum(requests_refused), 0)::float8 as requests_refused
      from ingest_usage
      where project_id = ${projectId} and day = (app_now() at time zone 'UTC')::date
    ) today`
  return summary as ProjectSummary
}

type InstallFacts = Pick<
  Reply<typeof getInstallState>['body'],
  'session' | 'hasBrowser' | 'secretKeyLastUsedAt'
>

export async function readInstallFacts(sql: Sql, projectId: number): Promise<InstallFacts> {
  const [facts] = await sql<InstallFacts & { sessionId: string | null; startedAt: string | null }>`
    select s.id as "sessionId", s.started_at as "startedAt",
      exists (select from browsers where project_id = ${projectId}) as "hasBrowser",
      (select max(last_used_at) from keys
       where project_id = ${projectId} and kind = 'secret') as "secretKeyLastUsedAt"
    from (select) as always
    left join lateral (
      select id, started_at
      from sessions
      where project_id = ${projectId} and chunks > 0 and not closed
      order by started_at desc, id desc
      limit 1
    ) s on true`
  const { sessionId, startedAt, hasBrowser, secretKeyLastUsedAt } = facts as NonNullable<
    typeof facts
  >
  return {
    session: sessionId !== null && startedAt !== null ? { id: sessionId, startedAt } : null,
    hasBrowser,
    secretKeyLastUsedAt,
  }
}

export type Home = Reply<typeof getHome>['body']

/** The number of days in a chart. */
const days = 14

/** A deletion must be completed within a month. */
const dueDays = 30

/** The newest rows that are counted; a project with more in two weeks sees fewer days. */
const countedMaximum = 200_000

const today = fragment`(app_now() at time zone 'UTC')::date`

export async function readDays(sql: Sql, projectId: number): Promise<Home['days']> {
  const since = fragment`((${today} - ${days - 1}::integer)::timestamp at time zone 'UTC')`
  return sql<Home['days'][number]>`
    with
      started as (
        select (started_at at time zone 'UTC')::date as day
        from sessions
        where project_id = ${projectId} and not closed and started_at >= ${since}
        order by started_at desc, id desc
        limit ${countedMaximum}
      ),
      created as (
        -- An id begins with the millisecond of its creation.
        select (to_timestamp((id >> 20) / 1000.0) at time zone 'UTC')::date as day
        from persons
        where project_id = ${projectId} and id >= (extract(epoch from ${since}) * 1000)::bigint << 20
        order by id desc
        limit ${countedMaximum}
      )
    select to_char(d.day, 'YYYY-MM-DD') as day,
      coalesce(s.sessions, 0)::integer as sessions,
      coalesce(p.people, 0)::integer as people,
      coalesce(u.bytes, 0)::float8 as bytes
    from (select ${today} - n as day from generate_series(0, ${days - 1}::integer) n) d
    left join (select day, count(*) as sessions from started group by day) s using (day)
    left join (select day, count(*) as people from created group by day) p using (day)
    left join ingest_usage u on u.project_id = ${projectId} and u.day = d.day
    order by d.day`
}

export interface HomeFacts {
  storedBytes: number
  sessionId: string | null
  startedAt: string | null
  open: number
  failed: number
  overdue: number
  oldestOpenAt: string | null
  isWorkerThere: boolean
}

/** Workers poll every few seconds; after this time without a poll none is running. */
const workerSeconds = 60

export async function readHomeFacts(sql: Sql, projectId: number): Promise<HomeFacts> {
  const due = fragment`app_now() - ${dueDays} * interval '1 day'`
  const [facts] = await sql<HomeFacts>`
    select
      (select coalesce(sum(bytes), 0)::float8 from sessions
       where project_id = ${projectId} and not closed) as "storedBytes",
      s.id as "sessionId", s.started_at as "startedAt",
      open.count as open, open.oldest as "oldestOpenAt",
      failed.count as failed, open.overdue + failed.overdue as overdue,
      coalesce(seen.at > app_now() - ${workerSeconds} * interval '1 second', false)
        as "isWorkerThere"
    from worker_seen seen
    cross join (
      select count(*)::integer as count, min(created_at) as oldest,
        count(*) filter (where created_at < ${due})::integer as overdue
      from deletion_jobs
      where project_id = ${projectId} and status in ('pending', 'running')
    ) open
    cross join (
      select count(*)::integer as count,
        count(*) filter (where j.created_at < ${due})::integer as overdue
      from ${failedDeletions(projectId)} f
      join deletion_jobs j on j.project_id = ${projectId} and j.id = f.job_id
    ) failed
    left join lateral (
      select id, started_at
      from sessions
      where project_id = ${projectId} and chunks > 0 and not closed
      order by started_at desc, id desc
      limit 1
    ) s on true`
  return facts as HomeFacts
}
