import { failedDeletions } from '../failed-deletions.ts'
import type { Sql } from '../sql.ts'

/** What the navigation shows of a project on every screen. */
export interface ProjectSummary {
  deletionsInProgress: number
  deletionsFailed: number
  hasPersons: boolean
  hasSessions: boolean
  recordedBytesToday: number
  recordingsRefusedToday: number
  requestsRefusedToday: number
  suppressedPeople: number
}

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

export interface InstallFacts {
  session: { id: string; startedAt: string } | null
  hasBrowser: boolean
  secretKeyLastUsedAt: string | null
}

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
