import type { Log } from '../log.ts'
import { compareBlobs } from '../recordings/blob-comparison.ts'
import { collectUnusedKeys, rewrapBrowserKeys } from '../recordings/browser-keys.ts'
import { packSessions } from '../recordings/pack.ts'
import { deleteOldUsage } from '../recordings/quotas.ts'
import { collectDeadChunks, type Recordings } from '../recordings/upload.ts'
import { repeat } from '../repeat.ts'
import { expireRecordings } from './retention.ts'

const deadChunksSeconds = 60
const keysSeconds = 60
const packSeconds = 60
const expiredSeconds = 600
const blobsSeconds = 3_600

/**
 * Starts the periodic work on recordings: deletes unconfirmed uploads, packs finished sessions, deletes
 * keys without a browser, rewraps keys under an older master key, deletes blobs without a chunk and
 * what is past its retention. Any number of processes may run it. Returns a function that stops it.
 */
export function startUpkeep(recordings: Recordings, log: Log): () => Promise<void> {
  const { db, blobs, browserKeys } = recordings
  const stops = [
    repeat('upkeep.chunks', deadChunksSeconds, () => collectDeadChunks(db.sql, blobs), log),
    repeat('upkeep.packs', packSeconds, () => packSessions(recordings), log),
    repeat('upkeep.keys', keysSeconds, () => collectUnusedKeys(db.sql, browserKeys.sql), log),
    repeat('upkeep.rewrap', keysSeconds, () => rewrapBrowserKeys(browserKeys), log),
    repeat('upkeep.usage', expiredSeconds, () => deleteOldUsage(db.sql), log),
    repeat('upkeep.blobs', blobsSeconds, () => compareBlobs(recordings, log), log),
    repeat('upkeep.retention', expiredSeconds, () => expireRecordings(recordings), log),
  ]
  return async () => {
    await Promise.all(stops.map((stop) => stop()))
  }
}
