import { browserPrefix } from '../blobs/blobs.ts'
import type { Sql } from '../sql.ts'

/*
 * What the erasure and the retention take away, and how they make sure of it. Blobs go before the
 * rows that lead to them; the functions here only see to the rows.
 */

/** Chunk rows deleted by one statement: some 8 ms, with hardly an effect on readers beside it. */
export const chunkRowsAPart = 5_000

const sessionRowsAPart = 1_000

export interface RemovedRows {
  sessions: number
  chunks: number
}

/** Where all blobs of a browser lie. */
export const blobPrefixOf = browserPrefix

/**
 * Retires all browsers of a person: from the commit on they take no session, chunk or identify, so
 * what they recorded is a closed set. Called by whoever holds the person's lock (the order of locks
 * is person, browsers by id). Waits for the ingestion that holds a browser: milliseconds, as no
 * upload is made inside of a transaction.
 */
export async function retireBrowsersOf(
  tx: Sql,
  projectId: number,
  personId: string,
): Promise<void> {
  await tx`
    select from browsers b
    join person_browsers l on l.project_id = b.project_id and l.browser_id = b.id
    where l.project_id = ${projectId} and l.person_id = ${personId}
    order by b.id
    for update of b`
  await tx`
    update browsers b set retired = true
    from person_browsers l
    where l.project_id = ${projectId} and l.person_id = ${personId}
      and b.project_id = l.project_id and b.id = l.browser_id and not b.retired`
}

/** The ids of a person's browsers in order, those after `afterId`, or from the first on (null). */
export async function browsersOf(
  sql: Sql,
  projectId: number,
  personId: string,
  afterId: string | null,
  limit: number,
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select browser_id as id
    from person_browsers
    where project_id = ${projectId} and person_id = ${personId}
      and browser_id > coalesce(${afterId}::uuid, '00000000-0000-0000-0000-000000000000')
    order by browser_id
    limit ${limit}`
  return rows.map((row) => row.id)
}

/**
 * Ends the intents of a person's browsers whose time is over: what is dead is never confirmed,
 * also if a clock jumps back. Answers how many.
 */
export async function killExpiredIntents(
  sql: Sql,
  projectId: number,
  personId: string,
): Promise<number> {
  const killed = await sql`
    update chunks c set state = 'dead'
    from sessions s
    join person_browsers l on l.project_id = s.project_id and l.browser_id = s.browser_id
    where c.project_id = ${projectId} and c.state = 'intent' and c.state <> 'stored'
      and c.intent_until <= app_now()
      and s.project_id = c.project_id and s.id = c.session_id
      and l.person_id = ${personId}
    returning c.number`
  return killed.length
}

/** How many uploads of a person's browsers may still be confirmed. */
export async function countOpenIntents(
  sql: Sql,
  projectId: number,
  personId: string,
): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::integer as count
    from chunks c
    join sessions s on s.project_id = c.project_id and s.id = c.session_id
    join person_browsers l on l.project_id = s.project_id and l.browser_id = s.browser_id
    where c.project_id = ${projectId} and c.state = 'intent' and c.state <> 'stored'
      and l.person_id = ${personId}`
  return row?.count ?? 0
}

/**
 * Deletes a part of the session and chunk rows of these browsers, whose blobs are gone. To be
 * called until `isDone`; the browsers themselves stay, as the way to what is left.
 */
export async function deleteRowsOfBrowsers(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
  limit: number = chunkRowsAPart,
): Promise<RemovedRows & { isDone: boolean }> {
  const rows = await sql<{ id: string }>`
    select id
    from sessions
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])
    limit ${sessionRowsAPart}`
  const sessionIds = rows.map((row) => row.id)
  const removed = await deleteRowsOfSessions(sql, projectId, sessionIds, limit)
  return { ...removed, isDone: removed.isDone && sessionIds.length < sessionRowsAPart }
}

/** Deletes a part of the rows of these sessions, at most some thousand, whose blobs are gone. */
export async function deleteRowsOfSessions(
  sql: Sql,
  projectId: number,
  sessionIds: readonly string[],
  limit: number = chunkRowsAPart,
): Promise<RemovedRows & { isDone: boolean }> {
  if (sessionIds.length === 0) return { sessions: 0, chunks: 0, isDone: true }
  const [deleted] = await sql<{ chunks: number }>`
    with part as (
      select session_id, tab, number
      from chunks
      where project_id = ${projectId} and session_id = any(${sessionIds}::uuid[])
      -- In one order, so that an erasure and a retention at the same rows wait for each other.
      order by session_id, tab, number
      limit ${limit}
      for update
    ), deleted as (
      delete from chunks c
      using part p
      where c.project_id = ${projectId} and c.session_id = p.session_id
        and c.tab = p.tab and c.number = p.number
      returning 1
    )
    select count(*)::integer as chunks from deleted`
  const chunks = deleted?.chunks ?? 0
  if (chunks >= limit) return { sessions: 0, chunks, isDone: false }
  const sessions = await sql`
    delete from sessions
    where project_id = ${projectId} and id = any(${sessionIds}::uuid[])
    returning id`
  return { sessions: sessions.length, chunks, isDone: true }
}

/** Deletes browsers without sessions, and whose they are. Answers how many. */
export async function deleteBrowsers(
  tx: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<number> {
  await tx`
    delete from person_browsers
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])`
  const deleted = await tx`
    delete from browsers
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])
    returning id`
  return deleted.length
}

/**
 * Forgets whose browsers they were; they and their sessions stay, retired and nobody's. Answers how
 * many.
 */
export async function unlinkBrowsers(
  tx: Sql,
  projectId: number,
  personId: string,
): Promise<number> {
  const cut = await tx`
    delete from person_browsers
    where project_id = ${projectId} and person_id = ${personId}
    returning browser_id`
  return cut.length
}

/**
 * What is left of the recordings of these browsers. Chunks are found by their blobs' keys and not
 * by their sessions, the way they were deleted.
 */
export async function countRemains(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<RemovedRows> {
  const [row] = await sql<RemovedRows>`
    select
      (select count(*)::integer from sessions
       where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])) as sessions,
      (select count(*)::integer
       from unnest(${browserIds.map((id) => blobPrefixOf(projectId, id))}::text[]) as prefix
       join chunks c on c.project_id = ${projectId}
         -- The character after the slash that ends a prefix is 0.
         and c.blob_key >= prefix collate "C" and c.blob_key < rtrim(prefix, '/') || '0' collate "C"
      ) as chunks`
  return row as RemovedRows
}
