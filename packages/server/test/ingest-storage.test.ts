import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import { migrate } from '../src/migrate.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { expireRecordings } from '../src/retention/retention.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import {
  test as base,
  blobKeys,
  events,
  plainEvents,
  startIngesting,
} from './recordings-fixtures.ts'
import { newBucket, useCredentials } from './s3-servers/bucket.ts'
import { missingPackages, runsHere, s3Server } from './s3-servers/start.ts'

/** `keyDb`: a database of its own that has nothing but data keys. */
const test = base.extend<{ keyDb: Db }>({
  keyDb: async ({ address }, use) => {
    const name = `lethe_keys_${randomUUID().replaceAll('-', '')}`
    const keyAddress: DbAddress = { ...address, database: name }
    const { client, end } = await connectOne({ ...address, database: 'postgres' })
    await client.query(`create database ${name}`)
    await migrate(keyAddress, 'keys')
    const keyDb = connect({ connection: keyAddress })
    await use(keyDb)
    await keyDb.end()
    await client.query(`drop database ${name} with (force)`)
    await end()
  },
})

const withKeysIn = (recordings: Recordings, keyDb: Db): Recordings => ({
  ...recordings,
  browserKeys: { ...recordings.browserKeys, sql: keyDb.sql },
})

describe('data keys in a database of their own', () => {
  test('are there and nowhere else, and go with their browsers', async ({
    recordings,
    keyDb,
    db,
    address,
    project,
  }) => {
    const apart = withKeysIn(recordings, keyDb)
    const service = await startIngesting(apart, address, project)
    const started = await service.start()
    expect((await service.chunk(started, events(3))).status).toBe(200)
    const ids = [started.browserId]
    expect(await countBrowserKeys(keyDb.sql, project.id, ids)).toBe(1)
    expect(await countBrowserKeys(db.sql, project.id, ids)).toBe(0)
    const read = await service.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(plainEvents(3))

    await db.sql`
      update sessions set started_at = app_now() - interval '31 days',
        last_chunk_at = app_now() - interval '31 days'
      where project_id = ${project.id} and id = ${started.sessionId}`
    await db.sql`
      update browsers set created_at = app_now() - interval '31 days'
      where project_id = ${project.id} and id = ${started.browserId}`
    expect(await expireRecordings(apart)).toMatchObject({ sessions: 1, chunks: 1, browsers: 1 })
    expect(await countBrowserKeys(keyDb.sql, project.id, ids)).toBe(0)
    await service.close()
  })

  test('not reachable: no browser is created without a key, and no chunk is stored or lost', async ({
    recordings,
    keyDb,
    db,
    address,
    project,
  }) => {
    let isAway = false
    const sql: Db['sql'] = async (strings, ...values) => {
      if (isAway) throw Object.assign(new Error('Connection terminated'), { code: 'ECONNREFUSED' })
      return keyDb.sql(strings, ...values)
    }
    const service = await startIngesting(
      withKeysIn(recordings, { ...keyDb, sql }),
      address,
      project,
    )
    const started = await service.start()
    const browsers = () => db.sql`select from browsers where project_id = ${project.id}`
    isAway = true
    for (const answer of [await service.ingest('start', {}), await service.chunk(started)]) {
      expect(answer).toMatchObject({
        status: 503,
        json: { error: { code: 'unavailable' }, next: 'retry' },
      })
    }
    expect(await browsers()).toHaveLength(1)
    expect(await blobKeys(recordings)).toEqual([])
    isAway = false
    expect((await service.chunk(started)).status).toBe(200)
    await service.close()
  })
})

const decision = runsHere(
  'Ingestion into a bucket',
  missingPackages('swift'),
  process.env.CI === 'true',
)
if (!decision.runs) test.skip(decision.title, () => {})
else {
  test('recordings in a bucket: stored, read back, and gone after their retention', async ({
    recordings,
    db,
    address,
    project,
  }) => {
    const server = await s3Server('swift')
    useCredentials(server)
    const { url } = await newBucket(server, { versioned: true })
    const blobs = await openBlobs({ folder: '/nowhere', url, endpoint: server.endpoint })
    const inBucket = { ...recordings, blobs }
    const service = await startIngesting(inBucket, address, project)
    const started = await service.start()
    for (let number = 0; number < 3; number++) {
      const body = events(2, number * 2)
      expect((await service.chunk({ ...started, number }, body)).status).toBe(200)
    }
    expect(await blobKeys(inBucket)).toHaveLength(3)
    const read = await service.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(plainEvents(6))
    await db.sql`
      update sessions set started_at = app_now() - interval '31 days',
        last_chunk_at = app_now() - interval '31 days'
      where project_id = ${project.id} and id = ${started.sessionId}`
    expect(await expireRecordings(inBucket)).toMatchObject({ sessions: 1, chunks: 3 })
    expect(await blobs.isEmpty(`blobs/${project.id}/`)).toBe(true)
    await service.close()
    blobs.close()
  })
}
