import { browserPrefix, sessionPrefix } from '../blobs/blobs.ts'
import type { Sql } from '../sql.ts'
import { destroyBrowserKeys } from './browser-keys.ts'
import { deleteBrowsers, deleteRowsOfSessions, type OwnedSession } from './store.ts'
import type { Recordings } from './upload.ts'

/** Sessions closed and deleted at one go. */
const sessionsAPart = 100

/** Browsers looked at by one statement. */
const browsersAPart = 1_000

const deletionsAtOnce = 4

export interface Expired {
  sessions: number
  chunks: number
  browsers: number
}

/**
 * Deletes what a project keeps no longer: sessions whose last activity is older than its retention,
 * the way an erasure does it (blobs, then rows), and then browsers that are nobody's and have no
 * session. May be broken off at any point, and several processes may do it at once.
 */
export async function expireRecordings(recordings: Recordings): Promise<Expired> {
  const { sql } = recordings.db
  const expired = { sessions: 0, chunks: 0, browsers: 0 }
  const projects = await sql<{ id: number; retentionDays: number }>`
    select id, retention_days as "retentionDays" from projects order by id`
  for (const { id, retentionDays } of projects) {
    while ((await closeOldSessions(sql, id, retentionDays)) === sessionsAPart);
    await deleteOwnedSessions(recordings, id, expired)
    expired.browsers += await deleteUnusedBrowsers(recordings, id, retentionDays)
  }
  return expired
}

/**
 * Closes old sessions, so that they take no chunk and what has to go is a closed set. The lock
 * waits for intents in the making; the second statement sees what they have changed.
 */
async function closeOldSessions(sql: Sql, projectId: number, days: number): Promise<number> {
  const closed = await sql`
    with old as (
      select id
      from sessions
      where project_id = ${projectId} and not closed
        and started_at < app_now() - ${days} * interval '1 day'
        and coalesce(last_chunk_at, started_at) < app_now() - ${days} * interval '1 day'
      order by started_at
      limit ${sessionsAPart}
      for update skip locked
    )
    update sessions s set closed = true
    from old
    where s.project_id = ${projectId} and s.id = old.id
    returning s.id`
  return closed.length
}

async function deleteOwnedSessions(
  recordings: Recordings,
  projectId: number,
  expired: Expired,
): Promise<void> {
  const { db, blobs } = recordings
  let afterId: string | null = null
  for (;;) {
    const sessions: OwnedSession[] = await drainedSessions(db.sql, projectId, afterId)
    await inParallel(sessions, async ({ id, browserId }) => {
      await blobs.deletePrefix(sessionPrefix(projectId, browserId, id))
    })
    await deleteRows(db.sql, projectId, sessions, expired)
    if (sessions.length < sessionsAPart) return
    afterId = sessions.at(-1)?.id ?? null
  }
}

async function deleteRows(
  sql: Sql,
  projectId: number,
  sessions: readonly OwnedSession[],
  expired: Expired,
) {
  for (;;) {
    const { removed, isDone } = await deleteRowsOfSessions(sql, projectId, sessions)
    for (const { sessions, chunks } of removed.values()) {
      expired.sessions += sessions
      expired.chunks += chunks
    }
    if (isDone) return
  }
}

/** Closed sessions none of whose uploads can still be confirmed; the others have their turn later. */
async function drainedSessions(
  sql: Sql,
  projectId: number,
  afterId: string | null,
): Promise<OwnedSession[]> {
  await sql`
    update chunks c set state = 'dead'
    from sessions s
    where c.project_id = ${projectId} and c.state = 'intent' and c.state <> 'stored'
      and c.intent_until <= app_now()
      and s.project_id = c.project_id and s.id = c.session_id and s.closed`
  return sql<OwnedSession>`
    select id, browser_id as "browserId"
    from sessions s
    where project_id = ${projectId} and closed
      and id > coalesce(${afterId}::uuid, '00000000-0000-0000-0000-000000000000')
      and not exists (
        select from chunks c
        where c.project_id = s.project_id and c.session_id = s.id and c.state = 'intent')
    order by id
    limit ${sessionsAPart}`
}

/**
 * Browsers without a session and without a person, older than the retention. They are retired
 * first, so that no start can give one a session in between; then go key, blobs and row.
 */
async function deleteUnusedBrowsers(
  { db, blobs, browserKeys }: Recordings,
  projectId: number,
  days: number,
): Promise<number> {
  let deleted = 0
  let lastId: string | null = null
  for (;;) {
    const [part]: { ids: string[] | null; lastId: string | null }[] = await db.sql`
      with part as (
        select id, created_at, retired
        from browsers
        where project_id = ${projectId}
          and id > coalesce(${lastId}::uuid, '00000000-0000-0000-0000-000000000000')
        order by id
        limit ${browsersAPart}
      )
      select (select id from part order by id desc limit 1) as "lastId",
        (select array_agg(id) from part
         where created_at < app_now() - ${days} * interval '1 day'
           and not exists (select from sessions s
             where s.project_id = ${projectId} and s.browser_id = part.id)
           and not exists (select from person_browsers l
             where l.project_id = ${projectId} and l.browser_id = part.id)) as ids`
    if (!part?.lastId) return deleted
    lastId = part.lastId
    const unused = await db.begin((tx) => retireUnused(tx, projectId, part.ids ?? []))
    if (unused.length === 0) continue
    await destroyBrowserKeys(browserKeys.sql, projectId, unused)
    await inParallel(unused, async (id) => {
      await blobs.deletePrefix(browserPrefix(projectId, id))
    })
    deleted += (await db.begin((tx) => deleteBrowsers(tx, projectId, unused))).length
  }
}

/** Looks again under the lock, where no start, identify or deletion of a person is under way. */
async function retireUnused(tx: Sql, projectId: number, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  await tx`
    select from browsers
    where project_id = ${projectId} and id = any(${ids}::uuid[])
    order by id
    for update`
  const unused = await tx<{ id: string }>`
    update browsers b set retired = true
    where project_id = ${projectId} and id = any(${ids}::uuid[])
      and not exists (select from sessions s
        where s.project_id = b.project_id and s.browser_id = b.id)
      and not exists (select from person_browsers l
        where l.project_id = b.project_id and l.browser_id = b.id)
    returning id`
  return unused.map((browser) => browser.id)
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items]
  const lane = async () => {
    for (let item = rest.pop(); item !== undefined; item = rest.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: deletionsAtOnce }, lane))
}
