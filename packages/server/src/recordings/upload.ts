import { randomBytes } from 'node:crypto'
import { BlobFault, type Blobs, sessionPrefix } from '../blobs/blobs.ts'
import { seal } from '../blobs/sealing.ts'
import type { Db, Sql } from '../sql.ts'
import { type BrowserKeys, readBrowserKey } from './browser-keys.ts'
import {
  type ChunkPlace,
  confirmChunk,
  type DeadChunk,
  deleteDeadChunks,
  intendChunk,
  killIntent,
  killOldIntents,
} from './ingest-store.ts'

export interface Recordings {
  db: Db
  blobs: Blobs
  browserKeys: BrowserKeys
}

export interface UploadOptions {
  /** Half of an intent's life: what is put by then can be confirmed in peace. */
  putSeconds?: number
}

const putSecondsDefault = 30

/** Dead chunks collected at one go. */
const deadChunksAPart = 200

export type UploadOutcome = 'stored' | 'in_flight' | 'refused'

/**
 * Stores a chunk: intent, put, confirm. The database knows of the blob before it exists, and what
 * is not confirmed is deleted again, here or by `collectDeadChunks`. `refused`: the browser is
 * retired, or the session ended. Throws `BlobFault` where the store fails.
 */
export async function storeChunk(
  recordings: Recordings,
  place: ChunkPlace,
  chunk: { gzip: Buffer; pages: number },
  { putSeconds = putSecondsDefault }: UploadOptions = {},
): Promise<UploadOutcome> {
  const { db, blobs } = recordings
  const blobKey = newBlobKey(place)
  const intended = await intend(recordings, place, blobKey)
  if (intended !== 'intended') return intended

  const bytes = await sealAndPut(recordings, place, blobKey, chunk.gzip, putSeconds)
  if (bytes === undefined) return 'refused'

  // Where the answer to this is lost the chunk may be confirmed: then the blob stays, and the
  // client's repetition finds out.
  if (await confirmChunk(db.sql, place, { blobKey, bytes, pages: chunk.pages })) return 'stored'
  await blobs.delete([blobKey])
  return 'refused'
}

/** Under the browser's prefix, so that it can be listed; random, so that no two uploads share it. */
function newBlobKey({ projectId, browserId, sessionId, tab, number }: ChunkPlace): string {
  const prefix = sessionPrefix(projectId, browserId, sessionId)
  return `${prefix}${tab}-${number}-${randomBytes(12).toString('hex')}`
}

async function intend(
  { db, blobs }: Recordings,
  place: ChunkPlace,
  blobKey: string,
): Promise<'intended' | UploadOutcome> {
  const intent = await intendChunk(db.sql, place, blobKey)
  if (intent.outcome !== 'dead') return intent.outcome
  // An earlier upload failed. What is left of it goes first, and its row last.
  await blobs.delete([intent.deadBlobKey])
  await deleteDeadChunks(db.sql, place.projectId, [intent.deadBlobKey])
  const second = await intendChunk(db.sql, place, blobKey)
  return second.outcome === 'dead' ? 'in_flight' : second.outcome
}

/** Answers the size of the blob; undefined where there is no place for it any more. */
async function sealAndPut(
  recordings: Recordings,
  place: ChunkPlace,
  blobKey: string,
  gzip: Buffer,
  putSeconds: number,
): Promise<number | undefined> {
  const { db, blobs, browserKeys } = recordings
  try {
    const dataKey = await readBrowserKey(browserKeys, place.projectId, place.browserId)
    if (dataKey === undefined) {
      await giveUp(recordings, place.projectId, blobKey)
      return undefined
    }
    const sealed = seal(dataKey, place, gzip)
    dataKey.fill(0)
    await withinSeconds(putSeconds, (signal) => blobs.put(blobKey, sealed, signal))
    return sealed.length
  } catch (error) {
    const code = error instanceof BlobFault ? error.code : undefined
    if (code === 'aborted') {
      // It may still be at it: the blob is only taken away when the intent's time is over.
      await killIntent(db.sql, place.projectId, blobKey)
    } else {
      await giveUp(recordings, place.projectId, blobKey)
    }
    if (code === 'prefix_gone') return undefined
    throw error
  }
}

/** Takes back an upload that failed, as far as that works now; the rest is collected later. */
async function giveUp({ db, blobs }: Recordings, projectId: number, blobKey: string) {
  await killIntent(db.sql, projectId, blobKey)
  try {
    await blobs.delete([blobKey])
    await deleteDeadChunks(db.sql, projectId, [blobKey])
  } catch (error) {
    // The store that failed to put fails to delete as well, and the row is dead already.
    if (!(error instanceof BlobFault)) throw error
  }
}

/** Cuts off work that takes longer, also where it does not listen to the signal at once. */
async function withinSeconds<T>(
  seconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    controller.abort()
    reject(new BlobFault('aborted', 'A put took too long and was cut off.'))
  }, seconds * 1_000)
  try {
    return await Promise.race([work(controller.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Takes away what uploads left that were never confirmed: blob first, then row. A fault of the
 * blob store is thrown when all others were tried. Answers how many rows went.
 */
export async function collectDeadChunks(sql: Sql, blobs: Blobs): Promise<number> {
  let collected = 0
  let last: DeadChunk | undefined
  let fault: unknown
  for (;;) {
    const dead = await killOldIntents(sql, last, deadChunksAPart)
    for (const projectId of new Set(dead.map((chunk) => chunk.projectId))) {
      const keys = dead.filter((one) => one.projectId === projectId).map((one) => one.blobKey)
      try {
        await blobs.delete(keys)
        await deleteDeadChunks(sql, projectId, keys)
        collected += keys.length
      } catch (error) {
        fault ??= error
      }
    }
    if (dead.length < deadChunksAPart) break
    last = dead.reduce((a, b) => (placeInOrder(a) > placeInOrder(b) ? a : b))
  }
  if (fault !== undefined) throw fault
  return collected
}

const placeInOrder = (chunk: DeadChunk) => `${chunk.intentUntil} ${chunk.blobKey}`
