import { describe, expect } from 'vitest'
import type { Blobs } from '../src/blobs/blobs.ts'
import { inLanes } from '../src/lanes.ts'
import { packSessions } from '../src/recordings/pack.ts'
import { collectDeadChunks } from '../src/recordings/upload.ts'
import type { Db } from '../src/sql.ts'
import {
  blobKeys,
  events,
  plainEvents,
  type Started,
  shiftClock,
  startIngesting,
  test,
} from './recordings-fixtures.ts'

const day = 86_400

const rowsOf = (db: Db, { sessionId }: Started) =>
  db.sql<{ tab: string; state: string }>`
    select tab, state from chunks where session_id = ${sessionId} order by tab, number`

describe('a finished session', () => {
  test('is packed into one blob and one row, and read as it was, tab by tab', async ({
    ingesting,
    recordings,
    db,
    address,
  }) => {
    const started = await ingesting.start()
    for (const tab of ['b', 'a']) {
      for (let number = 0; number < 12; number++) {
        const body = number % 2 === 0 ? events(3, number * 3) : plainEvents(3, number * 3)
        await ingesting.chunk({ ...started, tab, number }, body)
      }
    }
    const read = async (query = '') =>
      (await ingesting.send(`/v1/sessions/${started.sessionId}/events${query}`)).text
    const session = async () => (await ingesting.send(`/v1/sessions/${started.sessionId}`)).json
    const [before, ofTab, told] = [await read(), await read('?tab=b'), await session()]
    expect(before.split('\n')).toHaveLength(73)

    expect(await packSessions(recordings), 'while it may go on').toBe(0)
    await shiftClock(address, 36 * 60)
    expect(await packSessions(recordings)).toBe(1)
    expect(await packSessions(recordings)).toBe(0)
    expect([await read(), await read('?tab=b')]).toEqual([before, ofTab])
    // What it replaced is kept for a day.
    expect(await blobKeys(recordings)).toHaveLength(25)
    await shiftClock(address, 36 * 60 + day + 1)
    expect(await collectDeadChunks(db.sql, recordings.blobs)).toBe(24)
    expect(await blobKeys(recordings)).toHaveLength(1)
    expect(await rowsOf(db, started)).toEqual([{ tab: '', state: 'stored' }])

    expect([await read(), await read('?tab=b')]).toEqual([before, ofTab])
    const { session: packed, tabs } = await session()
    expect({ ...packed, bytes: 0 }).toEqual({ ...told.session, bytes: 0 })
    expect(packed.bytes).toBeLessThan(told.session.bytes + 24 * 80)
    const countsOf = (all: { tab: string }[]) => all.map((one) => ({ ...one, bytes: 0 }))
    expect(countsOf(tabs)).toEqual(countsOf(told.tabs))
    await shiftClock(address, 0)
  })

  test('of half an hour is two rows, one blob and one request to the blob store, instead of 63 of each', async ({
    recordings,
    address,
    project,
    db,
  }) => {
    let gets = 0
    const blobs: Blobs = {
      ...recordings.blobs,
      get(key, signal) {
        gets += 1
        return recordings.blobs.get(key, signal)
      },
    }
    const service = await startIngesting({ ...recordings, blobs }, address, project)
    const started = await service.start()
    // A few at a time, as there may be only so many of one address.
    await inLanes(Array(63).keys(), 16, (number) =>
      service.chunk({ ...started, tab: 't', number }, events(3, number * 3)),
    )
    const played = async () => {
      gets = 0
      const { text } = await service.send(`/v1/sessions/${started.sessionId}/events`)
      return { events: text.trim().split('\n').length, gets }
    }
    const rows = async () => 1 + (await rowsOf(db, started)).length
    const stored = async () => (await blobKeys(recordings)).length
    expect([await rows(), await stored(), await played()]).toEqual([
      64,
      63,
      { events: 189, gets: 63 },
    ])
    await shiftClock(address, 36 * 60)
    expect(await packSessions(recordings)).toBe(1)
    await shiftClock(address, 36 * 60 + day + 1)
    await collectDeadChunks(db.sql, recordings.blobs)
    expect([await rows(), await stored(), await played()]).toEqual([2, 1, { events: 189, gets: 1 }])
    await shiftClock(address, 0)
    await service.close()
  })

  test('takes a late chunk in its place, packs it with the next, and none twice', async ({
    ingesting,
    recordings,
    address,
    db,
  }) => {
    const started = await ingesting.start()
    const send = (number: number) =>
      ingesting.chunk({ ...started, tab: 't', number }, plainEvents(1, number))
    const expected = (numbers: number[]) => numbers.map((one) => plainEvents(1, one)).join('')
    const read = async () => (await ingesting.send(`/v1/sessions/${started.sessionId}/events`)).text
    for (const number of [0, 1, 3]) await send(number)
    await shiftClock(address, 3_600)
    expect(await packSessions(recordings)).toBe(1)
    for (const number of [1, 2, 4]) expect((await send(number)).status).toBe(200)
    expect(await read()).toBe(expected([0, 1, 2, 3, 4]))
    await shiftClock(address, 7_200)
    expect(await packSessions(recordings)).toBe(1)
    await shiftClock(address, 7_201 + day)
    await collectDeadChunks(db.sql, recordings.blobs)
    expect(await rowsOf(db, started)).toHaveLength(2)
    expect(await read()).toBe(expected([0, 1, 2, 3, 4]))
    await send(2)
    expect(await read()).toBe(expected([0, 1, 2, 3, 4]))
    await shiftClock(address, 0)
  })

  test('with a chunk whose blob is missing is packed without it', async ({
    ingesting,
    recordings,
    address,
    db,
  }) => {
    const started = await ingesting.start()
    for (const number of [0, 1, 2]) {
      await ingesting.chunk({ ...started, tab: 't', number }, events(1, number))
    }
    const missing = (await blobKeys(recordings)).filter((key) => key.includes('/t-1-'))
    await recordings.blobs.delete(missing)
    await shiftClock(address, 3_600)
    expect(await packSessions(recordings)).toBe(1)
    const rows = await rowsOf(db, started)
    expect(rows.filter(({ state }) => state === 'stored').map(({ tab }) => tab)).toEqual(['', 't'])
    expect(await packSessions(recordings)).toBe(0)
    await shiftClock(address, 0)
  })

  test('is found by a database that was restored from before it was packed', async ({
    ingesting,
    recordings,
    address,
    db,
  }) => {
    const started = await ingesting.start()
    const { sessionId } = started
    for (const number of [0, 1, 2]) {
      await ingesting.chunk({ ...started, tab: 't', number }, events(1, number))
    }
    await db.sql`create table backup as select * from chunks where session_id = ${sessionId}`
    await ingesting.chunk({ ...started, tab: 't', number: 3 }, events(1, 3))
    const read = async () => (await ingesting.send(`/v1/sessions/${sessionId}/events`)).text
    const before = await read()
    await shiftClock(address, 3_600)
    expect(await packSessions(recordings)).toBe(1)
    await shiftClock(address, 20 * day)
    await collectDeadChunks(db.sql, recordings.blobs)

    await db.begin(async (tx) => {
      await tx`delete from chunks where session_id = ${sessionId}`
      await tx`insert into chunks select * from backup`
      await tx`update sessions set packed = null, is_unpacked = true where id = ${sessionId}`
    })
    expect(await packSessions(recordings)).toBe(1)
    expect(await read()).toBe(before)
    expect(await packSessions(recordings)).toBe(0)
    await shiftClock(address, 0)
  })
})
