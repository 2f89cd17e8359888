import { type Blobs, browserPrefix, isKey } from '../blobs/blobs.ts'
import type { Log } from '../log.ts'
import { inParts, partsOf } from '../parts.ts'
import type { Sql } from '../sql.ts'
import type { Recordings } from './upload.ts'

const keysAPart = 500
const chunksAPage = 5_000
const browsersAPage = 200

/** Up to this many strays are deleted even if they outnumber the known blobs. */
const straysAllowed = 1_000

/**
 * Compares the blobs of each project with its chunks, once a day and by one process at a time. Deletes
 * blobs that have had no chunk for a day (a chunk's row always precedes its blob), and counts chunks
 * without a blob. Uses constant memory.
 */
export async function compareBlobs({ db, blobs }: Recordings, log: Log): Promise<void> {
  const projects = await db.sql<{ id: number }>`select id from projects order by id`
  for (const { id } of projects) {
    const begunAt = await claim(db.sql, id)
    if (begunAt !== undefined) await compareProject(db.sql, blobs, log, { id, begunAt })
  }
}

async function claim(sql: Sql, projectId: number): Promise<string | undefined> {
  const [row] = await sql<{ begunAt: string }>`
    insert into blob_comparisons as c (project_id, begun_at) values (${projectId}, app_now())
    on conflict (project_id) do update set begun_at = app_now()
    where c.begun_at < app_now() - interval '1 day'
    returning begun_at as "begunAt"`
  return row?.begunAt
}

async function compareProject(
  sql: Sql,
  blobs: Blobs,
  log: Log,
  { id, begunAt }: { id: number; begunAt: string },
): Promise<void> {
  let found = 0
  let strays = 0
  for await (const keys of inParts(blobs.list(`blobs/${id}/`), keysAPart)) {
    // Objects with other kinds of names are not ours.
    const part = await notePart(sql, id, keys.filter(isKey), begunAt)
    found += part.found
    strays += part.strays
  }
  const lost = Math.max(0, (await countChunks(sql, id, begunAt)) - found)
  await sql`update blob_comparisons set lost_chunks = ${lost} where project_id = ${id}`
  if (lost > 0) log.event('warn', 'blobs.lost', { projectId: id, count: lost })
  // This may be the blob store of another installation.
  if (strays > straysAllowed && strays > found) {
    log.event('error', 'blobs.mostly_strays', { projectId: id, count: strays })
    return
  }
  const deleted = await deleteStrays(sql, blobs, id)
  if (deleted > 0) log.event('info', 'blobs.strays_deleted', { projectId: id, count: deleted })
}

/** Records which keys are strays. `found` counts chunks that were stored before `begunAt`. */
async function notePart(
  sql: Sql,
  projectId: number,
  keys: string[],
  begunAt: string,
): Promise<{ found: number; strays: number }> {
  const [counts] = await sql<{ found: number; strays: number }>`
    with listed as (
      select key, c.blob_key is null as is_stray,
        c.state = 'stored' and c.stored_at < ${begunAt}::timestamptz as is_found
      from unnest(${keys}::text[]) as key
      left join chunks c on c.project_id = ${projectId} and c.blob_key = key
    ), noted as (
      insert into stray_blobs (project_id, blob_key)
      select ${projectId}, key from listed where is_stray
      on conflict (project_id, blob_key) do nothing
    )
    select count(*) filter (where is_found)::integer as found,
      count(*) filter (where is_stray)::integer as strays
    from listed`
  return counts as NonNullable<typeof counts>
}

/** Counts the chunks of a project that were stored before `begunAt`, page by page. */
async function countChunks(sql: Sql, projectId: number, begunAt: string): Promise<number> {
  let count = 0
  let last = ''
  for (;;) {
    const [page] = await sql<{ read: number; stored: number; last: string | null }>`
      select count(*)::integer as read, max(blob_key) as last,
        count(*) filter (
          where state = 'stored' and stored_at < ${begunAt}::timestamptz
        )::integer as stored
      from (
        select blob_key, state, stored_at from chunks
        where project_id = ${projectId} and blob_key > ${last}
        order by blob_key
        limit ${chunksAPage}
      ) as page`
    count += page?.stored ?? 0
    if ((page?.read ?? 0) < chunksAPage) return count
    last = page?.last as string
  }
}

async function deleteStrays(sql: Sql, blobs: Blobs, projectId: number): Promise<number> {
  let deleted = 0
  for (;;) {
    const due = await sql<{ key: string; isKnown: boolean }>`
      select s.blob_key as key, exists (
          select from chunks c where c.project_id = ${projectId} and c.blob_key = s.blob_key
        ) as "isKnown"
      from stray_blobs s
      where s.project_id = ${projectId} and s.seen_at < app_now() - interval '1 day'
      order by s.blob_key
      limit ${keysAPart}`
    if (due.length === 0) return deleted
    const strays = due.filter(({ isKnown }) => !isKnown).map(({ key }) => key)
    if (strays.length > 0) await blobs.delete(strays)
    await sql`
      delete from stray_blobs
      where project_id = ${projectId} and blob_key = any(${due.map(({ key }) => key)}::text[])`
    deleted += strays.length
  }
}

export interface LostChunk {
  sessionId: string
  tab: string
  number: number
}

/** Yields the stored chunks of a project whose blob is missing, browser by browser. */
export async function* findLostChunks(
  { db: { sql }, blobs }: Pick<Recordings, 'db' | 'blobs'>,
  projectId: number,
): AsyncGenerator<LostChunk> {
  const pages = partsOf<{ id: string }>(
    browsersAPage,
    (after) => sql`
      select id from browsers
      where project_id = ${projectId}
        and id > ${after?.id ?? '00000000-0000-0000-0000-000000000000'}::uuid
      order by id
      limit ${browsersAPage}`,
  )
  for await (const browsers of pages) {
    for (const { id } of browsers) yield* lostChunksOf(sql, blobs, projectId, id)
  }
}

async function* lostChunksOf(sql: Sql, blobs: Blobs, projectId: number, browserId: string) {
  const readChunks = () => sql<LostChunk & { key: string }>`
    select c.session_id as "sessionId", c.tab, c.number, c.blob_key as key
    from sessions s
    join chunks c on c.project_id = s.project_id and c.session_id = s.id
    where s.project_id = ${projectId} and s.browser_id = ${browserId} and c.state = 'stored'
    order by s.started_at, c.tab, c.number`
  const chunks = await readChunks()
  if (chunks.length === 0) return
  const there = new Set<string>()
  for await (const key of blobs.list(browserPrefix(projectId, browserId))) there.add(key)
  if (chunks.every(({ key }) => there.has(key))) return
  // Chunks that were deleted meanwhile are not lost.
  const known = new Set((await readChunks()).map(({ key }) => key))
  for (const { key, ...chunk } of chunks) if (!there.has(key) && known.has(key)) yield chunk
}
