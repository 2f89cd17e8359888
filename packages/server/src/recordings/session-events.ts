import type { Session } from '@lethe/contract/session.ts'
import { isNoBlob } from '../blobs/blobs.ts'
import { open, packTab, SealBroken } from '../blobs/sealing.ts'
import type { Log } from '../log.ts'
import { partsOf } from '../parts.ts'
import { readBrowserKey } from './browser-keys.ts'
import { ChunkDamaged, expandChunk } from './chunk-body.ts'
import { type ChunkPosition, listStoredChunks, type StoredChunk } from './session-store.ts'
import type { Recordings } from './upload.ts'

const chunksAPage = 200

const newline = 0x0a

/** The data key of the session's browser was destroyed, so the session cannot be read any more. */
export class SessionGone extends Error {
  override readonly name = 'SessionGone'
}

/**
 * Yields the events of a session as ndjson, chunk by chunk, after the chunk `after`. Holds one stored
 * chunk or pack in memory. Replaces chunks that are missing, damaged or cannot be decrypted by an event
 * `lethe.gap`. Throws `SessionGone`, and `BlobFault` if the store fails.
 */
export async function* sessionEvents(
  recordings: Recordings,
  log: Log,
  projectId: number,
  session: Session,
  tab: string | null,
  after?: ChunkPosition,
): AsyncGenerator<Buffer> {
  const read = chunkReader(recordings, projectId, session)
  let last = after
  let gaps = createGaps()
  let isCut = false
  const { sql } = recordings.db
  const pages = partsOf<StoredChunk>(chunksAPage, (before) =>
    listStoredChunks(sql, projectId, session.id, tab, before ?? after, chunksAPage),
  )
  for await (const chunks of pages) {
    for (const chunk of chunks) {
      const isSameTab = chunk.tab === last?.tab
      if (!isSameTab) {
        yield* gaps.end(session)
        gaps = createGaps()
      }
      const expected = isSameTab ? (last as ChunkPosition).number + 1 : 0
      if (expected === 0) gaps.begin(chunk.number)
      else gaps.miss(chunk.number - expected)
      last = chunk
      try {
        for await (const piece of chunkEvents(await read(chunk))) {
          yield* gaps.before(piece)
          yield piece
          isCut = piece.at(-1) !== newline
        }
      } catch (error) {
        if (!isHole(error)) throw error
        // A chunk that a page sent damaged is not our fault.
        if (!(error instanceof ChunkDamaged)) {
          log.fault('session.chunk_lost', error, { projectId })
        }
        if (isCut) yield Buffer.of(newline)
        isCut = false
        gaps.miss(1)
      }
    }
  }
  yield* gaps.end(session)
}

const isHole = (error: unknown) =>
  isNoBlob(error) || error instanceof SealBroken || error instanceof ChunkDamaged

/** Adds events to the stream of a tab where chunks are missing, with the times of its events. */
function createGaps() {
  let missing = 0
  let isBegin = false
  let lastAt: number | undefined

  function* tell(at: number): Generator<Buffer> {
    if (missing === 0) return
    const data = { tag: 'lethe.gap', payload: { chunks: missing } }
    missing = 0
    yield Buffer.from(`${JSON.stringify({ type: customEvent, timestamp: at, data })}\n`)
  }

  return {
    miss(chunks: number): void {
      missing += chunks
    },
    /** A tab's numbers continue across sessions: a later session begins with a page, not with 0. */
    begin(number: number): void {
      missing = number
      isBegin = true
    },
    *before(piece: Buffer): Generator<Buffer> {
      if (piece.length <= 1) return
      if (isBegin && piece.toString('latin1', 0, pageBegins.length) === pageBegins) missing = 0
      isBegin = false
      yield* tell(lastAt ?? timeAt(piece, piece.indexOf(timeMark)) ?? 0)
      lastAt = timeAt(piece, piece.lastIndexOf(timeMark)) ?? lastAt
    },
    end: (session: Session) => tell(lastAt ?? Date.parse(session.startedAt)),
  }
}

/** The number of rrweb's event type. */
const customEvent = 5

/** The event that precedes the first snapshot of a page. */
const pageBegins = '{"type":4,'

/** Cannot occur inside a string, where the quotes would be escaped. */
const timeMark = '"timestamp":'
const timeLengthMaximum = 20

function timeAt(piece: Buffer, place: number): number | undefined {
  if (place < 0) return undefined
  const from = place + timeMark.length
  const time = Number.parseFloat(piece.toString('latin1', from, from + timeLengthMaximum))
  return Number.isFinite(time) ? time : undefined
}

/**
 * Reads compressed chunks. Reads the key for each one, so that a running stream ends when the key is
 * destroyed. Keeps the last pack in memory.
 */
function chunkReader({ blobs, browserKeys }: Recordings, projectId: number, session: Session) {
  let pack: { blobKey: string; bytes: Uint8Array } | undefined
  return async ({ tab, number, blobKey, ...one }: StoredChunk): Promise<Uint8Array> => {
    const dataKey = await readBrowserKey(browserKeys, projectId, session.browserId)
    if (dataKey === undefined) throw new SessionGone()
    const place = { projectId, sessionId: session.id }
    try {
      if (one.pack === null) {
        return open(dataKey, { ...place, tab, number }, await blobs.get(blobKey))
      }
      if (pack?.blobKey !== blobKey) {
        pack = undefined
        const sealed = await blobs.get(blobKey)
        const bytes = open(dataKey, { ...place, tab: packTab, number: one.pack }, sealed)
        pack = { blobKey, bytes }
      }
      return pack.bytes.subarray(one.start, one.start + one.bytes)
    } finally {
      dataKey.fill(0)
    }
  }
}

async function* chunkEvents(gzip: Uint8Array): AsyncGenerator<Buffer> {
  let lastByte = newline
  for await (const piece of expandChunk(gzip)) {
    lastByte = piece.at(-1) ?? lastByte
    yield piece
  }
  if (lastByte !== newline) yield Buffer.of(newline)
}
