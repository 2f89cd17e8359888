import { type ChunkContext, packTab } from '../blobs/sealing.ts'
import type { Db, Sql } from '../sql.ts'

/** A session can continue for 30 minutes after its last chunk, and would then need another pack. */
const restMinutes = 35

/**
 * How long the blobs of packed chunks are kept: for readers in progress, and for a backup that copies
 * the blobs after the database. After the restore of an older database the packs are adopted.
 */
const replacedHours = 24

/** Packed by one statement. */
const chunksMaximum = 1_000

export interface RestingSession {
  projectId: number
  browserId: string
  id: string
  startedAt: string
  lastChunkAt: string | null
}

/** Sessions that may have chunks to pack and got no chunk for a while, oldest first. */
export function findRestingSessions(
  sql: Sql,
  after: RestingSession | undefined,
  limit: number,
): Promise<RestingSession[]> {
  return sql<RestingSession>`
    select project_id as "projectId", browser_id as "browserId", id, started_at as "startedAt",
      last_chunk_at as "lastChunkAt"
    from sessions
    where is_unpacked and not closed
      and coalesce(last_chunk_at, started_at) < app_now() - ${restMinutes} * interval '1 minute'
      and started_at < app_now() - ${restMinutes} * interval '1 minute'
      and (started_at, id) > (
        coalesce(${after?.startedAt ?? null}::timestamptz, '-infinity'),
        coalesce(${after?.id ?? null}::uuid, '00000000-0000-0000-0000-000000000000'))
    order by started_at, id
    limit ${limit}`
}

export interface UnpackedChunk {
  tab: string
  number: number
  blobKey: string
  bytes: number
  /** In milliseconds. */
  storedAt: number
}

export interface PackedChunk extends Pick<UnpackedChunk, 'tab' | 'number' | 'storedAt'> {
  /** Where its bytes are in the pack. */
  start: number
  length: number
}

/** The first chunks of a session, in the order of recording, up to `bytesMaximum` together. */
export async function findUnpackedChunks(
  sql: Sql,
  { projectId, id }: RestingSession,
  bytesMaximum: number,
): Promise<UnpackedChunk[]> {
  const chunks = await sql<UnpackedChunk>`
    select tab, number, blob_key as "blobKey", bytes,
      (extract(epoch from stored_at) * 1000)::float8 as "storedAt"
    from chunks
    where project_id = ${projectId} and session_id = ${id} and state = 'stored'
      and tab <> ${packTab}
    order by tab, number
    limit ${chunksMaximum}`
  let sum = 0
  return chunks.filter(({ bytes }) => {
    sum += bytes
    return sum <= bytesMaximum
  })
}

export async function nextPackNumber(sql: Sql, { projectId, id }: RestingSession): Promise<number> {
  const [row] = await sql<{ number: number }>`
    select coalesce(max(number), -1) + 1 as number
    from chunks
    where project_id = ${projectId} and session_id = ${id} and tab = ${packTab}
      and state = 'stored'`
  return row?.number ?? 0
}

/**
 * Confirms a pack: after the commit readers use it, and the chunks it replaces are dead. Returns false
 * if its intent has expired or one of the chunks is gone.
 */
export function confirmPack(
  db: Db,
  { projectId, sessionId, number }: ChunkContext,
  { blobKey, bytes }: { blobKey: string; bytes: number },
  packed: PackedChunk[],
  replaced: UnpackedChunk[],
): Promise<boolean> {
  const entries = packed.map((one) => [
    one.tab,
    one.number,
    number,
    one.start,
    one.length,
    one.storedAt,
  ])
  const keys = replaced.map((one) => one.blobKey)
  const saved = replaced.reduce((sum, one) => sum + one.bytes, -bytes)
  return db
    .begin(async (tx) => {
      // Sessions are locked before chunks, as in chunk_intend.
      const [confirmed] = await tx<{ replaced: number }>`
        with session as materialized (
          select id from sessions
          where project_id = ${projectId} and id = ${sessionId}
          for no key update -- fault: pack-locks-session
        ), confirmed as (
          update chunks c
          set state = 'stored', stored_at = app_now(), bytes = ${bytes}
          from session
          where c.project_id = ${projectId} and c.session_id = session.id
            and c.tab = ${packTab} and c.number = ${number}
            and c.blob_key = ${blobKey} -- fault: pack-blob
            and c.state = 'intent' and c.intent_until > app_now() -- fault: pack-intent
          returning c.session_id
        ), replaced as (
          update chunks c
          set state = 'dead', stored_at = null, bytes = null,
            intent_until = app_now() + ${replacedHours} * interval '1 hour'
          from confirmed
          where c.project_id = ${projectId} and c.session_id = confirmed.session_id
            and c.blob_key = any(${keys})
            and c.state = 'stored' -- fault: pack-replaces-stored
          returning c.number
        )
        update sessions s
        set packed = coalesce(s.packed, '[]') || ${JSON.stringify(entries)}::jsonb,
          bytes = s.bytes - ${saved}
        from confirmed
        where s.project_id = ${projectId} and s.id = confirmed.session_id
        returning (select count(*)::integer from replaced) as replaced`
      if (confirmed && confirmed.replaced !== replaced.length) throw new ChunksGone()
      return confirmed !== undefined
    })
    .catch((error) => {
      if (error instanceof ChunksGone) return false
      throw error
    })
}

/** Rolls back a pack whose chunks an erasure, the retention or another pack took meanwhile. */
class ChunksGone extends Error {}

/** The session is not read again until a chunk arrives. */
export async function noteAsPacked(sql: Sql, session: RestingSession): Promise<void> {
  await sql`
    update sessions set is_unpacked = false
    where project_id = ${session.projectId} and id = ${session.id}
      and last_chunk_at is not distinct from ${session.lastChunkAt}::timestamptz`
}
