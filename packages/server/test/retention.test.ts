import { randomUUID } from 'node:crypto'
import { readdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { BlobFault, browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import { updateProjectSettings } from '../src/projects/settings-store.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import { intendChunk } from '../src/recordings/ingest-store.ts'
import {
  browsersOf,
  countRemains,
  deleteRowsOfBrowsers,
  killExpiredIntents,
  type OwnedBrowser,
  retireBrowsers,
  unlinkBrowsers,
} from '../src/recordings/removal.ts'
import { expireIdentified } from '../src/retention/identified.ts'
import { expireRecordings } from '../src/retention/retention.ts'
import { connectOne, type Db, type Sql } from '../src/sql.ts'
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
    set started_at = later(started_at, ${-days} * 86400000.0),
      last_chunk_at = later(last_chunk_at, ${-days} * 86400000.0)
    where project_id = ${projectId} and id = ${sessionId}`
  await db.sql`
    update browsers set created_at = later(created_at, ${-days} * 86400000.0)
    where project_id = ${projectId} and id = ${browserId}`
}

/** As if a member had watched this person's recordings. */
async function recordAudit(sql: Sql, projectId: number, personId: string): Promise<void> {
  await sql`
    insert into audit_log (action, project_id, person_id, subject_kind, subject_id)
    values ('person.read', ${projectId}, ${personId}, 'person', ${personId})`
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
  test("older than its project's retention is deleted: rows, blobs, its browser and the key", async ({
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

    expect(await expireRecordings(recordings)).toEqual({
      sessions: 1,
      chunks: 2,
      browsers: 1,
      persons: 0,
    })

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

  test('accepts no chunk once its deletion has started', async ({
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

  test('of more than one batch is deleted completely', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
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
    expect(await expireRecordings(recordings)).toMatchObject({
      sessions: 121,
      chunks: 12_000,
      browsers: 1,
    })
  })

  test('is deleted once, also by several processes at once', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
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
  test('stays while it has a session, and its link ends with its last recording', async ({
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
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 2, browsers: 1 })
    expect((await ingesting.ingest('start', { browserId: identified.browserId })).status).toBe(410)
    const links = await db.sql`select from person_browsers where project_id = ${project.id}`
    expect(links).toEqual([])
    const persons = await db.sql`select from persons where project_id = ${project.id}`
    expect(persons.length).toBe(1)
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
    await retireBrowsers(db.sql, project.id, [started.browserId])
    await unlinkBrowsers(db.sql, project.id, [personId])
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 0, browsers: 0 })
    await age(db, project.id, started, 31)
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, browsers: 1 })
  })

  test('about to be removed either refuses a new session, or gets it and stays', async ({
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

test('a project may delete people whom only identify() has created, days after their last recording went, and nobody else', async ({
  ingesting,
  recordings,
  db,
  address,
  project,
}) => {
  const expire = async (days: number) => {
    await shiftClock(address, days * 86_400)
    return (await expireRecordings(recordings)).persons
  }
  const others = ['posted', 'known', 'failed', 'deleting', 'seen']
  const names = ['ada', 'eve', ...others]
  await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'posted' } })
  for (const name of names) await ingesting.identify((await ingesting.start()).browserId, name)
  const person = async (name: string) => {
    const [row] = await db.sql<{ id: string }>`
      select id from persons where project_id = ${project.id} and external_id = ${name}`
    return row?.id
  }
  const known = { externalId: 'known', properties: { plan: 'pro' } }
  await ingesting.send('/v1/persons', { method: 'POST', body: known })
  await db.sql`
    update persons set failed_job_id = ${randomUUID()}
    where project_id = ${project.id} and external_id = 'failed'`
  await recordAudit(db.sql, project.id, (await person('ada')) as string)

  expect(await expire(31)).toBe(0)
  expect(await expire(40)).toBe(0)
  await updateProjectSettings(db.sql, project.id, { identifiedDays: 10 })
  // A person who has a browser again stays until its recordings are deleted, and as many days after.
  await ingesting.identify((await ingesting.start()).browserId, 'seen')
  await ingesting.send('/v1/persons/deleting?keepRecordings=true', { method: 'DELETE' })
  expect(await expire(41)).toBe(0)
  expect(await expire(42)).toBe(2)
  expect(await Promise.all(names.map(person))).toEqual([
    undefined,
    undefined,
    ...others.map(() => expect.any(String)),
  ])
  const [named] = await db.sql<{ count: number }>`
    select count(*)::integer as count from audit_log
    where project_id = ${project.id} and action = 'person.read'
      and (person_id is not null or subject_id is not null)`
  expect(named).toEqual({ count: 0 })
  expect(await expire(75)).toBe(0)
  expect(await expire(86)).toBe(1)
  expect(await person('seen')).toBeUndefined()
  // Made again, they are new.
  expect((await ingesting.identify((await ingesting.start()).browserId, 'ada')).status).toBe(200)
  expect(await expire(87)).toBe(0)
  await shiftClock(address, 0)
})

test('people whom only identify() has created go some at a time, however many strangers made', async ({
  recordings,
  db,
  project,
}) => {
  await db.sql`
    with made as (
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (extract(epoch from t) * 1000)::bigint << 20 | n, 'p' || n, '{}', t, t
      from app_now() t, generate_series(1, 300) n
      returning project_id, id
    )
    insert into identified_persons (project_id, person_id, idle_since)
    select project_id, id, app_now()::date - 9 from made`
  // Somebody is at one of them, which has its turn later.
  const removed = await recordings.db.begin(async (tx) => {
    await tx`select from persons
      where project_id = ${project.id} and external_id = 'p7'
      for update`
    return expireIdentified(db, project.id, 8, 100)
  })
  expect(removed).toBe(299)
  expect(await expireIdentified(db, project.id, 8, 100)).toBe(1)
})

test('a symbolic link among the blobs of a session keeps that one, and no other', async ({
  ingesting,
  recordings,
  db,
  project,
  folder,
}) => {
  const linked = await ingesting.start()
  const plain = await ingesting.start()
  for (const one of [linked, plain]) {
    await ingesting.chunk(one)
    await age(db, project.id, one, 31)
  }
  const { browserId, sessionId } = linked
  const place = join(folder, sessionPrefix(project.id, browserId, sessionId), 'link')
  await symlink('/etc', place)
  await expect(expireRecordings(recordings)).rejects.toMatchObject({ code: 'symbolic_link' })
  expect(await rowsOf(db, project.id, linked)).toMatchObject({ browsers: 1, sessions: 1 })
  expect(await rowsOf(db, project.id, plain)).toMatchObject({ browsers: 0, sessions: 0 })
  await rm(place)
  expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, browsers: 1 })
})

describe('what an erasure takes away of recordings', () => {
  test('is deleted in batches, and checked by another query than the one that deletes', async ({
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

  test('and its uploads that were never confirmed end some at a time, however many there are', async ({
    ingesting,
    db,
    address,
    project,
  }) => {
    const { browserId, sessionId } = await ingesting.start()
    await ingesting.identify(browserId, 'ada')
    const [{ id: personId }] = (await db.sql`
      select id from persons where project_id = ${project.id}`) as [{ id: string }]
    const intend = () => db.sql`
      insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until)
      select ${project.id}, ${sessionId}, gen_random_uuid(), n, gen_random_uuid(), 'intent',
        app_now() + interval '1 minute'
      from generate_series(1, 250) n`
    const ended = async (end: () => Promise<number>) => [await end(), await end(), await end()]
    await intend()
    const ofPerson = () => killExpiredIntents(db.sql, project.id, [personId], 100)
    const ofClosed = () => killExpiredIntents(db.sql, project.id, 'closed', 100)
    expect(await ofPerson()).toBe(0)
    await shiftClock(address, 61)
    expect(await ended(ofPerson)).toEqual([100, 100, 50])
    await intend()
    await shiftClock(address, 122)
    expect(await ofClosed()).toBe(0)
    await db.sql`update sessions set closed = true where project_id = ${project.id}`
    expect(await ended(ofClosed)).toEqual([100, 100, 50])
    await shiftClock(address, 0)
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
    expect((await retireBrowsers(db.sql, project.id, [...found])).length).toBe(2_500)
    const [left] = await db.sql`
      select count(*)::int as count from browsers
      where project_id = ${project.id} and not retired`
    expect(left).toEqual({ count: 0 })
    expect(browserPrefix(project.id, 'x')).toBe(`blobs/${project.id}/x/`)
  })
})
