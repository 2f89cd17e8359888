import { randomBytes } from 'node:crypto'
import { BlobFault, type Blobs, sessionPrefix } from '../blobs/blobs.ts'
import { seal } from '../blobs/sealing.ts'
import { release } from '../release.ts'
import type { Db, Sql } from '../sql.ts'
import { type BrowserKeys, readBrowserKey } from './browser-keys.ts'
import { type ChunkWriter, chunkWriter } from './chunk-writer.ts'
import {
  type ChunkPlace,
  type DeadChunk,
  deleteDeadChunks,
  type Intent,
  killIntent,
  killOldIntents,
  type ToldOfChunk,
} from './ingest-store.ts'

export interface Recordings {
  db: Db
  blobs: Blobs
  browserKeys: BrowserKeys
}

export interface UploadOptions {
  /** Half the lifetime of an intent, so that there is time to confirm. */
  putSeconds?: number
}

const putSecondsDefault = 30

/** Dead chunks deleted per batch. */
const deadChunksAPart = 200

export type UploadOutcome = 'stored' | 'in_flight' | 'refused'

/** Stores a chunk, as `storeBlob` does. */
export function storeChunk(
  recordings: Recordings,
  place: ChunkPlace,
  { gzip, ...told }: { gzip: Buffer } & ToldOfChunk,
  options: UploadOptions & { writer?: ChunkWriter } = {},
): Promise<UploadOutcome> {
  const { intend, confirm } = options.writer ?? chunkWriter(recordings.db)
  const rows: RowsOfBlob = {
    intend: (blobKey) => intend({ ...place, blobKey }),
    confirm: (stored) => confirm({ ...place, ...stored, ...told }),
  }
  return storeBlob(recordings, place, gzip, rows, options)
}

export interface StoredBlob {
  blobKey: string
  /** The size of the sealed blob. */
  bytes: number
}

/** Writes the rows of a blob. */
export interface RowsOfBlob {
  intend(blobKey: string): Promise<Intent>
  /** Returns whether the intent still existed. */
  confirm(stored: StoredBlob): Promise<boolean>
}

/**
 * Stores a blob in three steps: intent, put, confirm. The database knows of the blob before it exists;
 * without a confirmation it is deleted, here or by `collectDeadChunks`. `refused`: the browser is
 * retired, or the session has ended. Throws `BlobFault` if the store fails.
 */
export async function storeBlob(
  recordings: Recordings,
  place: ChunkPlace,
  plain: Uint8Array,
  rows: RowsOfBlob,
  { putSeconds = putSecondsDefault }: UploadOptions = {},
): Promise<UploadOutcome> {
  const blobKey = newBlobKey(place)
  const intended = await intend(recordings, place.projectId, () => rows.intend(blobKey))
  if (intended !== 'intended') return intended

  const bytes = await sealAndPut(recordings, place, blobKey, plain, putSeconds)
  if (bytes === undefined) return 'refused'

  // If the result is lost, the blob may be confirmed: then it stays, and a repeated upload succeeds.
  if (await rows.confirm({ blobKey, bytes })) return 'stored'
  await recordings.blobs.delete([blobKey])
  return 'refused'
}

/** Under the browser's prefix, so that it can be listed; random, so that no two uploads share it. */
function newBlobKey({ projectId, browserId, sessionId, tab, number }: ChunkPlace): string {
  const prefix = sessionPrefix(projectId, browserId, sessionId)
  return `${prefix}${tab}-${number}-${randomBytes(12).toString('hex')}`
}

async function intend(
  { db, blobs }: Recordings,
  projectId: number,
  ask: () => Promise<Intent>,
): Promise<'intended' | UploadOutcome> {
  const intent = await ask()
  if (intent.outcome !== 'dead') return intent.outcome
  // An earlier upload failed: deletes its blob, then its row.
  await blobs.delete([intent.deadBlobKey])
  await deleteDeadChunks(db.sql, projectId, [intent.deadBlobKey])
  const second = await ask()
  return second.outcome === 'dead' ? 'in_flight' : second.outcome
}

/** Returns the size of the blob; undefined if its browser was erased meanwhile. */
async function sealAndPut(
  recordings: Recordings,
  place: ChunkPlace,
  blobKey: string,
  plain: Uint8Array,
  putSeconds: number,
): Promise<number | undefined> {
  const { db, blobs, browserKeys } = recordings
  try {
    const dataKey = await readBrowserKey(browserKeys, place.projectId, place.browserId)
    if (dataKey === undefined) {
      await giveUp(recordings, place.projectId, blobKey)
      return undefined
    }
    const sealed = seal(dataKey, place, plain)
    dataKey.fill(0)
    const { length } = sealed
    await withinSeconds(putSeconds, (signal) => blobs.put(blobKey, sealed, signal))
    // Not after a failure: the put may still be running.
    release(sealed)
    return length
  } catch (error) {
    const code = error instanceof BlobFault ? error.code : undefined
    if (code === 'aborted') {
      // The put may still be running, so the blob is deleted only after the intent has expired.
      await killIntent(db.sql, place.projectId, blobKey)
    } else {
      await giveUp(recordings, place.projectId, blobKey)
    }
    if (code === 'prefix_gone') return undefined
    throw error
  }
}

/** Deletes a failed upload, as far as possible; `collectDeadChunks` deletes the rest. */
async function giveUp({ db, blobs }: Recordings, projectId: number, blobKey: string) {
  await killIntent(db.sql, projectId, blobKey)
  try {
    await blobs.delete([blobKey])
    await deleteDeadChunks(db.sql, projectId, [blobKey])
  } catch (error) {
    // The store probably fails here too, and the row is already dead.
    if (!(error instanceof BlobFault)) throw error
  }
}

/** Aborts work that takes longer, even if it ignores the signal. */
async function withinSeconds<T>(
  seconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    controller.abort()
    reject(new BlobFault('aborted', 'A put took too long and was aborted.'))
  }, seconds * 1_000)
  try {
    return await Promise.race([work(controller.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Deletes unconfirmed uploads: first the blob, then the row. Returns the number of rows; throws the
 * first fault after all others were tried.
 */
export async function collectDeadChunks(sql: Sql, blobs: Blobs): Promise<number> {
  let collected = 0
  let last: DeadChunk | undefined
  let fault: unknown
  for (;;) {
    const { dead, last: next } = await killOldIntents(sql, last, deadChunksAPart)
    for (const [projectId, its] of Map.groupBy(dead, (chunk) => chunk.projectId)) {
      const keys = its.map(({ blobKey }) => blobKey)
      try {
        await blobs.delete(keys)
        await deleteDeadChunks(sql, projectId, keys)
        collected += keys.length
      } catch (error) {
        fault ??= error
      }
    }
    if (!next) break
    last = next
  }
  if (fault !== undefined) throw fault
  return collected
}
