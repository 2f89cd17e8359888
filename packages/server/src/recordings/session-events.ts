import { createGunzip } from 'node:zlib'
import type { Session } from '@lethe/contract/session.ts'
import { open } from '../blobs/sealing.ts'
import { readBrowserKey } from './browser-keys.ts'
import { listStoredChunks, type StoredChunk } from './session-store.ts'
import type { Recordings } from './upload.ts'

const chunksAPage = 200

/** Expanded at one go: fewer and larger pieces cost less to hand on. */
const pieceBytes = 131_072

const newline = 0x0a

/** The data key of the session's browser was destroyed: nothing of it can be read any more. */
export class SessionGone extends Error {
  override readonly name = 'SessionGone'
}

/**
 * The events of a session as ndjson, chunk by chunk from the first one after `after` on: in memory
 * is one chunk as stored and a piece of it expanded. Throws `SessionGone`, and where a chunk is not there or does not open `BlobFault`
 * or `SealBroken`: what came before is right, and nothing comes after.
 */
export async function* sessionEvents(
  recordings: Recordings,
  projectId: number,
  session: Session,
  tab: string | null,
  after?: StoredChunk,
): AsyncGenerator<Buffer> {
  let last = after
  for (;;) {
    const chunks = await listStoredChunks(
      recordings.db.sql,
      projectId,
      session.id,
      tab,
      last,
      chunksAPage,
    )
    for (const chunk of chunks) yield* chunkEvents(recordings, projectId, session, chunk)
    if (chunks.length < chunksAPage) return
    last = chunks.at(-1)
  }
}

/** The key is read for each chunk: once it is destroyed, a stream in the making ends as well. */
async function* chunkEvents(
  { blobs, browserKeys }: Recordings,
  projectId: number,
  session: Session,
  { tab, number, blobKey }: StoredChunk,
): AsyncGenerator<Buffer> {
  const dataKey = await readBrowserKey(browserKeys, projectId, session.browserId)
  if (dataKey === undefined) throw new SessionGone()
  const sealed = await blobs.get(blobKey)
  const gzip = open(dataKey, { projectId, sessionId: session.id, tab, number }, sealed)
  dataKey.fill(0)
  const gunzip = createGunzip({ chunkSize: pieceBytes })
  gunzip.end(gzip)
  let lastByte = newline
  for await (const part of gunzip as AsyncIterable<Buffer>) {
    lastByte = part.at(-1) ?? lastByte
    yield part
  }
  if (lastByte !== newline) yield Buffer.of(newline)
}
