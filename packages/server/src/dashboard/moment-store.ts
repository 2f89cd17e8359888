import type { SessionLink, SessionNote } from '@lethe/contract/dashboard-moments.ts'
import { fragment, type Sql } from '../sql.ts'

/**
 * Locks the browser of a session, so that it is not retired before the transaction ends: nothing may be
 * written after the retirement. Returns undefined if there is no such session.
 */
export async function lockSession(
  tx: Sql,
  projectId: number,
  sessionId: string,
): Promise<{ isRetired: boolean; personId: string | null } | undefined> {
  const [browser] = await tx<{ id: string; isRetired: boolean }>`
    select b.id, b.retired as "isRetired"
    from sessions s
    join browsers b on b.project_id = s.project_id and b.id = s.browser_id
    where s.project_id = ${projectId} and s.id = ${sessionId} and not s.closed
    for share of b`
  if (!browser) return undefined
  const [link] = await tx<{ personId: string }>`
    select person_id as "personId"
    from person_browsers
    where project_id = ${projectId} and browser_id = ${browser.id}`
  return { isRetired: browser.isRetired, personId: link?.personId ?? null }
}

type Row<T> = Omit<T, 'member'> & { memberId: string; memberName: string | null }

const authored = fragment`r.id, r.at_milliseconds as at, r.created_at as "createdAt"`

/** In the order of their times in the recording. */
export async function listNotes(
  sql: Sql,
  projectId: number,
  sessionId: string,
): Promise<SessionNote[]> {
  const rows = await sql<Row<SessionNote>>`
    select ${authored}, r.text, r.member_id as "memberId", m.name as "memberName"
    from session_notes r
    left join auth.members m on m.id = r.member_id
    where r.project_id = ${projectId} and r.session_id = ${sessionId}
    order by r.at_milliseconds, r.id`
  return rows.map(withMember)
}

export async function countNotes(sql: Sql, projectId: number, sessionId: string): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::integer as count
    from session_notes
    where project_id = ${projectId} and session_id = ${sessionId}`
  return row?.count ?? 0
}

export async function insertNote(
  tx: Sql,
  projectId: number,
  { sessionId, at, text, memberId }: Place & { text: string },
): Promise<SessionNote> {
  const [note] = await tx<Row<SessionNote>>`
    with r as (
      insert into session_notes (project_id, session_id, at_milliseconds, text, member_id)
      values (${projectId}, ${sessionId}, ${at}, ${text}, ${memberId})
      returning *
    )
    select ${authored}, r.text, r.member_id as "memberId", m.name as "memberName"
    from r left join auth.members m on m.id = r.member_id`
  return withMember(note as Row<SessionNote>)
}

/** Deletes a note, only of this member if one is given. Returns whether there was one. */
export async function deleteNote(
  tx: Sql,
  projectId: number,
  { sessionId, id, memberId }: { sessionId: string; id: string; memberId: string | null },
): Promise<boolean> {
  const deleted = await tx`
    delete from session_notes
    where project_id = ${projectId} and session_id = ${sessionId} and id = ${id}
      and (${memberId}::uuid is null or member_id = ${memberId})
    returning id`
  return deleted.length > 0
}

/** The place and the author of a note or link. */
interface Place {
  sessionId: string
  /** Milliseconds since the beginning of the recording. */
  at: number
  memberId: string
}

/** The valid links, newest first. */
export async function listLinks(
  sql: Sql,
  projectId: number,
  sessionId: string,
): Promise<SessionLink[]> {
  const rows = await sql<Row<SessionLink>>`
    select ${authored}, r.expires_at as "expiresAt", r.made_by as "memberId", m.name as "memberName"
    from session_links r
    left join auth.members m on m.id = r.made_by
    where r.project_id = ${projectId} and r.session_id = ${sessionId} and r.expires_at > app_now()
    order by r.created_at desc, r.id`
  return rows.map(withMember)
}

export async function insertLink(
  tx: Sql,
  projectId: number,
  { sessionId, at, memberId, tokenHash, days }: Place & { tokenHash: Buffer; days: number },
): Promise<SessionLink> {
  const [link] = await tx<Row<SessionLink>>`
    with r as (
      insert into session_links (
        project_id, session_id, at_milliseconds, made_by, token_hash, expires_at)
      values (${projectId}, ${sessionId}, ${at}, ${memberId}, ${tokenHash},
        app_now() + ${days} * interval '1 day')
      returning *
    )
    select ${authored}, r.expires_at as "expiresAt", r.made_by as "memberId", m.name as "memberName"
    from r left join auth.members m on m.id = r.made_by`
  return withMember(link as Row<SessionLink>)
}

export async function deleteLink(
  tx: Sql,
  projectId: number,
  sessionId: string,
  id: string,
): Promise<boolean> {
  const deleted = await tx`
    delete from session_links
    where project_id = ${projectId} and session_id = ${sessionId} and id = ${id}
    returning id`
  return deleted.length > 0
}

/** A valid link, by the hash of its token. */
export async function findSessionLink(
  sql: Sql,
  projectId: number,
  tokenHash: Buffer,
): Promise<{ id: string; sessionId: string; at: number; expiresAt: string } | undefined> {
  const [link] = await sql<{ id: string; sessionId: string; at: number; expiresAt: string }>`
    select id, session_id as "sessionId", at_milliseconds as at, expires_at as "expiresAt"
    from session_links
    where project_id = ${projectId} and token_hash = ${tokenHash} and expires_at > app_now()`
  return link
}

function withMember<T extends { member: { id: string; name: string | null } }>({
  memberId,
  memberName,
  ...row
}: Row<T>): T {
  return { ...row, member: { id: memberId, name: memberName } } as unknown as T
}
