import type { Log } from '../log.ts'
import { repeat } from '../repeat.ts'
import { collectUnusedKeys, rewrapBrowserKeys } from './browser-keys.ts'
import { expireRecordings } from './retention.ts'
import { collectDeadChunks, type Recordings } from './upload.ts'

const deadChunksSeconds = 15
const keysSeconds = 60
const expiredSeconds = 600

/**
 * What has to be done about recordings again and again: uploads that were never confirmed, keys
 * without a browser or under an older master key, and what is past its retention. Any number of
 * processes may do it. The answered function ends it.
 */
export function startUpkeep(recordings: Recordings, log: Log): () => Promise<void> {
  const { db, blobs, browserKeys } = recordings
  const stops = [
    repeat('upkeep.chunks', deadChunksSeconds, () => collectDeadChunks(db.sql, blobs), log),
    repeat('upkeep.keys', keysSeconds, () => collectUnusedKeys(db.sql, browserKeys.sql), log),
    repeat('upkeep.rewrap', keysSeconds, () => rewrapBrowserKeys(browserKeys), log),
    repeat('upkeep.retention', expiredSeconds, () => expireRecordings(recordings), log),
  ]
  return async () => {
    await Promise.all(stops.map((stop) => stop()))
  }
}
