import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BlobFault, browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import { intendChunk } from '../src/recordings/ingest-store.ts'
import { expireRecordings } from '../src/recordings/retention.ts'
import {
  browsersOf,
  countRemains,
  deleteRowsOfBrowsers,
  type OwnedBrowser,
  retireBrowsersOf,
  unlinkBrowsers,
} from '../src/recordings/store.ts'
import { connectOne, type Db } from '../src/sql.ts'
import { newProject } from './fixtures.ts'
import {
  blobKeys,
  type Started,
  shiftClock,
  test,
  waitUntilBlocked,
} from './recordings-fixtures.ts'

/** As if it had all happened so many days ago: the session, its chunks, its browser. */
async function age(db: Db, projectId: number, { sessionId, browserId }: Started, days: number) {
  await db.sql`
    update sessions
    set started_at = started_at - ${days} * interval '1 day',
      last_chunk_at = last_chunk_at - ${days} * interval '1 day'
    where project_id = ${projectId} and id = ${sessionId}`
  await db.sql`
    update browsers set created_at = created_at - ${days} * interval '1 day'
    where project_id = ${projectId} and id = ${browserId}`
}

async function rowsOf(db: Db, projectId: number, { sessionId, browserId }: Started) {
  const [row] = await db.sql<{ sessions: number; chunks: number; browsers: number }>`
    select
      (select count(*)::int from sessions
       where project_id = ${projectId} and id = ${sessionId}) as sessions,
      (select count(*)::int from chunks
       where project_id = ${projectId} and session_id = ${sessionId}) as chunks,
      (select count(*)::int from browsers
       where project_id = ${projectId} and id = ${browserId}) as browsers`
  return row
}

describe('a session', () => {
  test('past the days its project keeps it is gone: rows, blobs, its browser and the key', async ({
    ingesting,
    recordings,
    db,
    project,
    folder,
  }) => {
    const old = await ingesting.start()
    await ingesting.chunk({ ...old, number: 0 })
    await ingesting.chunk({ ...old, number: 1 })
    const young = await ingesting.start()
    await ingesting.chunk(young)
    await age(db, project.id, old, 30.01)
    await age(db, project.id, young, 29.99)

    expect(await expireRecordings(recordings)).toEqual({ sessions: 1, chunks: 2, browsers: 1 })

    expect(await rowsOf(db, project.id, old)).toEqual({ sessions: 0, chunks: 0, browsers: 0 })
    expect(await rowsOf(db, project.id, young)).toEqual({ sessions: 1, chunks: 1, browsers: 1 })
    expect(await countBrowserKeys(recordings.browserKeys.sql, project.id, [old.browserId])).toBe(0)
    expect(await readdir(join(folder, 'blobs', String(project.id)))).toEqual([young.browserId])
    expect((await ingesting.send(`/v1/sessions/${old.sessionId}`)).status).toBe(404)
    expect((await ingesting.chunk({ ...old, number: 2 })).status).toBe(410)
    expect((await ingesting.ingest('start', { browserId: old.browserId })).status).toBe(410)
    expect((await ingesting.ingest('start', { browserId: young.browserId })).status).toBe(200)
  })

  test('counts from its last activity on', async ({ ingesting, recordings, db, project }) => {
    const started = await ingesting.start()
    await age(db, project.id, started, 31)
    await db.sql`
      update sessions set started_at = app_now() - interval '7 days'
      where project_id = ${project.id} and id = ${started.sessionId}`
    await ingesting.chunk(started)
    await db.sql`
      update sessions set started_at = app_now() - interval '31 days'
      where project_id = ${project.id} and id = ${started.sessionId}`
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 0 })
    await age(db, project.id, started, 31)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, chunks: 1 })
  })

  test('is kept as long as its own project says', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const other = await newProject(db)
    await db.sql`update projects set retention_days = 7 where id = ${other.id}`
    const mine = await ingesting.start()
    const { json: others } = await ingesting.ingest('start', {}, { key: other.publicKey })
    await age(db, project.id, mine, 8)
    await age(db, other.id, others, 8)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1 })
    expect(await rowsOf(db, project.id, mine)).toMatchObject({ sessions: 1 })
    expect(await rowsOf(db, other.id, others)).toMatchObject({ sessions: 0 })
  })

  test('takes no chunk from the moment its deletion begins', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    await ingesting.chunk(started)
    await age(db, project.id, started, 31)
    const blobs = {
      ...recordings.blobs,
      deletePrefix: async () => {
        throw new BlobFault('unreachable', 'away')
      },
    }
    await expect(expireRecordings({ ...recordings, blobs })).rejects.toMatchObject({
      code: 'unreachable',
    })
    // Blobs go before rows: while they cannot go, the way to them stays.
    expect(await rowsOf(db, project.id, started)).toEqual({ sessions: 1, chunks: 1, browsers: 1 })
    expect((await ingesting.chunk({ ...started, number: 1 })).status).toBe(410)
    expect((await ingesting.send(`/v1/sessions/${started.sessionId}/events`)).status).toBe(404)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, chunks: 1 })
    expect(await blobKeys(recordings)).toEqual([])
  })

  test('waits for an upload that may still be confirmed', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const started = await ingesting.start()
    await intendChunk(
      db.sql,
      { projectId: project.id, ...started, tab: 'tab', number: 0 },
      `${sessionPrefix(project.id, started.browserId, started.sessionId)}tab-0-x`,
    )
    await age(db, project.id, started, 31)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 0 })
    await shiftClock(address, 61)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, chunks: 1 })
    await shiftClock(address, 0)
  })

  test('of more than one part is deleted whole', async ({ ingesting, recordings, db, project }) => {
    const started = await ingesting.start()
    await db.sql`
      insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until,
        stored_at, bytes)
      select ${project.id}, ${started.sessionId}, 't', n, 'blobs/x/' || n, 'stored', app_now(),
        app_now(), 1
      from generate_series(1, 12000) n`
    for (let i = 0; i < 120; i++) {
      await db.sql`
        insert into sessions (project_id, id, browser_id, started_at)
        values (${project.id}, ${randomUUID()}, ${started.browserId}, app_now() - interval '40 days')`
    }
    await age(db, project.id, started, 31)
    expect(await expireRecordings(recordings)).toEqual({
      sessions: 121,
      chunks: 12_000,
      browsers: 1,
    })
  })

  test('is deleted once, whoever else is at it', async ({ ingesting, recordings, db, project }) => {
    for (let i = 0; i < 10; i++) {
      const started = await ingesting.start()
      await ingesting.chunk(started)
      await age(db, project.id, started, 31)
    }
    const all = await Promise.all([1, 2, 3].map(() => expireRecordings(recordings)))
    const sum = (name: 'sessions' | 'chunks' | 'browsers') =>
      all.reduce((total, one) => total + one[name], 0)
    expect([sum('sessions'), sum('chunks'), sum('browsers')]).toEqual([10, 10, 10])
    expect(await blobKeys(recordings)).toEqual([])
  })
})

describe('a browser', () => {
  test('stays while it has a person or a session', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const identified = await ingesting.start()
    await ingesting.identify(identified.browserId, 'ada')
    await age(db, project.id, identified, 31)
    const active = await ingesting.start()
    await age(db, project.id, active, 31)
    await ingesting.start(active.browserId)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 2, browsers: 0 })
    expect((await ingesting.ingest('start', { browserId: identified.browserId })).status).toBe(200)
    expect((await ingesting.ingest('start', { browserId: active.browserId })).status).toBe(200)
  })

  test('kept anonymous by a deletion goes with its last session', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    await ingesting.identify(started.browserId, 'ada')
    const [{ id: personId }] = (await db.sql`
      select id from persons where project_id = ${project.id}`) as [{ id: string }]
    await db.begin((tx) => retireBrowsersOf(tx, project.id, personId))
    expect(await unlinkBrowsers(db.sql, project.id, [personId])).toBe(1)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 0, browsers: 0 })
    await age(db, project.id, started, 31)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, browsers: 1 })
  })

  test('about to be removed takes no session any more, or gets it and stays', async ({
    ingesting,
    recordings,
    db,
    address,
    project,
  }) => {
    const unused = await ingesting.start()
    await age(db, project.id, unused, 31)
    // A start holds the browser while the retention looks at it.
    const starting = await connectOne(address)
    await starting.client.query('begin')
    await starting.sql`
      select from browsers
      where project_id = ${project.id} and id = ${unused.browserId} for share`
    const expiring = expireRecordings(recordings)
    await waitUntilBlocked(db, 1)
    await starting.sql`
      insert into sessions (project_id, browser_id) values (${project.id}, ${unused.browserId})`
    await starting.client.query('commit')
    await starting.end()
    expect(await expiring).toMatchObject({ sessions: 1, browsers: 0 })
    expect(await rowsOf(db, project.id, unused)).toMatchObject({ browsers: 1 })
    expect((await ingesting.ingest('start', { browserId: unused.browserId })).status).toBe(200)
  })
})

describe('what an erasure takes away of recordings', () => {
  test('goes in parts, and is counted by another way than it goes', async ({
    ingesting,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    const bystander = await ingesting.start()
    for (let number = 0; number < 7; number++) await ingesting.chunk({ ...started, number })
    await ingesting.start(started.browserId)
    await ingesting.chunk(bystander)
    const ids = [started.browserId]
    expect(await countRemains(db.sql, project.id, ids)).toEqual({ sessions: 2, chunks: 7 })
    const parts = []
    for (;;) {
      const part = await deleteRowsOfBrowsers(db.sql, project.id, ids, 3)
      parts.push(part)
      if (part.isDone) break
    }
    const [browserId] = ids
    expect(parts).toEqual([
      { removed: new Map([[browserId, { sessions: 0, chunks: 3 }]]), isDone: false },
      { removed: new Map([[browserId, { sessions: 0, chunks: 3 }]]), isDone: false },
      { removed: new Map([[browserId, { sessions: 2, chunks: 1 }]]), isDone: true },
    ])
    expect(await countRemains(db.sql, project.id, ids)).toEqual({ sessions: 0, chunks: 0 })
    expect(await countRemains(db.sql, project.id, [bystander.browserId])).toEqual({
      sessions: 1,
      chunks: 1,
    })
  })

  test('is found browser by browser, however many there are', async ({ db, project }) => {
    await db.sql`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (extract(epoch from t) * 1000)::bigint << 20, 'ada', '{}', t, t
      from app_now() t`
    const [{ id: personId }] = (await db.sql`
      select id from persons where project_id = ${project.id}`) as [{ id: string }]
    await db.sql`
      with browser as (
        insert into browsers (project_id)
        select ${project.id} from generate_series(1, 2500) returning id
      )
      insert into person_browsers (project_id, browser_id, person_id)
      select ${project.id}, id, ${personId} from browser`
    const found = new Set<string>()
    let after: string | null = null
    for (;;) {
      const part: OwnedBrowser[] = await browsersOf(db.sql, project.id, [personId], after, 1_000)
      for (const { id } of part) found.add(id)
      if (part.length < 1_000) break
      after = part.at(-1)!.id
    }
    expect(found.size).toBe(2_500)
    await db.begin((tx) => retireBrowsersOf(tx, project.id, personId))
    const [left] = await db.sql`
      select count(*)::int as count from browsers
      where project_id = ${project.id} and not retired`
    expect(left).toEqual({ count: 0 })
    expect(browserPrefix(project.id, 'x')).toBe(`blobs/${project.id}/x/`)
  })
})
