import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { type AttemptOptions, runAll, runNextAttempt } from '../src/erasure/attempt.ts'
import { reapLostAttempts } from '../src/erasure/attempts.ts'
import { claimJobs } from '../src/erasure/claim.ts'
import { readLedgerEntry } from '../src/erasure/ledger.ts'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { findReceipt, verifyReceipt } from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/store.ts'
import { findPerson, writePerson } from '../src/persons/store.ts'
import { identify } from '../src/recordings/ingest-store.ts'
import { connect, connectOne, type DbAddress } from '../src/sql.ts'
import { Crash, type Intercept, overBlobs, overDb } from './erasure-faults.ts'
import {
  fingerprint,
  newBrowser,
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'

/**
 * Copies the database as it is now, like a backup; `restore` gives the service of that backup, with
 * the blob store as it is then.
 */
async function backup(address: DbAddress, erasure: TestErasure) {
  const database = `lethe_${randomUUID().replaceAll('-', '')}`
  const { client, sql, end } = await connectOne({ ...address, database: 'postgres' })
  for (;;) {
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${address.database}`
    const isCopied = await client
      .query(`create database ${database} template ${address.database}`)
      .then(
        () => true,
        (error) => {
          // Somebody is still connected.
          if (error.code !== '55006') throw error
          return false
        },
      )
    if (isCopied) break
  }
  const db = connect({ connection: { ...address, database } })
  onTestFinished(async () => {
    await db.end()
    await client.query(`drop database ${database} with (force)`)
    await end()
  })
  const options: AttemptOptions = { ...erasure.options, db, keySql: db.sql }
  return { restore: (): TestErasure => ({ ...erasure, options }) }
}

test('a database that was not restored has nothing to erase again', async ({
  erasure,
  project,
}) => {
  expect(await reapplyLedger(erasure.options)).toEqual({ entries: 0, persons: 0, browsers: 0 })
  for (const [externalId, keep] of [
    ['ada', false],
    ['eve', true],
  ] as const) {
    await record(erasure, project.id, externalId)
    await requestErasure(erasure, project.id, externalId, keep)
  }
  const bob = await record(erasure, project.id, 'bob')
  await runAll(erasure.options)
  const before = await fingerprint(erasure, project.id, bob)
  expect(await reapplyLedger(erasure.options)).toEqual({ entries: 2, persons: 0, browsers: 0 })
  expect(await fingerprint(erasure, project.id, bob)).toBe(before)
})

describe('a backup that brings a person back', () => {
  for (const keepRecordings of [false, true]) {
    test(`from before the DELETE: it is erased again under the same job (recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
      erasure,
      project,
      address,
    }) => {
      const ada = await record(erasure, project.id, 'ada')
      const bystander = await record(erasure, project.id, 'bystander')
      const { restore } = await backup(address, erasure)
      const job = await requestErasure(erasure, project.id, 'ada', keepRecordings)
      expect(await runNextAttempt(erasure.options)).toBe('completed')

      const restored = restore()
      const { sql } = restored.options.db
      const before = await fingerprint(restored, project.id, bystander)
      expect(await findPerson(sql, project.id, 'ada')).toBeDefined()
      expect(await reapplyLedger(restored.options)).toEqual({
        entries: 1,
        persons: 1,
        browsers: 0,
      })

      const left = await remains(restored, project.id, ada)
      if (keepRecordings) {
        expect(left).toMatchObject({ persons: 0, searches: 0, links: 0, browsers: 2, blobs: 8 })
        const unretired = await sql`
          select from browsers where id = any(${ada.browserIds}::uuid[]) and not retired`
        expect(unretired).toEqual([])
      } else expect(left).toEqual(nothing)
      expect(await fingerprint(restored, project.id, bystander)).toBe(before)
      expect(await findDeletionJob(sql, project.id, job.id)).toMatchObject({
        ...job,
        status: 'completed',
        startedAt: expect.any(String),
        completedAt: expect.any(String),
      })
      expect(await findDeletionJobDetails(sql, project.id, job.id)).toMatchObject({
        requestedBy: 'ledger',
      })
      const receipt = (await findReceipt(sql, project.id, job.id))!
      expect(await verifyReceipt(receipt, await publicKeys(sql))).toMatchObject({ jobId: job.id })
      expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 0, browsers: 0 })
    })
  }

  test('from when the job was pending, running, or a step from its end', async ({
    erasure,
    project,
    address,
    db,
  }) => {
    const pending = await record(erasure, project.id, 'pending')
    const running = await record(erasure, project.id, 'running')
    const atTheEnd = await record(erasure, project.id, 'at-the-end')
    const jobs: string[] = []
    jobs.push((await requestErasure(erasure, project.id, 'running')).id)
    await claimJobs(db.sql, 1)
    jobs.push((await requestErasure(erasure, project.id, 'at-the-end')).id)
    // Dies in its last transaction: the ledger has the entry, the person is still there.
    let isDead = false
    const dying: Intercept = (run, what) => {
      isDead ||= what.includes('delete from persons')
      return isDead ? Promise.reject(new Crash()) : run()
    }
    const attempt = runNextAttempt({ ...erasure.options, db: overDb(db, dying) })
    await expect(attempt).rejects.toThrow(Crash)
    expect(await readLedgerEntry(erasure.blobs, project.id, jobs[1]!)).toBeDefined()
    jobs.push((await requestErasure(erasure, project.id, 'pending')).id)
    const { restore } = await backup(address, erasure)

    const clock = await openClock(address)
    await clock.forward(31)
    await reapLostAttempts(db.sql, [0, 0, 0, 0])
    await runAll(erasure.options)
    await clock.close()

    const restored = restore()
    expect(await reapplyLedger(restored.options)).toMatchObject({ entries: 3, persons: 3 })
    for (const one of [pending, running, atTheEnd]) {
      expect(await remains(restored, project.id, one)).toEqual(nothing)
    }
    const { sql } = restored.options.db
    for (const id of jobs) {
      expect(await findDeletionJob(sql, project.id, id)).toMatchObject({ status: 'completed' })
    }
    expect(await sql`select distinct attempts from deletion_jobs`).toEqual([{ attempts: 1 }])
  })

  test('from before its browsers were identified: they are erased without it', async ({
    erasure,
    project,
    address,
    db,
  }) => {
    const browser = await newBrowser(erasure, project.id)
    const bystander = await newBrowser(erasure, project.id)
    const { restore } = await backup(address, erasure)
    await identify(db, project.id, browser.browserIds[0]!, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)

    const restored = restore()
    const before = await fingerprint(restored, project.id, bystander)
    expect(await remains(restored, project.id, browser)).toMatchObject({ sessions: 2, keys: 1 })
    expect(await reapplyLedger(restored.options)).toEqual({ entries: 1, persons: 0, browsers: 1 })
    expect(await remains(restored, project.id, browser)).toEqual(nothing)
    expect(await fingerprint(restored, project.id, bystander)).toBe(before)
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 0, browsers: 0 })
  })

  test('from when an earlier job with kept recordings was open: what the later one removed goes too', async ({
    erasure,
    project,
    address,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada', true)
    const { restore } = await backup(address, erasure)
    const clock = await openClock(address)
    const down = overBlobs(erasure.blobs, () => Promise.reject(new BlobFault('timed_out', '')))
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect(await runNextAttempt({ ...erasure.options, blobs: down })).toBe('failed')
      await clock.forward(240)
    }
    await requestErasure(erasure, project.id, 'ada', false)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    await clock.close()
    expect(await db.sql`select from persons`).toEqual([])

    const restored = restore()
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 1, browsers: 2 })
    expect(await remains(restored, project.id, ada)).toEqual(nothing)
  })

  test('with two processes that start at once: both end, and it is erased', async ({
    erasure,
    project,
    address,
  }) => {
    const persons = []
    for (let i = 0; i < 5; i++) persons.push(await record(erasure, project.id, `p${i}`))
    const { restore } = await backup(address, erasure)
    for (let i = 0; i < 5; i++) await requestErasure(erasure, project.id, `p${i}`)
    await runAll(erasure.options)

    const restored = restore()
    await Promise.all([reapplyLedger(restored.options), reapplyLedger(restored.options)])
    for (const one of persons) {
      expect(await remains(restored, project.id, one)).toEqual(nothing)
    }
    const receipts = await restored.options.db.sql`select number::int from receipts order by 1`
    expect(receipts).toEqual([1, 2, 3, 4, 5].map((number) => ({ number })))
  })

  test('beside a process that stands still with their rows: the start waits until it has let go', async ({
    erasure,
    project,
    address,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    const { restore } = await backup(address, erasure)
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)
    const restored = restore()
    const { sql } = restored.options.db
    const [{ database } = {}] = await sql<{ database: string }>`
      select current_database() as database`
    const { client, end } = await connectOne({ ...address, database: database as string })
    await client.query('begin')
    await client.query('select from persons for update')
    let refused = 0
    const db = overDb(restored.options.db, async (run, what) => {
      try {
        return await run()
      } catch (error) {
        if (what === 'commit' && (error as { code?: string }).code === '55P03') {
          refused += 1
          if (refused === 2) await end()
        }
        throw error
      }
    })
    expect(await reapplyLedger({ ...restored.options, db })).toMatchObject({ persons: 1 })
    expect(refused).toBe(2)
    expect(await remains(restored, project.id, ada)).toEqual(nothing)
  })

  test('and cannot be erased again now: the start is refused, until it can', async ({
    erasure,
    project,
    address,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    const { restore } = await backup(address, erasure)
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)
    const restored = restore()
    const down = overBlobs(erasure.blobs, (run, what) =>
      what === 'deletePrefix' ? Promise.reject(new BlobFault('unreachable', 'ada')) : run(),
    )
    for (let start = 1; start <= 6; start++) {
      const refused = reapplyLedger({ ...restored.options, blobs: down })
      await expect(refused).rejects.toMatchObject({ name: 'ReapplyFailed' })
      await refused.catch(({ message }) => expect(message).not.toContain('ada'))
    }
    expect(await remains(restored, project.id, ada)).toMatchObject({ persons: 1 })
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 1 })
    expect(await remains(restored, project.id, ada)).toEqual(nothing)
  })
})

test('a person who came back by the application’s own doing is left alone', async ({
  erasure,
  project,
  db,
}) => {
  await record(erasure, project.id, 'ada')
  await requestErasure(erasure, project.id, 'ada')
  await runAll(erasure.options)
  const again = await record(erasure, project.id, 'ada')
  const before = await fingerprint(erasure, project.id, again)
  expect(await reapplyLedger(erasure.options)).toEqual({ entries: 1, persons: 0, browsers: 0 })
  expect(await fingerprint(erasure, project.id, again)).toBe(before)
  expect((await writePerson(db.sql, project.id, 'ada', { a: 1 }, false)).outcome).toBe('updated')
})

test('a person whose erasure failed at its very end is in use, and stays so after a restart', async ({
  erasure,
  project,
  db,
  address,
}) => {
  const clock = await openClock(address)
  await record(erasure, project.id, 'ada')
  const { id } = await requestErasure(erasure, project.id, 'ada')
  const failing = {
    ...db,
    begin: ((work: Parameters<typeof db.begin>[0]) =>
      db.begin(async (tx) => {
        const result = await work(tx)
        const [person] = await tx`select from persons where project_id = ${project.id}`
        if (!person) throw new Error('before the commit')
        return result
      })) as typeof db.begin,
  }
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect(await runNextAttempt({ ...erasure.options, db: failing })).toBe('failed')
    await clock.forward(240)
  }
  expect(await readLedgerEntry(erasure.blobs, project.id, id)).toBeDefined()
  expect(await reapplyLedger(erasure.options)).toMatchObject({ persons: 0 })
  expect((await writePerson(db.sql, project.id, 'ada', { a: 1 }, false)).outcome).toBe('updated')
  await clock.close()
})

test('an entry holds ids and instants, no personal data; of kept recordings not even ids', async ({
  erasure,
  project,
}) => {
  const externalId = 'ada@example.com'
  const ada = await record(erasure, project.id, externalId)
  const { id, createdAt } = await requestErasure(erasure, project.id, externalId)
  const eve = await record(erasure, project.id, 'eve')
  const kept = await requestErasure(erasure, project.id, 'eve', true)
  await runAll(erasure.options)
  const entry = (await readLedgerEntry(erasure.blobs, project.id, id))!
  expect({ ...entry, browserIds: [...entry.browserIds].sort() }).toEqual({
    version: 1,
    jobId: id,
    projectId: project.id,
    personId: ada.personId,
    keepRecordings: false,
    createdAt,
    browserIds: [...ada.browserIds].sort(),
  })
  expect(await readLedgerEntry(erasure.blobs, project.id, kept.id)).toMatchObject({
    personId: eve.personId,
    keepRecordings: true,
    browserIds: [],
  })
})

test('an attempt that follows one that wrote the entry keeps the browsers it named', async ({
  erasure,
  project,
  address,
  db,
}) => {
  const clock = await openClock(address)
  const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 0 })
  await db.sql`
    with browser as (
      insert into browsers (project_id) select ${project.id} from generate_series(1, 700)
      returning id
    )
    insert into person_browsers (project_id, browser_id, person_id)
    select ${project.id}, id, ${ada.personId} from browser`
  const { id } = await requestErasure(erasure, project.id, 'ada')
  // Fails when some of the browsers are gone already.
  const failing = {
    ...db,
    begin: ((work: Parameters<typeof db.begin>[0]) =>
      db.begin(async (tx) => {
        const result = await work(tx)
        const [person] = await tx`select from persons where project_id = ${project.id}`
        if (!person) throw new Error('before the commit')
        return result
      })) as typeof db.begin,
  }
  expect(await runNextAttempt({ ...erasure.options, db: failing })).toBe('failed')
  const [left] = await db.sql`select count(*)::int as n from browsers`
  expect(left).toEqual({ n: 201 })
  await clock.forward(30)
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  expect((await readLedgerEntry(erasure.blobs, project.id, id))!.browserIds).toHaveLength(701)
  await clock.close()
})
