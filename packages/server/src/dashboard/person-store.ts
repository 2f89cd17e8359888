import type {
  PersonActivity,
  PersonBrowser,
  PersonState,
  PersonSummary,
} from '@lethe/contract/dashboard-persons.ts'
import { failedDeletions } from '../failed-deletions.ts'
import type { Position } from '../http/page.ts'
import { fragment, join, type Sql } from '../sql.ts'

/** Sessions of a person are counted up to this number. */
const countedMaximum = 1_000

/** The number of events that are shown, and read of each kind. */
const activityMaximum = 100

const stateOf = (projectId: number) => fragment`
  case
    when p.deletion_job_id is not null then 'deleting'
    when exists (
      select from deletion_jobs j
      where j.project_id = ${projectId} and j.external_id = p.external_id
        and j.status = 'failed' and j.created_at >= p.created_at
    ) then 'deletion_failed'
    else 'present'
  end`

const textOf = (name: 'name' | 'email') => fragment`
  case when jsonb_typeof(p.properties -> ${name}) = 'string' then p.properties ->> ${name} end`

/** These persons as rows of the list, the highest id first. Counts up to a thousand sessions. */
export function summarisePersons(
  sql: Sql,
  projectId: number,
  ids: readonly string[],
): Promise<PersonSummary[]> {
  return sql<PersonSummary>`
    select p.id, p.external_id as "externalId", ${textOf('name')} as name,
      ${textOf('email')} as email, p.created_at as "createdAt", p.updated_at as "updatedAt",
      ${stateOf(projectId)} as state, counted.sessions, seen.at as "lastSeenAt"
    from persons p
    cross join lateral (
      select count(*)::integer as sessions
      from (
        select
        from person_browsers l
        join sessions s on s.project_id = ${projectId} and s.browser_id = l.browser_id
        where l.project_id = ${projectId} and l.person_id = p.id and not s.closed
        limit ${countedMaximum}
      ) capped
    ) counted
    cross join lateral (
      select max(newest.at) as at
      from person_browsers l
      cross join lateral (
        select coalesce(s.last_chunk_at, s.started_at) as at
        from sessions s
        where s.project_id = ${projectId} and s.browser_id = l.browser_id and not s.closed
        order by s.started_at desc, s.id desc
        limit 1
      ) newest
      where l.project_id = ${projectId} and l.person_id = p.id
    ) seen
    where p.project_id = ${projectId} and p.id = any(${ids}::bigint[])
    order by p.id desc`
}

/** The ids of persons, newest first, below `beforeId` or from the newest. */
export function listPersonIds(
  sql: Sql,
  projectId: number,
  beforeId: string | null,
  limit: number,
): Promise<{ id: string }[]> {
  return sql<{ id: string }>`
    select id
    from persons
    where project_id = ${projectId} and id < coalesce(${beforeId}::bigint, 9223372036854775807)
    order by id desc
    limit ${limit}`
}

/**
 * The ids of persons in a state of deletion, newest first, whose searched fields contain `folded` (a
 * case-folded text; empty for all). They are few, so this needs no index.
 */
export function listPersonsByState(
  sql: Sql,
  projectId: number,
  state: Exclude<PersonState, 'present'>,
  folded: string,
  beforeId: string | null,
  limit: number,
): Promise<{ id: string }[]> {
  const inState =
    state === 'deleting'
      ? fragment`p.deletion_job_id is not null`
      : fragment`p.id in (select f.person_id from ${failedDeletions(projectId)} f)`
  return sql<{ id: string }>`
    select p.id
    from persons p
    join person_search t on t.project_id = p.project_id and t.person_id = p.id
    where p.project_id = ${projectId} and ${inState}
      and p.id < coalesce(${beforeId}::bigint, 9223372036854775807)
      and strpos(t.text, ${folded}) > 0
    order by p.id desc
    limit ${limit}`
}

export interface PersonFacts {
  externalId: string
  properties: string
  browsers: number
}

/** What the page of a person shows besides its summary; `properties` is JSON text. */
export async function findPersonFacts(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<PersonFacts | undefined> {
  const [facts] = await sql<PersonFacts>`
    select p.external_id as "externalId", p.properties::text as properties,
      (select count(*)::integer from person_browsers l
       where l.project_id = ${projectId} and l.person_id = p.id) as browsers
    from persons p
    where p.project_id = ${projectId} and p.id = ${id}`
  return facts
}

/** The deletion job for a person's page: the open one, the failed one, or the one that erased it. */
export async function findJobOfPerson(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<string | undefined> {
  const [erased] = await sql<{ hash: Buffer }>`
    select erased_person_hash(${projectId}, ${id}::bigint) as hash`
  const [row] = await sql<{ jobId: string | null }>`
    select coalesce(
      (select p.deletion_job_id from persons p
       where p.project_id = ${projectId} and p.id = ${id}),
      (select j.id
       from persons p
       join deletion_jobs j on j.project_id = p.project_id and j.external_id = p.external_id
       where p.project_id = ${projectId} and p.id = ${id}
         and j.status = 'failed' and j.created_at >= p.created_at
       order by j.created_at desc, j.id desc
       limit 1),
      (select e.job_id from erased_persons e
       where e.project_id = ${projectId} and e.person_hash = ${erased?.hash})) as "jobId"`
  return row?.jobId ?? undefined
}

/** Newest linked first. */
export function listPersonBrowsers(
  sql: Sql,
  projectId: number,
  personId: string,
  after: Position<'linkedAt' | 'id'> | null,
  limit: number,
): Promise<PersonBrowser[]> {
  return sql<PersonBrowser>`
    select page.browser_id as id, b.created_at as "createdAt", page.linked_at as "linkedAt",
      newest.user_agent as "userAgent", newest.at as "lastSeenAt",
      (select count(*)::integer from sessions s
       where s.project_id = ${projectId} and s.browser_id = page.browser_id and not s.closed)
        as sessions
    from (
      select browser_id, linked_at
      from person_browsers
      where project_id = ${projectId} and person_id = ${personId}
        and (linked_at, browser_id) < (
          coalesce(${after?.linkedAt ?? null}::timestamptz, 'infinity'),
          coalesce(${after?.id ?? null}::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
      order by linked_at desc, browser_id desc
      limit ${limit}
    ) page
    join browsers b on b.project_id = ${projectId} and b.id = page.browser_id
    left join lateral (
      select s.user_agent, coalesce(s.last_chunk_at, s.started_at) as at
      from sessions s
      where s.project_id = ${projectId} and s.browser_id = page.browser_id and not s.closed
      order by s.started_at desc, s.id desc
      limit 1
    ) newest on true
    order by page.linked_at desc, page.browser_id desc`
}

interface ActivityRow {
  kind: PersonActivity['kind']
  at: string
  browserId: string | null
  sessionId: string | null
  memberName: string | null
  jobId: string | null
  keepRecordings: boolean | null
}

/** The history of a person, newest first. */
export async function listPersonActivity(
  sql: Sql,
  projectId: number,
  personId: string,
): Promise<PersonActivity[]> {
  const kinds = activityKinds(projectId, personId)
  const rows = await sql<ActivityRow>`
    select kind, at, browser_id as "browserId", session_id as "sessionId",
      member_name as "memberName", job_id as "jobId", keep_recordings as "keepRecordings"
    from (${join(kinds, ' union all ')})
      as activity(kind, at, browser_id, session_id, member_name, job_id, keep_recordings)
    order by at desc, kind
    limit ${activityMaximum}`
  return rows.map(activityOf)
}

function activityKinds(projectId: number, personId: string) {
  const newest = fragment`order by 2 desc limit ${activityMaximum}`
  const jobs = fragment`
    from persons p
    join deletion_jobs j on j.project_id = p.project_id and j.external_id = p.external_id
    where p.project_id = ${projectId} and p.id = ${personId} and j.created_at >= p.created_at`
  return [
    fragment`
      (select 'created', created_at, null::uuid, null::uuid, null, null::uuid, null::boolean
       from persons where project_id = ${projectId} and id = ${personId})`,
    fragment`
      (select 'browser_linked', linked_at, browser_id, null, null, null, null
       from person_browsers where project_id = ${projectId} and person_id = ${personId}
       ${newest})`,
    fragment`
      (select 'session', s.started_at, null, s.id, null, null, null
       from person_browsers l
       cross join lateral (
         select id, started_at
         from sessions
         where project_id = ${projectId} and browser_id = l.browser_id and not closed
         order by started_at desc, id desc
         limit ${activityMaximum}
       ) s
       where l.project_id = ${projectId} and l.person_id = ${personId}
       ${newest})`,
    fragment`
      (select 'properties_edited', a.at, null, null, m.name, null, null
       from audit_log a left join auth.members m on m.id = a.member_id
       where a.project_id = ${projectId} and a.subject_kind = 'person'
         and a.subject_id = ${personId}::text and a.action = 'person.edited'
       ${newest})`,
    fragment`
      (select 'deletion_requested', j.created_at, null, null, null, j.id, j.keep_recordings
       ${jobs} ${newest})`,
    fragment`
      (select 'deletion_failed', (
         select max(t.ended_at) from deletion_attempts t
         where t.project_id = j.project_id and t.job_id = j.id), null, null, null, j.id, null
       ${jobs} and j.status = 'failed' ${newest})`,
  ]
}

function activityOf(row: ActivityRow): PersonActivity {
  const { kind, at } = row
  switch (kind) {
    case 'created':
      return { kind, at }
    case 'browser_linked':
      return { kind, at, browserId: row.browserId as string }
    case 'session':
      return { kind, at, sessionId: row.sessionId as string }
    case 'properties_edited':
      return { kind, at, memberName: row.memberName }
    case 'deletion_requested':
      return {
        kind,
        at,
        jobId: row.jobId as string,
        keepRecordings: row.keepRecordings as boolean,
      }
    case 'deletion_failed':
      return { kind, at, jobId: row.jobId as string }
  }
}
