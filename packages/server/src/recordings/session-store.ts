import type { Session, SessionTab } from '@lethe/contract/session.ts'
import { fragment, type Sql } from '../sql.ts'

const sessionColumns = fragment`
  s.id, s.browser_id as "browserId", s.started_at as "startedAt",
  s.last_chunk_at as "lastChunkAt", s.chunks, s.bytes::float8 as bytes, s.pages, s.url,
  s.user_agent as "userAgent", s.sdk_version as "sdkVersion"`

/** Where a page of sessions begins: right after this one. */
export interface SessionPosition {
  startedAt: string
  id: string
}

/**
 * The sessions of a person, newest started first; undefined where there is no such person. Each of
 * its browsers gives a page at most, so the work is bounded by browsers and not by sessions.
 */
export async function listSessionsOfPerson(
  sql: Sql,
  projectId: number,
  externalId: string,
  after: SessionPosition | null,
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
        and (s.started_at, s.id) < (
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

export function listTabs(sql: Sql, projectId: number, sessionId: string): Promise<SessionTab[]> {
  return sql<SessionTab>`
    select tab, count(*)::integer as chunks, sum(bytes)::float8 as bytes,
      min(stored_at) as "firstChunkAt", max(stored_at) as "lastChunkAt"
    from chunks
    where project_id = ${projectId} and session_id = ${sessionId} and state = 'stored'
    group by tab
    order by min(stored_at), tab`
}

export interface StoredChunk {
  tab: string
  number: number
  blobKey: string
}

/** The stored chunks of a session in order, those after `after`, of all tabs or of one. */
export function listStoredChunks(
  sql: Sql,
  projectId: number,
  sessionId: string,
  tab: string | null,
  after: StoredChunk | undefined,
  limit: number,
): Promise<StoredChunk[]> {
  return sql<StoredChunk>`
    select tab, number, blob_key as "blobKey"
    from chunks
    where project_id = ${projectId} and session_id = ${sessionId} and state = 'stored'
      and (${tab}::text is null or tab = ${tab})
      and (tab, number) > (${after?.tab ?? ''}, ${after?.number ?? -1})
    order by tab, number
    limit ${limit}`
}
