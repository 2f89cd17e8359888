import { isNoBlob, sessionPrefix } from '../blobs/blobs.ts'
import { type ChunkContext, open, packTab, SealBroken } from '../blobs/sealing.ts'
import { inLanes } from '../lanes.ts'
import { partsOf } from '../parts.ts'
import { readBrowserKey } from './browser-keys.ts'
import { intendChunk } from './ingest-store.ts'
import {
  confirmPack,
  findRestingSessions,
  findUnpackedChunks,
  nextPackNumber,
  noteAsPacked,
  type PackedChunk,
  type RestingSession,
  type UnpackedChunk,
} from './pack-store.ts'
import { type Recordings, storeBlob } from './upload.ts'

/** In memory three times: read, joined and sealed. */
const packBytesMaximum = 8 * 1_048_576

/** Fewer chunks are not packed. */
const chunksMinimum = 2

const sessionsAPart = 100
const readsAtOnce = 8

/**
 * Packs the chunks of each finished session into one blob, which saves hundreds of files, rows and
 * requests per session. Any number of processes may run it. Returns the number of packs; throws the
 * first fault after all other sessions were tried.
 */
export async function packSessions(recordings: Recordings): Promise<number> {
  let packs = 0
  let fault: unknown
  const parts = partsOf<RestingSession>(sessionsAPart, (after) =>
    findRestingSessions(recordings.db.sql, after, sessionsAPart),
  )
  for await (const sessions of parts) {
    for (const session of sessions) {
      try {
        packs += await packSession(recordings, session)
      } catch (error) {
        fault ??= error
      }
    }
  }
  if (fault !== undefined) throw fault
  return packs
}

/** Returns the number of packs. */
export async function packSession(
  recordings: Recordings,
  session: RestingSession,
): Promise<number> {
  for (let packs = 0; ; packs++) {
    const outcome = await packSome(recordings, session)
    if (outcome === 'stored') continue
    // Another process is packing it.
    if (outcome !== 'in_flight') await noteAsPacked(recordings.db.sql, session)
    return packs
  }
}

/**
 * The same three steps as an upload: the row of the pack comes before its blob, and one commit confirms
 * it and ends the rows that it replaces.
 */
async function packSome(recordings: Recordings, session: RestingSession) {
  const { db } = recordings
  const chunks = await findUnpackedChunks(db.sql, session, packBytesMaximum)
  if (chunks.length < chunksMinimum) return 'nothing'
  const read = await readChunks(recordings, session, chunks)
  if (read.length < chunks.length && (await adoptPack(recordings, session, chunks))) return 'stored'
  if (read.length < chunksMinimum) return 'nothing'
  const { projectId, browserId, id: sessionId } = session
  const number = await nextPackNumber(db.sql, session)
  const place = { projectId, browserId, sessionId, tab: packTab, number }
  let start = 0
  const packed = read.map(({ chunk, gzip }): PackedChunk => {
    const { tab, number, storedAt } = chunk
    const one = { tab, number, storedAt, start, length: gzip.length }
    start += gzip.length
    return one
  })
  const replaced = read.map(({ chunk }) => chunk)
  // Returns `stored` also if another process created the pack of this number meanwhile.
  return storeBlob(recordings, place, joined(read, packed), {
    intend: (blobKey) => intendChunk(db.sql, place, blobKey),
    confirm: (stored) => confirmPack(db, place, stored, packed, replaced),
  })
}

/** The format of a pack: the chunks, then their index as JSON, then its length in four bytes. */
function joined(read: { gzip: Uint8Array }[], packed: PackedChunk[]): Buffer {
  const index = Buffer.from(JSON.stringify(packed))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(index.length)
  return Buffer.concat([...read.map(({ gzip }) => gzip), index, length])
}

/**
 * After the restore of a backup, the blobs of chunks may be missing because they were packed since the
 * backup. Finds their pack, which has no row, and confirms it. Returns whether there is one.
 */
async function adoptPack(
  { db, blobs, browserKeys }: Recordings,
  { projectId, browserId, id: sessionId }: RestingSession,
  chunks: UnpackedChunk[],
): Promise<boolean> {
  for await (const blobKey of blobs.list(sessionPrefix(projectId, browserId, sessionId))) {
    const [, number] = /\/-(\d+)-[0-9a-f]{24}$/.exec(blobKey) ?? []
    if (number === undefined) continue
    const place = { projectId, browserId, sessionId, tab: packTab, number: Number(number) }
    const dataKey = await readBrowserKey(browserKeys, projectId, browserId)
    if (dataKey === undefined) return false
    const sealed = await blobs.get(blobKey)
    const bytes = openedIfWhole(dataKey, place, sealed)
    dataKey.fill(0)
    if (bytes === undefined) continue
    const index = bytes.subarray(-4 - bytes.readUInt32BE(bytes.length - 4), -4)
    const packed: PackedChunk[] = JSON.parse(index.toString())
    const names = new Set(packed.map(nameOf))
    const replaced = chunks.filter((chunk) => names.has(nameOf(chunk)))
    if (replaced.length === 0) continue
    const { outcome } = await intendChunk(db.sql, place, blobKey)
    if (outcome !== 'intended') continue
    const stored = { blobKey, bytes: sealed.length }
    if (await confirmPack(db, place, stored, packed, replaced)) return true
  }
  return false
}

function openedIfWhole(dataKey: Uint8Array, place: ChunkContext, sealed: Uint8Array) {
  try {
    return Buffer.from(open(dataKey, place, sealed))
  } catch (error) {
    if (error instanceof SealBroken) return undefined
    throw error
  }
}

const nameOf = ({ tab, number }: { tab: string; number: number }) => `${tab} ${number}`

/** Returns the chunks that can be read; the others are left as they are. */
async function readChunks(
  { blobs, browserKeys }: Recordings,
  { projectId, browserId, id: sessionId }: RestingSession,
  chunks: UnpackedChunk[],
): Promise<{ chunk: UnpackedChunk; gzip: Uint8Array }[]> {
  const dataKey = await readBrowserKey(browserKeys, projectId, browserId)
  if (dataKey === undefined) return []
  const read: { chunk: UnpackedChunk; gzip: Uint8Array }[] = []
  await inLanes(chunks.entries(), readsAtOnce, async ([at, chunk]) => {
    try {
      const sealed = await blobs.get(chunk.blobKey)
      read[at] = { chunk, gzip: open(dataKey, { projectId, sessionId, ...chunk }, sealed) }
    } catch (error) {
      if (!(isNoBlob(error) || error instanceof SealBroken)) throw error
    }
  }).finally(() => dataKey.fill(0))
  return read.filter((one) => one !== undefined)
}
