import type { Session, SessionTab } from '@lethe/contract/session.ts'
import { packTab } from '../blobs/sealing.ts'
import type { Position } from '../http/page.ts'
import { fragment, type Sql } from '../sql.ts'

const sessionColumns = fragment`
  s.id, s.browser_id as "browserId", s.started_at as "startedAt",
  s.last_chunk_at as "lastChunkAt", s.first_event_at as "firstEventAt",
  s.last_event_at as "lastEventAt", s.errors, s.failed_requests as "failedRequests",
  s.rage_clicks as "rageClicks", s.dead_clicks as "deadClicks", s.chunks, s.bytes::float8 as bytes, s.pages, s.url,
  s.user_agent as "userAgent", s.country, s.sdk_version as "sdkVersion"`

/**
 * The sessions of a person, newest first; undefined if there is no such person. Reads at most a page
 * for each browser, so the work depends on the number of browsers, not of sessions.
 */
export async function listSessionsOfPerson(
  sql: Sql,
  projectId: number,
  externalId: string,
  after: Position<'startedAt' | 'id'> | null,
  limit: number,
): Promise<Session[] | undefined> {
  const [person] = await sql<{ id: string }>`
    select id from persons where project_id = ${projectId} and external_id = ${externalId}`
  if (!person) return undefined
  return sql<Session>`
    select ${sessionColumns}, s.started_at < l.linked_at as "beforeIdentification"
    from person_browsers l
    cross join lateral (
      select *
      from sessions s
      where s.project_id = ${projectId} and s.browser_id = l.browser_id and not s.closed
        and s.is_begun and (s.started_at, s.id) < (
          coalesce(${after?.startedAt ?? null}::timestamptz, 'infinity'),
          coalesce(${after?.id ?? null}::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
      order by s.started_at desc, s.id desc
      limit ${limit}
    ) s
    where l.project_id = ${projectId} and l.person_id = ${person.id}
    order by s.started_at desc, s.id desc
    limit ${limit}`
}

export async function findSession(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<Session | undefined> {
  const [session] = await sql<Session>`
    select ${sessionColumns},
      coalesce(s.started_at < l.linked_at, false) as "beforeIdentification"
    from sessions s
    left join person_browsers l on l.project_id = s.project_id and l.browser_id = s.browser_id
    where s.project_id = ${projectId} and s.id = ${id} and not s.closed`
  return session
}

/** The chunks of a session, including those in packs, which have no rows of their own. */
const storedChunks = (projectId: number, sessionId: string) => fragment`(
  select tab, number, blob_key, null::integer as pack, 0 as start, bytes, stored_at
  from chunks
  where project_id = ${projectId} and session_id = ${sessionId} and state = 'stored'
    and tab <> ${packTab}
  union all
  select (e ->> 0) collate "C", (e ->> 1)::integer, p.blob_key, p.number, (e ->> 3)::integer,
    (e ->> 4)::integer, to_timestamp((e ->> 5)::float8 / 1000)
  from sessions s
  cross join lateral jsonb_array_elements(s.packed) e
  join chunks p on p.project_id = s.project_id and p.session_id = s.id and p.tab = ${packTab}
    and p.number = (e ->> 2)::integer and p.state = 'stored'
  where s.project_id = ${projectId} and s.id = ${sessionId}
) c`

export function listTabs(sql: Sql, projectId: number, sessionId: string): Promise<SessionTab[]> {
  return sql<SessionTab>`
    select tab, count(*)::integer as chunks,
      (max(number) - min(number) + 1 - count(*))::integer as "missingChunks", sum(bytes)::float8 as bytes,
      min(stored_at) as "firstChunkAt", max(stored_at) as "lastChunkAt"
    from ${storedChunks(projectId, sessionId)}
    group by tab
    order by min(stored_at), tab`
}

export interface StoredChunk {
  tab: string
  number: number
  blobKey: string
  /** The number of the pack it is in; null if it has its own blob. */
  pack: number | null
  start: number
  bytes: number
}

/** A position to continue reading from. */
export type ChunkPosition = Pick<StoredChunk, 'tab' | 'number'>

/** The stored chunks of all tabs of a session or of one, in order, after `after`. */
export function listStoredChunks(
  sql: Sql,
  projectId: number,
  sessionId: string,
  tab: string | null,
  after: ChunkPosition | undefined,
  limit: number,
): Promise<StoredChunk[]> {
  return sql<StoredChunk>`
    select tab, number, blob_key as "blobKey", pack, start, bytes
    from ${storedChunks(projectId, sessionId)}
    where (${tab}::text is null or tab = ${tab})
      and (tab, number) > (${after?.tab ?? ''}, ${after?.number ?? -1})
    order by tab, number
    limit ${limit}`
}
