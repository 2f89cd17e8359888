import { browserPrefix } from '../blobs/blobs.ts'
import { type Fragment, fragment, raw, type Sql } from '../sql.ts'

/*
 * Deletes the rows of recordings, for the erasure and the retention, and counts what is left. Blobs are
 * deleted before the rows that lead to them, by the callers.
 */

/** Chunk rows deleted by one statement, which takes 8 ms and hardly affects readers. */
export const chunkRowsAPart = 5_000

const sessionRowsAPart = 1_000

export interface RemovedRows {
  sessions: number
  chunks: number
}

/**
 * Retires browsers: after the commit they accept no session, chunk or identify, so what they recorded
 * is complete. Waits for ingestion that has one of them locked, for milliseconds, because transactions
 * contain no uploads. Returns the ids of the existing ones.
 */
export async function retireBrowsers(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
  { isRemoved = false } = {},
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    with locked as (
      select id from browsers
      where project_id = ${projectId} and id = any(${browserIds}::uuid[])
      order by id
      for update -- fault: retire-locks-browsers
    )
    update browsers b set retired = true, removal_begun = removal_begun or ${isRemoved}
    from locked
    where b.project_id = ${projectId} and b.id = locked.id
    returning b.id`
  return rows.map(({ id }) => id)
}

/** Returns those of these browsers whose recordings an erasure has begun to delete. */
export async function findRemovalBegun(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select id from browsers
    where project_id = ${projectId} and id = any(${browserIds}::uuid[]) and removal_begun`
  return rows.map(({ id }) => id)
}

/**
 * Counts the chunks of each browser that must have a blob. Leaves out browsers whose blobs may already
 * have been deleted, and sessions that the retention deletes.
 */
export async function countStoredChunks(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await sql<{ browserId: string; chunks: number }>`
    select s.browser_id as "browserId", count(*)::integer as chunks
    from browsers b
    join sessions s on s.project_id = b.project_id and s.browser_id = b.id and not s.closed
    join chunks c on c.project_id = s.project_id and c.session_id = s.id and c.state = 'stored'
    where b.project_id = ${projectId} and b.id = any(${browserIds}::uuid[])
      and not b.removal_counted
    group by s.browser_id`
  return new Map(rows.map(({ browserId, chunks }) => [browserId, chunks]))
}

export interface FoundBlobs {
  browserId: string
  /** The number of blobs whose chunks `countStoredChunks` counts. */
  chunks: number
  /** Keys without a chunk in any state. */
  unknown: string[]
}

/** What the database knows about blobs, grouped by the browser whose folder they are in. */
export function findBlobs(
  sql: Sql,
  projectId: number,
  blobs: readonly { browserId: string; key: string }[],
): Promise<FoundBlobs[]> {
  return sql<FoundBlobs>`
    select f.browser_id as "browserId",
      count(*) filter (where c.state = 'stored' and s.id is not null)::integer as chunks,
      coalesce(array_agg(f.key) filter (where c.blob_key is null), '{}') as unknown
    from unnest(
      ${blobs.map(({ browserId }) => browserId)}::uuid[], ${blobs.map(({ key }) => key)}::text[]
    ) as f (browser_id, key)
    left join chunks c on c.project_id = ${projectId} and c.blob_key = f.key
    left join sessions s on s.project_id = ${projectId} and s.id = c.session_id
      and s.browser_id = f.browser_id and not s.closed
    group by f.browser_id`
}

/** Records that blobs of these browsers may be missing from now on. */
export async function markCounted(
  tx: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<void> {
  await tx`
    update browsers set removal_counted = true
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])`
}

export interface OwnedBrowser {
  id: string
  personId: string
}

/** The browsers of persons in the order of their ids, after `afterId` or from the first (null). */
export function browsersOf(
  sql: Sql,
  projectId: number,
  personIds: readonly string[],
  afterId: string | null,
  limit: number,
): Promise<OwnedBrowser[]> {
  // For a single person, who may have many, the index has this order.
  const areTheirs =
    personIds.length === 1
      ? fragment`person_id = ${personIds[0]}`
      : fragment`person_id = any(${personIds}::bigint[])`
  return sql<OwnedBrowser>`
    select browser_id as id, person_id as "personId"
    from person_browsers
    where project_id = ${projectId} and ${areTheirs}
      and browser_id > coalesce(${afterId}::uuid, '00000000-0000-0000-0000-000000000000')
    order by browser_id
    limit ${limit}`
}

/**
 * Ends up to `limit` expired intents of these persons' browsers, or of closed sessions, so that they
 * are never confirmed, even if a clock jumps back. Returns the number.
 */
export function killExpiredIntents(
  sql: Sql,
  projectId: number,
  of: readonly string[] | 'closed',
  limit: number = chunkRowsAPart,
): Promise<number> {
  const whose = of === 'closed' ? fragment`and s.closed` : joinPersons(of)
  return killIntents(sql, projectId, whose, fragment`app_now()`, limit)
}

/**
 * Ends the intents of this person's browsers that were created before `instant`, even if they have not
 * expired: an intent lasts 60 seconds (`chunk_intend`).
 */
export async function killIntentsBefore(
  sql: Sql,
  projectId: number,
  personId: string,
  instant: string,
): Promise<void> {
  const until = fragment`${instant}::timestamptz + interval '60 seconds'`
  const kill = () => killIntents(sql, projectId, joinPersons([personId]), until, chunkRowsAPart)
  while ((await kill()) === chunkRowsAPart);
}

/** Joins the persons of a session `s`. */
const joinPersons = (personIds: readonly string[]) => fragment`
  join person_browsers l on l.project_id = s.project_id and l.browser_id = s.browser_id
    and l.person_id = any(${personIds}::bigint[])`

/** `whose` continues the join with a chunk's session `s`. */
async function killIntents(
  sql: Sql,
  projectId: number,
  whose: Fragment,
  until: Fragment,
  limit: number,
): Promise<number> {
  const killed = await sql`
    update chunks c set state = 'dead' -- fault: drain-ends-intents
    from (
      select c.session_id, c.tab, c.number
      from chunks c
      join sessions s on s.project_id = c.project_id and s.id = c.session_id ${whose}
      where c.project_id = ${projectId} and c.state = 'intent' and c.state <> 'stored'
        and c.intent_until <= ${until} -- fault: drain-expired
      limit ${limit}
    ) part
    where c.project_id = ${projectId} and c.session_id = part.session_id
      and c.tab = part.tab and c.number = part.number
      and c.state = 'intent' and c.state <> 'stored'
    returning c.number`
  return killed.length
}

/** Counts the uploads of these persons' browsers that may still be confirmed. */
export async function countOpenIntents(
  sql: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::integer as count
    from chunks c
    join sessions s on s.project_id = c.project_id and s.id = c.session_id ${joinPersons(personIds)}
    where c.project_id = ${projectId} and c.state = 'intent' and c.state <> 'stored'`
  return row?.count ?? 0
}

export interface RemovedPart {
  /** By browser id. */
  removed: Map<string, RemovedRows>
  isDone: boolean
}

/**
 * Deletes a batch of the session and chunk rows of these browsers, whose blobs are gone. Call it until
 * `isDone`. The rows of the browsers stay, because they lead to the rest.
 */
export async function deleteRowsOfBrowsers(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
  limit: number = chunkRowsAPart,
): Promise<RemovedPart> {
  const sessions = await sql<OwnedSession>`
    select id, browser_id as "browserId"
    from sessions
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])
    limit ${sessionRowsAPart}`
  const { removed, isDone } = await deleteRowsOfSessions(sql, projectId, sessions, limit)
  return { removed, isDone: isDone && sessions.length < sessionRowsAPart }
}

export interface OwnedSession {
  id: string
  browserId: string
}

/** Deletes a batch of the rows of these sessions, whose blobs are gone. */
export async function deleteRowsOfSessions(
  sql: Sql,
  projectId: number,
  sessions: readonly OwnedSession[],
  limit: number = chunkRowsAPart,
): Promise<RemovedPart> {
  const removed = new Map<string, RemovedRows>()
  if (sessions.length === 0) return { removed, isDone: true }
  const browserOf = new Map(sessions.map(({ id, browserId }) => [id, browserId]))
  const count = (sessionId: string, counted: RemovedRows) => {
    const browserId = browserOf.get(sessionId) as string
    const before = removed.get(browserId) ?? { sessions: 0, chunks: 0 }
    removed.set(browserId, {
      sessions: before.sessions + counted.sessions,
      chunks: before.chunks + counted.chunks,
    })
  }
  const ids = [...browserOf.keys()]
  const deleted = await sql<{ sessionId: string; chunks: number }>`
    with part as (
      select session_id, tab, number
      from chunks
      where project_id = ${projectId} and session_id = any(${ids}::uuid[])
      -- In a fixed order, so that an erasure and the retention wait for each other.
      order by session_id, tab, number
      limit ${limit}
      for update -- fault: delete-locks-chunks
    ), deleted as (
      delete from chunks c
      using part p
      where c.project_id = ${projectId} and c.session_id = p.session_id
        and c.tab = p.tab and c.number = p.number
      returning c.session_id
    )
    select session_id as "sessionId", count(*)::integer as chunks
    from deleted
    group by session_id`
  let total = 0
  for (const { sessionId, chunks } of deleted) {
    count(sessionId, { sessions: 0, chunks })
    total += chunks
  }
  if (total >= limit) return { removed, isDone: false }
  const gone = await sql<{ id: string }>`
    delete from sessions
    where project_id = ${projectId} and id = any(${ids}::uuid[])
    returning id`
  for (const { id } of gone) count(id, { sessions: 1, chunks: 0 })
  return { removed, isDone: true }
}

/** Deletes browsers without sessions and their links to persons. Returns the deleted ids. */
export async function deleteBrowsers(
  tx: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<string[]> {
  // In a fixed order, so that an erasure and the retention wait for each other.
  await tx`
    select from browsers
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])
    order by id
    for update -- fault: delete-locks-browsers
    `
  await tx`
    delete from person_browsers
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])`
  const deleted = await tx<{ id: string }>`
    delete from browsers
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])
    returning id`
  return deleted.map(({ id }) => id)
}

/** Deletes the links of persons to browsers. The retired browsers and their sessions stay. */
export async function unlinkBrowsers(
  tx: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  // Browsers that are kept must look like any other.
  await tx`
    update browsers b set removal_begun = false, removal_counted = false
    from person_browsers l
    where l.project_id = ${projectId} and l.person_id = any(${personIds}::bigint[])
      and b.project_id = l.project_id and b.id = l.browser_id
      and (b.removal_begun or b.removal_counted)`
  // No new ones can be written, because the browsers are retired.
  for (const written of [raw('session_notes'), raw('session_links')]) {
    await tx`
      delete from ${written} n
      using sessions s, person_browsers l
      where l.project_id = ${projectId} and l.person_id = any(${personIds}::bigint[])
        and s.project_id = ${projectId} and s.browser_id = l.browser_id
        and n.project_id = ${projectId} and n.session_id = s.id`
  }
  await tx`
    delete from person_browsers
    where project_id = ${projectId}
      and person_id = any(${personIds}::bigint[]) -- fault: unlink-browsers
    `
}

/**
 * Counts what is left of the recordings of these browsers. Finds chunks by the keys of their blobs,
 * independently of how they were deleted.
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
       from unnest(${browserIds.map((id) => browserPrefix(projectId, id))}::text[]) as prefix
       join chunks c on c.project_id = ${projectId}
         -- The character after the slash that ends a prefix is 0.
         and c.blob_key >= prefix collate "C" and c.blob_key < rtrim(prefix, '/') || '0' collate "C"
      ) as chunks`
  return row as RemovedRows
}
