import { randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { sessionPrefix } from '../src/blobs/blobs.ts'
import { openBucket } from '../src/blobs/s3.ts'
import { readFacts } from '../src/operations/facts.ts'
import { compareBlobs, findLostChunks, type LostChunk } from '../src/recordings/blob-comparison.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import {
  openClock,
  record,
  remains,
  requestErasure,
  runAll,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newBucket } from './s3-servers/bucket.ts'
import { onS3Server } from './s3-servers/on-server.ts'

const recordingsOf = ({ options: { db, blobs }, masterKeys }: TestErasure): Recordings => ({
  db,
  blobs,
  browserKeys: { sql: db.sql, short: db.short, masterKeys },
})

const isThere = (erasure: TestErasure, key: string) =>
  erasure.options.blobs.get(key).then(
    () => true,
    () => false,
  )

const daySeconds = 86_400

describe('the daily comparison of blobs and chunks', () => {
  test('deletes what no chunk knows of for a day, as a dead uploader leaves it, and nothing else', async ({
    erasure,
    project,
    address,
  }) => {
    const { blobs } = erasure.options
    const clock = await openClock(address)
    const kept = await record(erasure, project.id, 'bob')
    const erased = await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)
    // A put that comes after the erasure, at a browser that is gone; and one beside what is kept.
    const late = `${sessionPrefix(project.id, erased.browserIds[0]!, randomUUID())}t-0-late`
    const beside = `${kept.blobKeys[0]}-late`
    await blobs.open(late.slice(0, late.lastIndexOf('/') + 1))
    for (const key of [late, beside]) await blobs.put(key, randomBytes(10))
    // Somebody else's file: its name cannot be a blob's.
    await writeFile(join(erasure.folder, late.replace(/[^/]+$/, 'a b')), '')

    await compareBlobs(recordingsOf(erasure), erasure.options.log)
    expect(await Promise.all([late, beside].map((key) => isThere(erasure, key)))).toEqual([
      true,
      true,
    ])
    await clock.forward(daySeconds + 1)
    // Within the day of the last comparison nothing is compared again; then what is a day old goes.
    await compareBlobs(recordingsOf(erasure), erasure.options.log)
    expect(await Promise.all([late, beside].map((key) => isThere(erasure, key)))).toEqual([
      false,
      false,
    ])
    expect(erasure.logged()).toContain('blobs.strays_deleted')
    expect((await remains(erasure, project.id, kept)).blobs).toBe(kept.blobKeys.length)
    expect(await erasure.options.db.sql`select from stray_blobs`).toEqual([])
    await clock.close()
  })

  test('counts chunks without a blob, which the metric and the list show', async ({
    erasure,
    project,
  }) => {
    const { db, blobs, log } = erasure.options
    const recorded = await record(erasure, project.id, 'ada')
    const recordings = recordingsOf(erasure)
    await compareBlobs(recordings, log)
    expect((await readFacts(db.sql)).lostChunks).toBe(0)
    await blobs.delete([recorded.blobKeys[1]!])
    await db.sql`update blob_comparisons set begun_at = app_now() - interval '25 hours'`
    await compareBlobs(recordings, log)
    expect((await readFacts(db.sql)).lostChunks).toBe(1)
    const lost: LostChunk[] = []
    for await (const one of findLostChunks(recordings, project.id)) lost.push(one)
    expect(lost).toEqual([{ sessionId: recorded.sessionIds[0], tab: 't', number: 1 }])
    // Put back, it is none.
    await blobs.put(recorded.blobKeys[1]!, randomBytes(10))
    await db.sql`update blob_comparisons set begun_at = app_now() - interval '25 hours'`
    await compareBlobs(recordings, log)
    expect((await readFacts(db.sql)).lostChunks).toBe(0)
  })

  test('deletes nothing from a store that is mostly strays, as in front of another database', async ({
    erasure,
    project,
  }) => {
    const { db, blobs, log } = erasure.options
    const prefix = sessionPrefix(project.id, randomUUID(), randomUUID())
    await blobs.open(prefix)
    const keys = Array.from({ length: 1_001 }, (_, n) => `${prefix}t-${n}-x`)
    for (const key of keys) await blobs.put(key, randomBytes(1))
    await compareBlobs(recordingsOf(erasure), log)
    await db.sql`update blob_comparisons set begun_at = app_now() - interval '25 hours'`
    await db.sql`update stray_blobs set seen_at = app_now() - interval '25 hours'`
    await compareBlobs(recordingsOf(erasure), log)
    expect(await Array.fromAsync(blobs.list(prefix))).toHaveLength(1_001)
    expect(erasure.logged()).toContain('blobs.mostly_strays')
  })
})

onS3Server('swift', 'the daily comparison', (server) => {
  test('in a bucket too: a stray is deleted after a day, and a chunk without a blob is counted', async ({
    erasure: onFolder,
    project,
  }) => {
    const bucket = await newBucket(server())
    const blobs = await openBucket({ url: bucket.url, endpoint: server().endpoint })
    onTestFinished(() => {
      blobs.close()
      bucket.client.destroy()
    })
    const erasure = { ...onFolder, blobs, options: { ...onFolder.options, blobs } }
    const { db, log } = erasure.options
    const compare = async () => {
      await db.sql`update blob_comparisons set begun_at = app_now() - interval '25 hours'`
      await db.sql`update stray_blobs set seen_at = app_now() - interval '25 hours'`
      await compareBlobs(recordingsOf(erasure), log)
      return (await readFacts(db.sql)).lostChunks
    }
    const { blobKeys } = await record(erasure, project.id, 'ada')
    const [first, second] = blobKeys as [string, string]
    const stray = `${first}-late`
    await blobs.put(stray, randomBytes(10))
    // Strays and chunks of the tests above are in no bucket.
    await db.sql`delete from stray_blobs`
    const others = await compare()
    expect(await isThere(erasure, stray)).toBe(true)
    await blobs.delete([second])
    expect(await compare()).toBe(others + 1)
    expect(await isThere(erasure, stray)).toBe(false)
    expect(await isThere(erasure, first)).toBe(true)
  })
})
