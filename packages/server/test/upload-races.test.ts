import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BlobFault, type Blobs, browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import {
  collectUnusedKeys,
  createBrowserKey,
  destroyBrowserKeys,
} from '../src/recordings/browser-keys.ts'
import { chunkWriter } from '../src/recordings/chunk-writer.ts'
import { intendChunk } from '../src/recordings/ingest-store.ts'
import {
  browsersOf,
  countOpenIntents,
  countRemains,
  deleteBrowsers,
  deleteRowsOfBrowsers,
  killExpiredIntents,
  retireBrowsers,
} from '../src/recordings/removal.ts'
import { collectDeadChunks, type Recordings, storeChunk } from '../src/recordings/upload.ts'
import { connectOne, type Db, type Sql } from '../src/sql.ts'
import { newProject } from './fixtures.ts'
import {
  blobKeys,
  confirmChunk,
  events,
  plainEvents,
  type Started,
  shiftClock,
  startIngesting,
  test,
  waitUntilBlocked,
} from './recordings-fixtures.ts'

interface Chunk {
  state: string
  blobKey: string
}

async function chunksOf(db: Db, projectId: number, { sessionId }: Started): Promise<Chunk[]> {
  return db.sql<Chunk>`
    select state, blob_key as "blobKey" from chunks
    where project_id = ${projectId} and session_id = ${sessionId}`
}

async function personIdOf(db: Db, projectId: number, externalId: string): Promise<string> {
  const [row] = await db.sql<{ id: string }>`
    select id from persons where project_id = ${projectId} and external_id = ${externalId}`
  return row!.id
}

/** A store in which each put waits, before or after it did its work, until it is let go. */
function slowStore(blobs: Blobs, when: 'before' | 'after') {
  const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const put: Blobs['put'] = async (key, bytes, signal) => {
    if (when === 'after') await blobs.put(key, bytes, signal)
    held()
    await isReleased
    if (when === 'before') await blobs.put(key, bytes, signal)
  }
  return { blobs: { ...blobs, put }, isHeld, release }
}

/** What a process leaves that died between putting a blob and confirming it. */
async function diedBeforeConfirming(
  { db, blobs }: Recordings,
  projectId: number,
  { browserId, sessionId }: Started,
): Promise<string> {
  const blobKey = `${browserPrefix(projectId, browserId)}${sessionId}/tab-0-${randomUUID()}`
  const place = { projectId, browserId, sessionId, tab: 'tab', number: 0 }
  expect(await intendChunk(db.sql, place, blobKey)).toMatchObject({ outcome: 'intended' })
  await blobs.put(blobKey, Buffer.from('sealed'))
  return blobKey
}

describe('a retirement', () => {
  test('that came first stops the chunk, the session and the identify that waited for it', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    const holder = await connectOne(address)
    await holder.client.query('begin')
    await holder.sql`
      update browsers set retired = true
      where project_id = ${project.id} and id = ${started.browserId}`
    const waiting = [ingesting.chunk(started)]
    await waitUntilBlocked(db, 1)
    waiting.push(ingesting.ingest('start', { browserId: started.browserId }))
    await waitUntilBlocked(db, 2)
    waiting.push(ingesting.identify(started.browserId, 'ada'))
    await waitUntilBlocked(db, 3)
    await holder.client.query('commit')
    await holder.end()
    for (const answer of await Promise.all(waiting)) {
      expect(answer).toMatchObject({
        status: 410,
        json: { error: { code: 'browser_retired' }, next: 'new_browser' },
      })
    }
    expect(await blobKeys(recordings)).toEqual([])
    expect(await chunksOf(db, project.id, started)).toEqual([])
    expect((await ingesting.send('/v1/persons/ada')).status).toBe(404)
    const sessions = await db.sql`
      select from sessions where project_id = ${project.id} and browser_id = ${started.browserId}`
    expect(sessions).toHaveLength(1)
  })

  test('waits for an intent in the making, which is then in the set to be drained', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    await ingesting.identify(started.browserId, 'ada')
    const uploader = await connectOne(address)
    await uploader.client.query('begin')
    const place = { projectId: project.id, ...started, tab: 'tab', number: 0 }
    const prefix = browserPrefix(project.id, started.browserId)
    const blobKey = `${prefix}${started.sessionId}/tab-0-x`
    await intendChunk(uploader.sql, place, blobKey)
    expect((await ingesting.send('/v1/persons/ada', { method: 'DELETE' })).status).toBe(202)
    const retiring = retireBrowsers(db.sql, project.id, [started.browserId], { isRemoved: true })
    await waitUntilBlocked(db, 1)
    await uploader.client.query('commit')
    await uploader.end()
    expect(await retiring).toHaveLength(1)

    const personId = await personIdOf(db, project.id, 'ada')
    expect(await countOpenIntents(db.sql, project.id, [personId])).toBe(1)
    expect(await killExpiredIntents(db.sql, project.id, [personId])).toBe(0)
    await recordings.blobs.put(blobKey, Buffer.from('sealed'))
    expect(await confirmChunk(db.sql, { ...place, blobKey, bytes: 6 })).toBe(true)
    expect(await countOpenIntents(db.sql, project.id, [personId])).toBe(0)
    expect((await ingesting.chunk({ ...started, number: 1 })).status).toBe(410)
  })

  test('at any moment: a chunk is stored and in the set, or refused and nowhere', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const outcomes = new Set<number>()
    for (let round = 0; round < 15; round++) {
      const started = await ingesting.start()
      await ingesting.identify(started.browserId, `person ${round}`)
      const chunks = Array.from({ length: 8 }, (_, number) =>
        new Promise((resolve) => setTimeout(resolve, number * 4)).then(() =>
          ingesting.chunk({ ...started, number }),
        ),
      )
      await new Promise((resolve) => setTimeout(resolve, round * 3))
      const deleted = await ingesting.send(`/v1/persons/person%20${round}`, { method: 'DELETE' })
      expect(deleted.status).toBe(202)
      const statuses = (await Promise.all(chunks)).map((answer) => answer.status)
      for (const status of statuses) outcomes.add(status)
      const stored = await chunksOf(db, project.id, started)
      const acknowledged = statuses.filter((status) => status === 200).length
      expect(statuses.filter((status) => status === 410).length).toBe(8 - acknowledged)
      expect(stored.map((chunk) => chunk.state)).toEqual(Array(acknowledged).fill('stored'))
      const keys = await blobKeys(recordings, browserPrefix(project.id, started.browserId))
      expect(keys).toEqual(stored.map((chunk) => chunk.blobKey).sort())
    }
    expect(outcomes).toEqual(new Set([200, 410]))
  })
})

describe('the same chunk', () => {
  test('sent fifty times at once is stored once', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => ingesting.chunk(started, events(5))),
    )
    const statuses = answers.map((answer) => answer.status)
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0)
    for (const { status, json, headers } of answers) {
      if (status === 200) continue
      // The 32 uploads that one address may have on their way are a limit of its own.
      expect([409, 503]).toContain(status)
      expect(json.next).toBe('retry')
      expect(Number(headers.get('retry-after'))).toBe(json.retryAfterSeconds)
    }
    expect(await chunksOf(db, project.id, started)).toEqual([
      { state: 'stored', blobKey: expect.any(String) },
    ])
    expect(await blobKeys(recordings)).toHaveLength(1)
    const { json } = await ingesting.send(`/v1/sessions/${started.sessionId}`)
    expect(json.session.chunks).toBe(1)
    expect((await ingesting.chunk(started)).status).toBe(200)
  })

  test('while it is on its way gets: retry', async ({ recordings, address, project }) => {
    const slow = slowStore(recordings.blobs, 'before')
    const service = await startIngesting({ ...recordings, blobs: slow.blobs }, address, project)
    const started = await service.start()
    const first = service.chunk(started)
    await slow.isHeld
    expect(await service.chunk(started)).toMatchObject({
      status: 409,
      json: { error: { code: 'chunk_in_flight' }, next: 'retry', retryAfterSeconds: 5 },
    })
    slow.release()
    expect((await first).status).toBe(200)
    expect((await service.chunk(started)).status).toBe(200)
    await service.close()
  })

  test('whose confirmation was lost is accepted when it is sent again', async ({
    recordings,
    address,
    project,
  }) => {
    const { db } = recordings
    let isLost = true
    const sql: Sql = async (strings, ...values) => {
      const rows = await db.sql(strings, ...values)
      if (isLost && strings.join('').includes('confirmed as')) {
        isLost = false
        throw Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' })
      }
      return rows as never
    }
    const service = await startIngesting({ ...recordings, db: { ...db, sql } }, address, project)
    const started = await service.start()
    expect(await service.chunk(started, events(3))).toMatchObject({
      status: 503,
      json: { next: 'retry' },
    })
    expect((await service.chunk(started, events(3))).status).toBe(200)
    expect(await blobKeys(recordings)).toHaveLength(1)
    const { json } = await service.send(`/v1/sessions/${started.sessionId}`)
    expect(json.session.chunks).toBe(1)
    await service.close()
  })
})

describe('an uploader that dies between put and confirm', () => {
  test('leaves an intent that the same chunk replaces once it has expired', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    const lost = await diedBeforeConfirming(recordings, project.id, started)
    expect((await ingesting.chunk(started)).status).toBe(409)
    await shiftClock(address, 61)
    expect((await ingesting.chunk(started, events(2))).status).toBe(200)
    const [chunk] = await chunksOf(db, project.id, started)
    expect(chunk?.blobKey).not.toBe(lost)
    expect(await blobKeys(recordings)).toEqual([chunk?.blobKey])
    await shiftClock(address, 0)
  })

  test('leaves nothing after the upkeep, and what is alive stays', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    const alive = await ingesting.start()
    const lost = await diedBeforeConfirming(recordings, project.id, started)
    await ingesting.chunk({ ...started, number: 1 })
    await collectDeadChunks(db.sql, recordings.blobs)
    expect(await blobKeys(recordings)).toContain(lost)
    await shiftClock(address, 61)
    await diedBeforeConfirming(recordings, project.id, alive)
    expect(await collectDeadChunks(db.sql, recordings.blobs)).toBe(1)
    expect(await blobKeys(recordings)).not.toContain(lost)
    expect((await chunksOf(db, project.id, started)).map((chunk) => chunk.state)).toEqual([
      'stored',
    ])
    expect((await chunksOf(db, project.id, alive)).map((chunk) => chunk.state)).toEqual(['intent'])
    await shiftClock(address, 0)
  })

  test("does not stop the upkeep from taking the others', though its blob cannot go", async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const first = await ingesting.start()
    await diedBeforeConfirming(recordings, project.id, first)
    const other = await newProject(db)
    const { json: second } = await ingesting.ingest('start', {}, { key: other.publicKey })
    await diedBeforeConfirming(recordings, other.id, second)
    await shiftClock(address, 61)
    const blobs: Blobs = {
      ...recordings.blobs,
      delete: async (keys) => {
        if (keys.some((key) => key.startsWith(`blobs/${project.id}/`))) {
          throw new BlobFault('access_denied', 'not this one')
        }
        await recordings.blobs.delete(keys)
      },
    }
    await expect(collectDeadChunks(db.sql, blobs)).rejects.toMatchObject({ code: 'access_denied' })
    expect(await chunksOf(db, other.id, second)).toEqual([])
    expect(await chunksOf(db, project.id, first)).toMatchObject([{ state: 'dead' }])
    expect(await collectDeadChunks(db.sql, recordings.blobs)).toBe(1)
    expect(await blobKeys(recordings)).toEqual([])
    await shiftClock(address, 0)
  })
})

describe('an uploader frozen past its deadline', () => {
  test('takes its own blob away and is told that it is refused', async ({
    recordings,
    db,
    address,
    project,
  }) => {
    const slow = slowStore(recordings.blobs, 'after')
    const service = await startIngesting({ ...recordings, blobs: slow.blobs }, address, project)
    const started = await service.start()
    const frozen = service.chunk(started)
    await slow.isHeld
    await shiftClock(address, 61)
    slow.release()
    expect(await frozen).toMatchObject({ status: 410, json: { next: 'new_browser' } })
    expect(await blobKeys(recordings)).toEqual([])
    await collectDeadChunks(db.sql, recordings.blobs)
    expect(await chunksOf(db, project.id, started)).toEqual([])
    await shiftClock(address, 0)
    await service.close()
  })

  test('does not confirm what another one uploaded in its place', async ({
    recordings,
    ingesting,
    db,
    address,
    project,
  }) => {
    const slow = slowStore(recordings.blobs, 'before')
    const service = await startIngesting({ ...recordings, blobs: slow.blobs }, address, project)
    const started = await service.start()
    const frozen = service.chunk(started, events(1, 100))
    await slow.isHeld
    await shiftClock(address, 61)
    expect((await ingesting.chunk(started, events(1, 200))).status).toBe(200)
    const [chunk] = await chunksOf(db, project.id, started)
    slow.release()
    expect((await frozen).status).toBe(410)
    expect(await blobKeys(recordings)).toEqual([chunk?.blobKey])
    const read = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toContain('200')
    await shiftClock(address, 0)
    await service.close()
  })

  test('does not confirm what another one is about to upload in its place', async ({
    recordings,
    address,
    project,
  }) => {
    const frozenStore = slowStore(recordings.blobs, 'after')
    const nextStore = slowStore(recordings.blobs, 'before')
    const [first, second] = [
      await startIngesting({ ...recordings, blobs: frozenStore.blobs }, address, project),
      await startIngesting({ ...recordings, blobs: nextStore.blobs }, address, project),
    ]
    const started = await first.start()
    const frozen = first.chunk(started, events(1, 100))
    await frozenStore.isHeld
    await shiftClock(address, 61)
    const next = second.chunk(started, events(1, 200))
    await nextStore.isHeld
    frozenStore.release()
    expect((await frozen).status).toBe(410)
    // Nothing says that it is stored before its own blob is there.
    const read = () => second.send(`/v1/sessions/${started.sessionId}/events`)
    expect((await read()).text).toBe('')
    nextStore.release()
    expect((await next).status).toBe(200)
    expect((await read()).text).toBe(plainEvents(1, 200))
    await shiftClock(address, 0)
    await first.close()
    await second.close()
  })

  test('past the end of an erasure leaves no file', async ({
    recordings,
    ingesting,
    db,
    address,
    project,
    folder,
  }) => {
    const slow = slowStore(recordings.blobs, 'before')
    const service = await startIngesting({ ...recordings, blobs: slow.blobs }, address, project)
    const started = await service.start()
    await service.identify(started.browserId, 'ada')
    const frozen = service.chunk(started)
    await slow.isHeld
    await ingesting.send('/v1/persons/ada', { method: 'DELETE' })
    await shiftClock(address, 61)
    await eraseAsTheWorkerDoes(recordings, project.id, await personIdOf(db, project.id, 'ada'))
    slow.release()
    expect((await frozen).status).toBe(410)
    const files = await readdir(join(folder, 'blobs', String(project.id)), { recursive: true })
    expect(files).toEqual([])
    await shiftClock(address, 0)
    await service.close()
  })

  test('is not revived by a clock that jumps back', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    const blobKey = await diedBeforeConfirming(recordings, project.id, started)
    await ingesting.identify(started.browserId, 'ada')
    await ingesting.send('/v1/persons/ada', { method: 'DELETE' })
    await shiftClock(address, 61)
    const personId = await personIdOf(db, project.id, 'ada')
    expect(await killExpiredIntents(db.sql, project.id, [personId])).toBe(1)
    await shiftClock(address, 0)
    const place = { projectId: project.id, ...started, tab: 'tab', number: 0 }
    expect(await confirmChunk(db.sql, { ...place, blobKey, bytes: 6 })).toBe(false)
    expect(await countOpenIntents(db.sql, project.id, [personId])).toBe(0)
  })
})

describe('chunks that arrive together', () => {
  test('share a commit for their intents and one for their confirmations, whosever they are', async ({
    ingesting,
    recordings,
    project,
  }) => {
    const sessions = [await ingesting.start(), await ingesting.start()]
    let statements = 0
    const sql: Sql = (strings, ...values) => {
      statements++
      return recordings.db.sql(strings, ...values)
    }
    const writer = chunkWriter({ sql })
    const chunks = sessions.flatMap((session, at) =>
      [0, 1, 2].map((number) => {
        const prefix = sessionPrefix(project.id, session.browserId, session.sessionId)
        const place = { projectId: project.id, ...session, tab: 'tab', number }
        const told = { pages: 1, from: 100 * number, to: 100 * number + 50, errors: at }
        return { ...place, ...told, blobKey: `${prefix}tab-${number}-x`, bytes: 10 + number }
      }),
    )
    const intents = await Promise.all(chunks.map(writer.intend))
    expect(intents).toEqual(chunks.map(() => ({ outcome: 'intended' })))
    expect(statements).toBe(1)
    expect(await Promise.all(chunks.map(writer.confirm))).toEqual(chunks.map(() => true))
    expect(statements).toBe(2)
    for (const [at, { sessionId }] of sessions.entries()) {
      const [row] = await recordings.db.sql`
        select chunks, bytes::integer, pages, errors,
          extract(epoch from first_event_at - started_at) as first,
          extract(epoch from last_event_at - started_at) as last
        from sessions where project_id = ${project.id} and id = ${sessionId}`
      expect({ ...row, first: Number(row?.first), last: Number(row?.last) }).toEqual({
        ...{ chunks: 3, bytes: 33, pages: 3, errors: at * 3, first: 0, last: 0.25 },
      })
    }
  })

  test('are delayed by no lock of another session', async ({ ingesting, db, address, project }) => {
    const [held, free] = [await ingesting.start(), await ingesting.start()]
    const holder = await connectOne(address)
    await holder.client.query('begin')
    await holder.sql`
      update sessions set closed = true
      where project_id = ${project.id} and id = ${held.sessionId}`
    const waiting = ingesting.chunk(held)
    const answers = await Promise.all(
      [0, 1, 2, 3].map((number) => ingesting.chunk({ ...free, number })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    await waitUntilBlocked(db, 1)
    await holder.client.query('rollback')
    await holder.end()
    expect((await waiting).status).toBe(200)
  })

  test('fail alone where one of them is what the database refuses', async ({
    ingesting,
    recordings,
    project,
  }) => {
    const started = await ingesting.start()
    const place = { projectId: project.id, ...started, tab: 'tab' }
    const writer = chunkWriter(recordings.db)
    const blobKey = (number: number) => `blobs/x/x/x/tab-${number}-x`
    const both = [0, 1].map((number) =>
      writer.intend({ ...place, number, blobKey: blobKey(number) }),
    )
    expect(await Promise.all(both)).toEqual([{ outcome: 'intended' }, { outcome: 'intended' }])
    const confirmed = await Promise.allSettled([
      writer.confirm({ ...place, number: 0, blobKey: blobKey(0), bytes: 2 ** 31 }),
      writer.confirm({ ...place, number: 1, blobKey: blobKey(1), bytes: 7 }),
    ])
    expect(confirmed.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  })
})

describe('a put', () => {
  test('that hangs is cut off, and the chunk can be sent again', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const slow = slowStore(recordings.blobs, 'before')
    const started = await ingesting.start()
    const place = { projectId: project.id, ...started, tab: 'tab', number: 0 }
    const storing = storeChunk(
      { ...recordings, blobs: slow.blobs },
      place,
      { gzip: events(1), pages: 0 },
      { putSeconds: 0.05 },
    )
    await expect(storing).rejects.toMatchObject({ code: 'aborted' })
    expect(await chunksOf(db, project.id, started)).toMatchObject([{ state: 'dead' }])
    expect((await ingesting.chunk(started, events(2))).status).toBe(200)
    // The one that was cut off does not come to life afterwards.
    slow.release()
    await expect(storing).rejects.toMatchObject({ code: 'aborted' })
    expect(await blobKeys(recordings)).toHaveLength(1)
  })

  test('that fails leaves nothing that the next one does not take away', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    const place = { projectId: project.id, ...started, tab: 'tab', number: 0 }
    // The worst kind: it says that it failed and has stored the blob nevertheless.
    const blobs: Blobs = {
      ...recordings.blobs,
      put: async (key, bytes) => {
        await recordings.blobs.put(key, bytes)
        throw new BlobFault('unreachable', 'the answer was lost')
      },
      delete: async () => {
        throw new BlobFault('unreachable', 'and now it is away')
      },
    }
    const chunk = { gzip: events(1), pages: 0 }
    for (let i = 0; i < 2; i++) {
      await expect(storeChunk({ ...recordings, blobs }, place, chunk)).rejects.toMatchObject({
        code: 'unreachable',
      })
    }
    expect(await chunksOf(db, project.id, started)).toMatchObject([{ state: 'dead' }])
    expect(await blobKeys(recordings)).toHaveLength(1)
    expect((await ingesting.chunk(started)).status).toBe(200)
    const stored = await chunksOf(db, project.id, started)
    expect(await blobKeys(recordings)).toEqual(stored.map((one) => one.blobKey))
  })
})

describe('a data key', () => {
  test('whose browser never came to be is destroyed, the others stay', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const { browserKeys } = recordings
    const started = await ingesting.start()
    const orphan = randomUUID()
    const young = randomUUID()
    await createBrowserKey(browserKeys, project.id, orphan)
    await db.sql`
      update browser_keys set unchecked_since = now() - interval '11 minutes'
      where project_id = ${project.id}`
    await createBrowserKey(browserKeys, project.id, young)
    expect(await collectUnusedKeys(db.sql, browserKeys.sql)).toBe(1)
    const left = await db.sql<{ id: string }>`
      select browser_id as id from browser_keys where project_id = ${project.id}`
    expect(left.map((row) => row.id).sort()).toEqual([started.browserId, young].sort())
    expect((await ingesting.chunk(started)).status).toBe(200)
  })
})

test('parallel uploads, repetitions, starts and a closing session never deadlock', async ({
  ingesting,
  db,
  project,
}) => {
  const started = await ingesting.start()
  const work: Promise<{ status: number }>[] = []
  for (let round = 0; round < 7; round++) {
    // At most 28 on their way: more of one address are put off.
    for (let number = 0; number < 4; number++) {
      work.push(ingesting.chunk({ ...started, number: round * 2 + number }))
    }
    work.push(ingesting.ingest('start', { browserId: started.browserId }))
    work.push(ingesting.identify(started.browserId, 'ada'))
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
  await db.sql`
    update sessions set closed = true
    where project_id = ${project.id} and id = ${started.sessionId}`
  const statuses = new Set((await Promise.all(work)).map((answer) => answer.status))
  expect([...statuses].filter((status) => ![200, 409, 410].includes(status))).toEqual([])
  const [{ deadlocks }] = (await db.sql`
    select deadlocks::int from pg_stat_database where datname = current_database()`) as never as [
    { deadlocks: number },
  ]
  expect(deadlocks).toBe(0)
})

/** The steps of an erasure with recordings, by the functions it is made of. */
async function eraseAsTheWorkerDoes(
  { db, blobs, browserKeys }: Recordings,
  projectId: number,
  personId: string,
): Promise<void> {
  await killExpiredIntents(db.sql, projectId, [personId])
  expect(await countOpenIntents(db.sql, projectId, [personId])).toBe(0)
  const browsers = await browsersOf(db.sql, projectId, [personId], null, 100)
  const browserIds = browsers.map(({ id }) => id)
  await destroyBrowserKeys(browserKeys.sql, projectId, browserIds)
  for (const id of browserIds) await blobs.deletePrefix(browserPrefix(projectId, id))
  while (!(await deleteRowsOfBrowsers(db.sql, projectId, browserIds)).isDone);
  expect(await countRemains(db.sql, projectId, browserIds)).toEqual({ sessions: 0, chunks: 0 })
  await db.begin((tx) => deleteBrowsers(tx, projectId, browserIds))
}
