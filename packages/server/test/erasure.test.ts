import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { BlobFault, browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { findPerson, writePerson } from '../src/persons/store.ts'
import { identify } from '../src/recordings/identify.ts'
import { intendChunk } from '../src/recordings/ingest-store.ts'
import { retireBrowsers } from '../src/recordings/removal.ts'
import { storeChunk } from '../src/recordings/upload.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { overBlobs, overSql } from './erasure-faults.ts'
import {
  fingerprint,
  newBrowser,
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'
import { confirmChunk } from './recordings-fixtures.ts'

describe('with the recordings', () => {
  for (const browsers of [0, 1, 3]) {
    test(`a person with ${browsers} browsers leaves nothing, and everybody else is unchanged, byte for byte`, async ({
      erasure,
      project,
      db,
    }) => {
      const other = await newProject(db)
      const ada = await record(erasure, project.id, 'ada', { browsers })
      const bystander = await record(erasure, project.id, 'bystander')
      const namesake = await record(erasure, other.id, 'ada')
      const before = [
        await fingerprint(erasure, project.id, bystander),
        await fingerprint(erasure, other.id, namesake),
      ]
      const { id } = await requestErasure(erasure, project.id, 'ada')

      expect(await runNextAttempt(erasure.options)).toBe('completed')

      expect(await remains(erasure, project.id, ada)).toEqual(nothing)
      for (const browserId of ada.browserIds) {
        expect(await erasure.blobs.isEmpty(browserPrefix(project.id, browserId))).toBe(true)
      }
      const job = await findDeletionJob(db.sql, project.id, id)
      expect(job).toMatchObject({ status: 'completed', completedAt: expect.any(String) })
      expect(await findDeletionJobDetails(db.sql, project.id, id)).toMatchObject({
        nextAttemptAt: null,
        removed: {
          sessions: browsers * 2,
          chunks: browsers * 4,
          blobs: browsers * 4,
          bytes: browsers * 40,
          browsers,
        },
        attempts: [{ number: 1, outcome: 'completed', errorCode: null }],
      })
      expect([
        await fingerprint(erasure, project.id, bystander),
        await fingerprint(erasure, other.id, namesake),
      ]).toEqual(before)
    })
  }

  test('a shared computer: what the second person recorded there stays', async ({
    erasure,
    project,
    db,
  }) => {
    // The second one to sign in gets a browser of its own from the server, by design.
    const first = await newBrowser(erasure, project.id)
    const second = await newBrowser(erasure, project.id)
    expect(await identify(db, project.id, first.browserIds[0]!, 'ada')).toBe('linked')
    expect(await identify(db, project.id, first.browserIds[0]!, 'bob')).toBe('linked_elsewhere')
    expect(await identify(db, project.id, second.browserIds[0]!, 'bob')).toBe('linked')
    const bob = { ...second, personId: (await findPerson(db.sql, project.id, 'bob'))!.id }
    const before = await fingerprint(erasure, project.id, bob)
    await requestErasure(erasure, project.id, 'ada')

    expect(await runNextAttempt(erasure.options)).toBe('completed')

    expect(await remains(erasure, project.id, first)).toEqual(nothing)
    expect(await fingerprint(erasure, project.id, bob)).toBe(before)
  })

  test('sessions from before the identification go too', async ({ erasure, project, db }) => {
    const browser = await newBrowser(erasure, project.id, { sessions: 3 })
    await identify(db, project.id, browser.browserIds[0]!, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, browser)).toEqual(nothing)
  })

  test('more sessions, chunks and browsers than any part is large', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 1 })
    const [browserId] = ada.browserIds
    // The parts are of 1,000 sessions, 5,000 chunks and 500 browsers.
    await db.sql`
      with session as (
        insert into sessions (project_id, browser_id)
        select ${project.id}, ${browserId} from generate_series(1, 1100)
        returning id
      )
      insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until,
        stored_at, bytes)
      select ${project.id}, id, 't', n, ${browserPrefix(project.id, browserId!)} || id || '/' || n,
        'stored', app_now(), app_now(), 1
      from session, generate_series(1, 5) n`
    await db.sql`
      with browser as (
        insert into browsers (project_id) select ${project.id} from generate_series(1, 1300)
        returning id
      )
      insert into person_browsers (project_id, browser_id, person_id)
      select ${project.id}, id, ${ada.personId} from browser`
    // These chunks have no blobs.
    await db.sql`update browsers set removal_counted = true where project_id = ${project.id}`
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const outcome = await runNextAttempt(erasure.options)
    const faults =
      await db.sql`select error_code from deletion_attempts where error_code is not null`
    expect({ outcome, faults }).toEqual({ outcome: 'completed', faults: [] })

    const [left] = await db.sql`
      select (select count(*)::int from browsers where project_id = ${project.id}) as browsers,
        (select count(*)::int from sessions where project_id = ${project.id}) as sessions,
        (select count(*)::int from chunks where project_id = ${project.id}) as chunks,
        (select count(*)::int from person_browsers where project_id = ${project.id}) as links`
    expect(left).toEqual({ browsers: 0, sessions: 0, chunks: 0, links: 0 })
    const details = await findDeletionJobDetails(db.sql, project.id, id)
    expect(details!.removed).toMatchObject({ sessions: 1_101, chunks: 5_501, browsers: 1_301 })
  })

  test('a blob without a row, as a crashed upload leaves it, is found by its prefix', async ({
    erasure,
    project,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
    const stray = `${sessionPrefix(project.id, ada.browserIds[0]!, ada.sessionIds[0]!)}t-0-${'a1'.repeat(12)}`
    await erasure.blobs.put(stray, new Uint8Array(3))
    await requestErasure(erasure, project.id, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    await expect(erasure.blobs.get(stray)).rejects.toMatchObject({ code: 'blob_missing' })
  })
})

describe('keeping the recordings', () => {
  test('the person is removed; the sessions do not change, and nothing links them to anybody', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    const bystander = await record(erasure, project.id, 'bystander')
    const before = await fingerprint(erasure, project.id, bystander)
    const { id } = await requestErasure(erasure, project.id, 'ada', true)
    // All that the erasure changes of them.
    await retireBrowsers(db.sql, project.id, ada.browserIds)
    const kept = await fingerprint(erasure, project.id, { ...ada, personId: '0' })

    expect(await runNextAttempt(erasure.options)).toBe('completed')

    expect(await remains(erasure, project.id, ada)).toEqual({
      ...nothing,
      browsers: 2,
      keys: 2,
      sessions: 4,
      chunks: 8,
      blobs: 8,
    })
    expect(await fingerprint(erasure, project.id, { ...ada, personId: '0' })).toBe(kept)
    expect(await fingerprint(erasure, project.id, bystander)).toBe(before)
    expect(await findDeletionJobDetails(db.sql, project.id, id)).toMatchObject({
      removed: { sessions: 0, chunks: 0, blobs: 0, bytes: 0, browsers: 0 },
    })

    // No row anywhere holds both an id of the recordings and one of the person or the job, and no
    // instant of the job's stands in a row of the recordings.
    const rows = await everyRow(address)
    const traces = [ada.personId, id]
    const recordings = [...ada.browserIds, ...ada.sessionIds]
    for (const row of rows) {
      const isOfRecordings = recordings.some((one) => row.includes(one))
      if (isOfRecordings) for (const trace of traces) expect(row).not.toContain(trace)
    }
    const [job] = await db.sql<Record<string, string>>`
      select created_at::text as a, started_at::text as b, completed_at::text as c
      from deletion_jobs where id = ${id}`
    for (const row of rows.filter((one) =>
      ada.browserIds.some((browser) => one.includes(browser)),
    )) {
      for (const instant of Object.values(job!)) {
        expect(row).not.toContain(instant.replace(' ', 'T').slice(0, 23))
      }
    }
    // Nor does the ledger, outside of the database.
    for await (const key of erasure.blobs.list('ledger/')) {
      const text = new TextDecoder().decode(await erasure.blobs.get(key))
      for (const one of recordings) expect(text).not.toContain(one)
    }
  })

  test('the same computer identifies again: the kept sessions are still nobody’s', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
    await requestErasure(erasure, project.id, 'ada', true)
    await runNextAttempt(erasure.options)
    expect(await identify(db, project.id, ada.browserIds[0]!, 'ada')).toBe('retired')
    const fresh = await newBrowser(erasure, project.id)
    expect(await identify(db, project.id, fresh.browserIds[0]!, 'ada')).toBe('linked')
    const links = await db.sql`
      select browser_id as id from person_browsers where project_id = ${project.id}`
    expect(links).toEqual([{ id: fresh.browserIds[0] }])
  })
})

describe('uploads under way', () => {
  test('one that is confirmed in time belongs to what is erased', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
    const place = placeOf(project.id, ada)
    const blobKey = `${sessionPrefix(project.id, place.browserId, place.sessionId)}late`
    expect(await intendChunk(db.sql, place, blobKey)).toMatchObject({ outcome: 'intended' })
    await requestErasure(erasure, project.id, 'ada')
    const attempt = runNextAttempt(erasure.options)
    await erasure.blobs.put(blobKey, new Uint8Array(7))
    expect(await confirmChunk(db.sql, { ...place, blobKey, bytes: 7 })).toBe(true)
    expect(await attempt).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    await expect(erasure.blobs.get(blobKey)).rejects.toMatchObject({ code: 'blob_missing' })
  })

  test('one that dies between put and confirm is waited for as long as it may be confirmed', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
    const place = placeOf(project.id, ada)
    const blobKey = `${sessionPrefix(project.id, place.browserId, place.sessionId)}late`
    await intendChunk(db.sql, place, blobKey)
    await erasure.blobs.put(blobKey, new Uint8Array(7))
    await requestErasure(erasure, project.id, 'ada')
    let looks = 0
    const looked = Promise.withResolvers<void>()
    const counting = overSql(db.sql, (run, what) => {
      if (what.includes("c.state = 'intent'") && ++looks > 3) looked.resolve()
      return run()
    })
    const attempt = runNextAttempt({ ...erasure.options, db: { ...db, sql: counting } })
    await looked.promise
    expect(await remains(erasure, project.id, ada)).toMatchObject({ keys: 1, chunks: 3 })
    // Its time is over: it is dead, and a late confirmation finds that out.
    await clock.forward(0)
    await db.sql`update deletion_jobs set lease_until = later(lease_until, 120000)`
    await clock.forward(60)
    expect(await attempt).toBe('completed')
    expect(await confirmChunk(db.sql, { ...place, blobKey, bytes: 7 })).toBe(false)
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    await clock.close()
  })

  test('one that was frozen past the end of the job stores nothing, and says so', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
    const inPut = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const frozen = overBlobs(erasure.blobs, async (run, what) => {
      if (what === 'put') {
        inPut.resolve()
        await goOn.promise
      }
      return run()
    })
    const browserKeys = { sql: db.sql, masterKeys: erasure.masterKeys }
    const upload = storeChunk({ db, blobs: frozen, browserKeys }, placeOf(project.id, ada), {
      gzip: Buffer.from('events'),
      pages: 0,
    })
    await inPut.promise
    await requestErasure(erasure, project.id, 'ada')
    await clock.forward(61)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    goOn.resolve()
    expect(await upload).toBe('refused')
    expect(await erasure.blobs.isEmpty(browserPrefix(project.id, ada.browserIds[0]!))).toBe(true)
    expect(await db.sql`select from chunks where project_id = ${project.id}`).toEqual([])
    await clock.close()
  })

  test('days later the browser’s buffered chunk, session and identify are refused', async ({
    erasure,
    project,
    db,
  }) => {
    for (const keepRecordings of [false, true]) {
      const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
      await requestErasure(erasure, project.id, 'ada', keepRecordings)
      await runNextAttempt(erasure.options)
      const place = { ...placeOf(project.id, ada), number: 9 }
      expect(await intendChunk(db.sql, place, `blobs/1/${randomUUID()}`)).toMatchObject({
        outcome: 'refused',
      })
      expect(await identify(db, project.id, place.browserId, 'ada')).toBe('retired')
      expect(await findPerson(db.sql, project.id, 'ada')).toBeUndefined()
    }
  })
})

describe('an attempt fails rather than complete', () => {
  const cases = {
    keys_left: /delete from browser_keys/,
    rows_left: /delete from sessions/,
  }
  for (const [code, lost] of Object.entries(cases)) {
    test(`when what was deleted is still there: ${code}`, async ({ erasure, project, db }) => {
      const ada = await record(erasure, project.id, 'ada', { chunks: 0 })
      const { id } = await requestErasure(erasure, project.id, 'ada')
      // Statements that succeed without having been run.
      const lying = overSql(db.sql, (run, what) => (lost.test(what) ? ([] as never) : run()))
      const lyingDb = {
        ...db,
        sql: lying,
        begin: (work: Parameters<typeof db.begin>[0]) =>
          db.begin((tx) =>
            work(overSql(tx, (run, what) => (lost.test(what) ? ([] as never) : run()))),
          ),
      }
      const options = { ...erasure.options, db: lyingDb as typeof db, keySql: lying }
      expect(await runNextAttempt(options)).toBe('failed')
      expect(await findDeletionJobDetails(db.sql, project.id, id)).toMatchObject({
        attempts: [{ step: 'verify', errorCode: code, outcome: 'failed' }],
      })
      expect(await remains(erasure, project.id, ada)).toMatchObject({ persons: 1, links: 2 })
    })
  }

  test('when blobs are still there: blobs_left', async ({ erasure, project, db }) => {
    await record(erasure, project.id, 'ada')
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const blobs = overBlobs(erasure.blobs, (run, what) =>
      what === 'deletePrefix' ? (Promise.resolve({ blobs: 2, bytes: 20 }) as never) : run(),
    )
    expect(await runNextAttempt({ ...erasure.options, blobs })).toBe('failed')
    expect(await findDeletionJobDetails(db.sql, project.id, id)).toMatchObject({
      attempts: [{ step: 'verify', errorCode: 'blobs_left' }],
    })
  })

  test('when the blob store deletes a part and then fails; the next attempt does the rest', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 6 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const blobs = {
      ...erasure.blobs,
      async deletePrefix(_: string, options?: Parameters<typeof erasure.blobs.deletePrefix>[1]) {
        await erasure.blobs.delete(ada.blobKeys.slice(0, 3))
        options?.onProgress?.({ blobs: 3, bytes: 30 })
        throw new BlobFault('delete_refused', 'some of them')
      },
    }
    expect(await runNextAttempt({ ...erasure.options, blobs })).toBe('failed')
    // The rows are the way to what is left, so they are all there.
    expect(await remains(erasure, project.id, ada)).toMatchObject({ blobs: 3, chunks: 6, keys: 0 })
    await clock.forward(30)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect((await findDeletionJobDetails(db.sql, project.id, id))!.attempts).toMatchObject([
      { step: 'delete_blobs', errorCode: 'blobs_delete_refused' },
      { outcome: 'completed' },
    ])
    await clock.close()
  })
})

test('after the erasure the same externalId is a new person that shares nothing with the old one', async ({
  erasure,
  project,
  db,
}) => {
  const ada = await record(erasure, project.id, 'ada', { properties: { name: 'Ada', plan: 'pro' } })
  await requestErasure(erasure, project.id, 'ada')
  await runNextAttempt(erasure.options)
  const written = await writePerson(db.sql, project.id, 'ada', { plan: 'free' }, true)
  expect(written.outcome).toBe('created')
  const person = (await findPerson(db.sql, project.id, 'ada'))!
  expect(person.id).not.toBe(ada.personId)
  expect(JSON.parse(String(person.properties))).toEqual({ plan: 'free' })
})

test('neither the log nor an error record holds anything of the person', async ({
  erasure,
  project,
  db,
}) => {
  const canary = `canary-${randomUUID()}`
  await record(erasure, project.id, canary, { properties: { name: canary, email: canary } })
  await requestErasure(erasure, project.id, canary)
  // A fault whose words are full of what PostgreSQL tells: values, rows, statements.
  const failing = overSql(db.sql, (run, what) =>
    what.includes('from browser_keys')
      ? Promise.reject(
          Object.assign(new Error(`Key (external_id)=(${canary})`), {
            code: '23505',
            detail: canary,
          }),
        )
      : run(),
  )
  await runNextAttempt({ ...erasure.options, keySql: failing })
  expect(erasure.logged()).toContain('database_23505')
  expect(erasure.logged()).not.toContain('canary')
  const attempts = await db.sql`select row_to_json(a)::text as row from deletion_attempts a`
  expect(JSON.stringify(attempts)).not.toContain('canary')
})

function placeOf(
  projectId: number,
  { browserIds, sessionIds }: Awaited<ReturnType<typeof record>>,
) {
  return {
    projectId,
    browserId: browserIds[0]!,
    sessionId: sessionIds[0]!,
    tab: 'other',
    number: 0,
  }
}

/** Every row of every table, as JSON. */
async function everyRow(address: DbAddress): Promise<string[]> {
  const { client, end } = await connectOne(address)
  const tables = await client.query(`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`)
  const rows: string[] = []
  for (const { name } of tables.rows) {
    const answer = await client.query(`select row_to_json(t)::text as row from ${name} t`)
    rows.push(...answer.rows.map(({ row }) => row))
  }
  await end()
  expect(tables.rows.length).toBeGreaterThan(10)
  return rows
}
