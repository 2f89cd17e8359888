import type {
  listSessions as listSessionsEndpoint,
  SessionSummary,
} from '@lethe/contract/dashboard-sessions.ts'
import type { Static } from 'typebox'
import type { Position } from '../http/page.ts'
import { fragment, join, type Sql } from '../sql.ts'

export type SessionFilter = Omit<
  Static<typeof listSessionsEndpoint.schema.querystring>,
  'limit' | 'cursor'
>

/** A session is live while its last chunk is younger: there is one at least every 30 seconds. */
const liveSeconds = 60

/** By the times of its events, not of their arrival: a browser may have been offline for hours. */
const seconds = fragment`
  coalesce(round(extract(epoch from
    coalesce(s.last_event_at - s.first_event_at, s.last_chunk_at - s.started_at))), 0)::integer`

const lastAt = fragment`coalesce(s.last_event_at, s.last_chunk_at, s.started_at)`

type SessionRow = Omit<SessionSummary, 'person'> & {
  personId: string | null
  externalId: string | null
  name: string | null
  isBeingDeleted: boolean | null
}

type SessionPosition = Position<'startedAt' | 'id'>

export interface SessionPage {
  sessions: SessionSummary[]
  /** Where the next page begins; null on the last one. */
  next: SessionPosition | null
}

/**
 * How many sessions one request checks against filters that no index helps with. A page may thus be
 * short or empty without being the last one.
 */
const windowRows = 5_000

/** Returns one page: the newest first, or the newest `windowSize` in the order of `filter.sort`. */
export async function listSessions(
  sql: Sql,
  projectId: number,
  filter: SessionFilter,
  after: SessionPosition | null,
  limit: number,
  windowSize = windowRows,
): Promise<SessionPage> {
  const { sort, personId } = filter
  const base = join(baseConditions(projectId, filter, after), ' and ')
  const rare = rareConditions(projectId, filter)
  const isRare = rare.length > 0 ? join(rare, ' and ') : fragment`true`
  const isWindowed = sort !== undefined || (rare.length > 0 && personId === undefined)
  const newest = fragment`s.started_at desc, s.id desc`
  const looked = fragment`order by ${newest} limit ${isWindowed ? windowSize : limit + 1}`
  const order = sort === undefined ? newest : fragment`${sortKeys[sort]} desc, ${newest}`
  const page =
    personId === undefined
      ? fragment`
          select s.* from (select s.* from sessions s where ${base} ${looked}) s
          where ${isRare} order by ${order} limit ${limit + 1}`
      : // At most a page for each browser, so the work depends on browsers and not on sessions.
        fragment`
          select s.*
          from person_browsers l
          cross join lateral (
            select s.* from sessions s
            where s.browser_id = l.browser_id and ${base} and ${isRare} ${looked}
          ) s
          where l.project_id = ${projectId} and l.person_id = ${personId}
          order by ${order} limit ${limit + 1}`
  const rows = await sql<SessionRow>`
    ${selectSession(projectId, page)}
    order by ${order}`
  const sessions = rows.slice(0, limit).map(summaryOf)
  if (sort !== undefined) return { sessions, next: null }
  if (rows.length > limit) return { sessions, next: sessions.at(-1) ?? null }
  if (!isWindowed) return { sessions, next: null }
  const [end] = await sql<SessionPosition>`
    select s.started_at as "startedAt", s.id
    from sessions s
    where s.project_id = ${projectId} and ${base}
    order by s.started_at desc, s.id desc
    offset ${windowSize - 1} limit 1`
  return { sessions, next: end ?? null }
}

const sortKeys = {
  longest: seconds,
  most_pages: fragment`s.pages`,
  most_errors: fragment`s.errors + s.failed_requests + s.rage_clicks`,
}

export async function findSessionSummary(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<SessionSummary | undefined> {
  const [row] = await sql<SessionRow>`
    ${selectSession(
      projectId,
      fragment`
        select * from sessions
        where project_id = ${projectId} and id = ${id} and not closed`,
    )}`
  return row && summaryOf(row)
}

/** The sessions before and after this one, of the same person or, if anonymous, the same browser. */
export async function findNeighbours(
  sql: Sql,
  projectId: number,
  { id, startedAt, browserId, person }: SessionSummary,
): Promise<{ previousId: string | null; nextId: string | null }> {
  const browsers =
    person === null
      ? fragment`select ${browserId}::uuid as browser_id`
      : fragment`
          select browser_id from person_browsers
          where project_id = ${projectId} and person_id = ${person.id}`
  const neighbour = (isPrevious: boolean) => {
    const side = isPrevious ? fragment`<` : fragment`>`
    const order = isPrevious ? fragment`desc` : fragment`asc`
    const nearest = fragment`order by s.started_at ${order}, s.id ${order} limit 1`
    return fragment`
      (select s.id
       from (${browsers}) l
       cross join lateral (
         select s.id, s.started_at
         from sessions s
         where s.project_id = ${projectId} and s.browser_id = l.browser_id and not s.closed
           and s.is_begun and (s.started_at, s.id) ${side} (${startedAt}::timestamptz, ${id}::uuid)
         ${nearest}
       ) s
       ${nearest})`
  }
  const [found] = await sql<{ previousId: string | null; nextId: string | null }>`
    select ${neighbour(true)} as "previousId", ${neighbour(false)} as "nextId"`
  return found as NonNullable<typeof found>
}

function selectSession(projectId: number, page: ReturnType<typeof fragment>) {
  return fragment`
    select s.id, s.browser_id as "browserId", s.started_at as "startedAt",
      s.last_chunk_at as "lastChunkAt", ${seconds} as seconds, s.pages, s.chunks,
      s.bytes::float8 as bytes, s.url, s.user_agent as "userAgent", s.country, s.errors,
      s.failed_requests as "failedRequests", s.rage_clicks as "rageClicks",
      s.dead_clicks as "deadClicks",
      coalesce(s.last_chunk_at, s.started_at) > app_now() - ${liveSeconds} * interval '1 second'
        and not b.retired as "isLive",
      coalesce(${lastAt} < l.linked_at, false) as "isBeforeIdentification",
      p.id as "personId", p.external_id as "externalId",
      case when jsonb_typeof(p.properties -> 'name') = 'string' then p.properties ->> 'name' end
        as name,
      p.deletion_job_id is not null as "isBeingDeleted"
    from (${page}) s
    join browsers b on b.project_id = ${projectId} and b.id = s.browser_id
    left join person_browsers l on l.project_id = ${projectId} and l.browser_id = s.browser_id
    left join persons p on p.project_id = ${projectId} and p.id = l.person_id`
}

/** Conditions that indexes help with. */
function baseConditions(
  projectId: number,
  { browserId, from, to }: SessionFilter,
  after: SessionPosition | null,
) {
  const conditions = [fragment`s.project_id = ${projectId} and not s.closed and s.is_begun`]
  if (after) {
    conditions.push(
      fragment`(s.started_at, s.id) < (${after.startedAt}::timestamptz, ${after.id}::uuid)`,
    )
  }
  if (browserId !== undefined) conditions.push(fragment`s.browser_id = ${browserId}`)
  if (from !== undefined) conditions.push(fragment`s.started_at >= ${from}::timestamptz`)
  if (to !== undefined) conditions.push(fragment`s.started_at < ${to}::timestamptz`)
  return conditions
}

/** Conditions that are checked session by session. */
function rareConditions(projectId: number, filter: SessionFilter) {
  const { isIdentified, minimumSeconds, isBeforeIdentification, page, property } = filter
  const conditions = []
  if (minimumSeconds !== undefined) conditions.push(fragment`${seconds} >= ${minimumSeconds}`)
  if (isIdentified !== undefined) {
    conditions.push(
      fragment`${isIdentified} = exists (
        select from person_browsers i
        where i.project_id = ${projectId} and i.browser_id = s.browser_id)`,
    )
  }
  if (isBeforeIdentification !== undefined) {
    conditions.push(
      fragment`exists (
        select from person_browsers l
        where l.project_id = ${projectId} and l.browser_id = s.browser_id
          and ${isBeforeIdentification} = (${lastAt} < l.linked_at))`,
    )
  }
  if (page !== undefined) {
    conditions.push(fragment`position(lower(${page}) in lower(coalesce(s.url, ''))) > 0`)
  }
  if (filter.browser) conditions.push(fragment`s.user_agent ~ ${agents[filter.browser]}`)
  if (filter.device) {
    conditions.push(fragment`${filter.device === 'mobile'} = (s.user_agent ~ ${mobileAgent})`)
  }
  if (filter.country) conditions.push(fragment`s.country = ${filter.country}`)
  if (filter.with) conditions.push(fragment`${troubleColumns[filter.with]} > 0`)
  if (property !== undefined) {
    const at = property.indexOf('=')
    conditions.push(
      fragment`exists (
        select from person_browsers l
        join persons p on p.project_id = l.project_id and p.id = l.person_id
        where l.project_id = ${projectId} and l.browser_id = s.browser_id
          and p.properties ->> ${property.slice(0, at)} = ${property.slice(at + 1)})`,
    )
  }
  return conditions
}

const troubleColumns = {
  errors: fragment`s.errors`,
  failed_requests: fragment`s.failed_requests`,
  rage_clicks: fragment`s.rage_clicks`,
  dead_clicks: fragment`s.dead_clicks`,
}

/** The other browsers also call themselves Chrome or Safari. */
const agents = {
  chrome: '^(?!.*(Edg|OPR|SamsungBrowser)).*(Chrome|CriOS|Chromium)/',
  edge: 'Edg(e|A|iOS)?/',
  firefox: '(Firefox|FxiOS)/',
  safari: '^(?!.*(Chrome|CriOS|Chromium|Edg|OPR|FxiOS)).*Version/.*Safari/',
}

const mobileAgent = 'Mobi|Android|iPhone|iPad|iPod'

function summaryOf(row: SessionRow): SessionSummary {
  const { personId, externalId, name, isBeingDeleted, ...session } = row
  if (personId === null || externalId === null) return { ...session, person: null }
  return {
    ...session,
    person: { id: personId, externalId, name, isBeingDeleted: isBeingDeleted ?? false },
  }
}
