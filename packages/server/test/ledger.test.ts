import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { CompactSign } from 'jose'
import { test as base, describe, expect } from 'vitest'
import { BlobFault, blobBytesMaximum } from '../src/blobs/blobs.ts'
import type { MasterKeys } from '../src/blobs/master-keys.ts'
import { type AttemptOptions, runNextAttempt } from '../src/erasure/attempt.ts'
import { claimJobs, reapLostAttempts } from '../src/erasure/job-leases.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import {
  deriveLedgerKeys,
  type LedgerEntry,
  ledgerKey,
  listLedger,
  readLedgerEntry,
} from '../src/erasure/ledger.ts'
import { signLedgerAgain } from '../src/erasure/ledger-rotation.ts'
import { readLedgerHealth } from '../src/erasure/ledger-store.ts'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { findReceipt, verifyReceipt } from '../src/erasure/receipts.ts'
import { openSigner, publicKeys } from '../src/erasure/signing-keys.ts'
import { enterWithdrawals } from '../src/erasure/withdrawals.ts'
import { migrate } from '../src/migrate.ts'
import { findPerson, writePerson } from '../src/persons/store.ts'
import { countBrowserKeys, destroyBrowserKeys } from '../src/recordings/browser-keys.ts'
import { discardBrowser, identify } from '../src/recordings/identify.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { Crash, type Intercept, overBlobs, overDb } from './erasure-faults.ts'
import {
  fingerprint,
  newBrowser,
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  runAll,
  type TestErasure,
  withErasure,
} from './erasure-fixtures.ts'
import { newProject, type TestProject, withDatabase } from './fixtures.ts'

/** Copies the database as it is now, like a backup. */
type Backup = () => Promise<{
  /** Gives the service of that backup, with the blob store as it is then. */
  restore(): TestErasure
}>

/**
 * Each test has a database of its own: a start waits for two seconds wherever it finds something,
 * so the tests that do run at the same time.
 */
const test = base.extend<{
  address: DbAddress
  db: Db
  project: TestProject
  erasure: TestErasure
  backup: Backup
}>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  address: async ({}, use) => withDatabase(use),
  db: async ({ address }, use) => {
    const db = connect({ connection: address })
    await use(db)
    await db.end()
  },
  project: async ({ db }, use) => use(await newProject(db)),
  erasure: async ({ db, address }, use) => {
    await migrate(address, 'keys')
    await withErasure(db, use)
  },
  backup: async ({ address, erasure, onTestFinished }, use) => {
    await use(async () => {
      const { database, drop } = await copyOf(address)
      const db = connect({ connection: { ...address, database } })
      onTestFinished(async () => {
        await db.end()
        await drop()
      })
      const options: AttemptOptions = { ...erasure.options, db, keySql: db.sql }
      return { restore: () => ({ ...erasure, options }) }
    })
  },
})

async function copyOf(address: DbAddress) {
  const database = `lethe_${randomUUID().replaceAll('-', '')}`
  const { client, sql, end } = await connectOne({ ...address, database: 'postgres' })
  for (;;) {
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${address.database}`
    const isCopied = await client
      .query(`create database ${database} template ${address.database} strategy file_copy`)
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
  const drop = async () => {
    await client.query(`drop database ${database} with (force)`)
    await end()
  }
  return { database, drop }
}

/** The entry of a job, wherever it stands; undefined where there is no genuine one. */
async function entryOf(erasure: TestErasure, jobId: string): Promise<LedgerEntry | undefined> {
  for await (const { places } of listLedger(erasure.blobs, 1, 1)) {
    const place = places.find((one) => one.jobId === jobId && one.part === 0)
    if (!place) continue
    const entry = await readLedgerEntry(erasure.blobs, erasure.options.signer.ledger, place)
    if (typeof entry === 'object') return entry
  }
  return undefined
}

test('a database that was not restored has nothing to erase again', async ({
  erasure,
  project,
}) => {
  expect(await reapplyLedger(erasure.options)).toMatchObject({
    entries: 0,
    persons: 0,
    browsers: 0,
  })
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
  expect(await reapplyLedger(erasure.options)).toMatchObject({
    entries: 2,
    persons: 0,
    browsers: 0,
  })
  expect(await fingerprint(erasure, project.id, bob)).toBe(before)
})

describe('a backup that brings a person back', { concurrent: true }, () => {
  for (const keepRecordings of [false, true]) {
    test(`from before the DELETE: it is erased again under the same job (recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
      erasure,
      project,
      backup,
    }) => {
      const ada = await record(erasure, project.id, 'ada')
      const bystander = await record(erasure, project.id, 'bystander')
      const { restore } = await backup()
      const job = await requestErasure(erasure, project.id, 'ada', keepRecordings)
      expect(await runNextAttempt(erasure.options)).toBe('completed')

      const restored = restore()
      const { sql } = restored.options.db
      const before = await fingerprint(restored, project.id, bystander)
      expect(await findPerson(sql, project.id, 'ada')).toBeDefined()
      expect(await reapplyLedger(restored.options)).toMatchObject({
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

  test('from when an upload of theirs was under way: nobody waits for its end', async ({
    erasure,
    project,
    backup,
  }) => {
    const { db } = erasure.options
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 1 })
    await db.sql`
      insert into chunks (project_id, session_id, tab, number, blob_key, intent_until)
      values (${project.id}, ${ada.sessionIds[0]}, 'tab', 99, 'under-way',
        app_now() + interval '59 seconds')`
    const { restore } = await backup()
    await db.sql`delete from chunks where blob_key = 'under-way'`
    await requestErasure(erasure, project.id, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('completed')

    const restored = restore()
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 1 })
    expect(await remains(restored, project.id, ada)).toEqual(nothing)
    const [{ isEarly } = { isEarly: false }] = await restored.options.db.sql<{ isEarly: boolean }>`
      select completed_at < created_at + interval '50 seconds' as "isEarly"
      from deletion_jobs where project_id = ${project.id}`
    expect(isEarly).toBe(true)
  })

  test('from when the job was pending, running, or a step from its end', async ({
    erasure,
    project,
    address,
    backup,
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
    expect(await entryOf(erasure, jobs[1]!)).toBeDefined()
    jobs.push((await requestErasure(erasure, project.id, 'pending')).id)
    const { restore } = await backup()

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
    backup,
    db,
  }) => {
    const browser = await newBrowser(erasure, project.id)
    const bystander = await newBrowser(erasure, project.id)
    const { restore } = await backup()
    await identify(db, project.id, browser.browserIds[0]!, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)

    const restored = restore()
    const before = await fingerprint(restored, project.id, bystander)
    expect(await remains(restored, project.id, browser)).toMatchObject({ sessions: 2, keys: 1 })
    expect(await reapplyLedger(restored.options)).toMatchObject({
      entries: 1,
      persons: 0,
      browsers: 1,
    })
    expect(await remains(restored, project.id, browser)).toEqual(nothing)
    expect(await fingerprint(restored, project.id, bystander)).toBe(before)
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 0, browsers: 0 })
  })

  test('from before a visitor withdrew: that browser is erased again, and no other of the person', async ({
    erasure,
    project,
    backup,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 2 })
    const [withdrawn, kept] = ada.browserIds as [string, string]
    const { restore } = await backup()
    await db.begin((tx) => discardBrowser(tx, project.id, withdrawn))
    await destroyBrowserKeys(db.sql, project.id, [withdrawn])
    expect(await enterWithdrawals(erasure.options)).toBe(1)
    // Asked again, it is named once.
    await db.begin((tx) => discardBrowser(tx, project.id, withdrawn))
    expect(await enterWithdrawals(erasure.options)).toBe(0)

    const restored = restore()
    const { sql } = restored.options.db
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 0, browsers: 1 })
    expect(await countBrowserKeys(sql, project.id, ada.browserIds)).toBe(1)
    expect(await sql`select id from browsers where project_id = ${project.id}`).toEqual([
      { id: kept },
    ])
    expect(
      (await Array.fromAsync(erasure.blobs.list('blobs/'))).filter((key) =>
        key.includes(withdrawn),
      ),
    ).toEqual([])
    expect(await remains(restored, project.id, { ...ada, browserIds: [kept] })).toMatchObject({
      persons: 1,
      browsers: 1,
    })
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 0, browsers: 0 })
  })

  test('from amid the entry of a withdrawal: it is written as it was decided on', async ({
    erasure,
    project,
    backup,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
    await db.begin((tx) => discardBrowser(tx, project.id, ada.browserIds[0]!))
    const down = overBlobs(erasure.blobs, (run, what) =>
      what === 'put' ? Promise.reject(new BlobFault('unreachable', '')) : run(),
    )
    await expect(enterWithdrawals({ ...erasure.options, blobs: down })).rejects.toThrow()
    const { restore } = await backup()
    expect(await enterWithdrawals(erasure.options)).toBe(1)
    const restored = restore()
    expect(await reapplyLedger(restored.options)).toMatchObject({ browsers: 1, refused: 0 })
    expect(await enterWithdrawals(restored.options)).toBe(1)
    expect(await reapplyLedger(restored.options)).toMatchObject({ browsers: 0, missing: 0 })
  })

  test('from when an earlier job with kept recordings was open: what the later one removed goes too', async ({
    erasure,
    project,
    address,
    backup,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada', true)
    const { restore } = await backup()
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
    backup,
  }) => {
    const persons = []
    for (let i = 0; i < 5; i++) persons.push(await record(erasure, project.id, `p${i}`))
    const { restore } = await backup()
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

  test('next to a frozen process that holds locks on their rows: the start waits until it releases them', async ({
    erasure,
    project,
    address,
    backup,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    const { restore } = await backup()
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

  test('who cannot be erased again now: the start fails until it is possible', async ({
    erasure,
    project,
    backup,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    const { restore } = await backup()
    await requestErasure(erasure, project.id, 'ada')
    await runAll(erasure.options)
    const restored = restore()
    const down = overBlobs(erasure.blobs, (run, what) =>
      what === 'deletePrefix' ? Promise.reject(new BlobFault('unreachable', 'ada')) : run(),
    )
    for (let start = 1; start <= 6; start++) {
      const refused = reapplyLedger({ ...restored.options, blobs: down })
      await expect(refused).rejects.toMatchObject({ name: 'ReapplyFailed' })
      await refused.catch(({ message }) => expect(message).not.toMatch(/\bada\b/))
    }
    expect(await remains(restored, project.id, ada)).toMatchObject({ persons: 1 })
    expect(await reapplyLedger(restored.options)).toMatchObject({ persons: 1 })
    expect(await remains(restored, project.id, ada)).toEqual(nothing)
  })
})

test('a person whom the application created again is left alone', async ({
  erasure,
  project,
  db,
}) => {
  await record(erasure, project.id, 'ada')
  await requestErasure(erasure, project.id, 'ada')
  await runAll(erasure.options)
  const again = await record(erasure, project.id, 'ada')
  const before = await fingerprint(erasure, project.id, again)
  expect(await reapplyLedger(erasure.options)).toMatchObject({
    entries: 1,
    persons: 0,
    browsers: 0,
  })
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
  expect(await entryOf(erasure, id)).toBeDefined()
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
  const entry = (await entryOf(erasure, id))!
  expect({ ...entry, browserIds: [...entry.browserIds].sort() }).toEqual({
    version: 2,
    number: expect.any(Number),
    part: 0,
    jobId: id,
    projectId: project.id,
    personId: ada.personId,
    keepRecordings: false,
    createdAt,
    browserIds: [...ada.browserIds].sort(),
  })
  expect(await entryOf(erasure, kept.id)).toMatchObject({
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
  expect((await entryOf(erasure, id))!.browserIds).toHaveLength(701)
  await clock.close()
})

describe('who can write to the blob store', { concurrent: true }, () => {
  /** Ada is erased and Bob is there; `place` is where Ada's entry stands. */
  async function erased(erasure: TestErasure, projectId: number) {
    await record(erasure, projectId, 'ada')
    const bob = await record(erasure, projectId, 'bob')
    const before = await fingerprint(erasure, projectId, bob)
    const { id } = await requestErasure(erasure, projectId, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    const entry = (await entryOf(erasure, id))!
    return { bob, before, entry, key: ledgerKey(entry) }
  }

  const forgeries: Record<string, (entry: LedgerEntry, master: MasterKeys) => Promise<string>> = {
    'no JSON at all': async () => 'erase them all',
    'more bytes than a blob can have': async () => 'x'.repeat(blobBytesMaximum + 1),
    'an entry as the unsigned ones were': async (entry) => JSON.stringify(entry),
    'an entry under a key of their own': async (entry) => {
      const key = createSecretKey(randomBytes(32))
      return new CompactSign(Buffer.from(JSON.stringify({ key: ledgerKey(entry), ...entry })))
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .sign(key)
    },
    'an entry without a MAC': async (entry) => {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      return `${part({ alg: 'none' })}.${part({ key: ledgerKey(entry), ...entry })}.`
    },
    'an entry of another installation under the same master key': async (entry, master) => {
      const keys = deriveLedgerKeys(master, randomUUID())
      return new CompactSign(Buffer.from(JSON.stringify({ key: ledgerKey(entry), ...entry })))
        .setProtectedHeader({ alg: 'HS256', kid: keys.current })
        .sign(keys.byId.get(keys.current)!)
    },
  }

  test('erases nobody, neither with entries they made nor with genuine ones they moved; all are counted and stop no start', async ({
    erasure,
    project,
  }) => {
    const { bob, before, entry, key } = await erased(erasure, project.id)
    const { number } = entry
    for (const [nth, [what, forge]] of Object.entries(forgeries).entries()) {
      const forged: LedgerEntry = {
        ...entry,
        number: number + 1 + nth,
        jobId: randomUUID(),
        personId: bob.personId,
        browserIds: bob.browserIds,
      }
      const bytes = Buffer.from(await forge(forged, erasure.masterKeys))
      await erasure.blobs.put(ledgerKey(forged), bytes)
      const read = await readLedgerEntry(erasure.blobs, erasure.options.signer.ledger, forged)
      expect(read, what).toBe('refused')
    }
    const genuine = await erasure.blobs.get(key)
    const moved = [
      { ...entry, number: number + 21 },
      { ...entry, number: number + 22, jobId: randomUUID() },
      { ...entry, number: number + 23, projectId: entry.projectId + 1 },
      { ...entry, number: number + 24, part: 3 },
    ].map(ledgerKey)
    const group = key.slice(0, key.lastIndexOf('/') + 1)
    const withoutId = ['-'.repeat(36), '0'.repeat(36)].map(
      (id) => `${group}7-${project.id}-${id}.jws`,
    )
    const names = [...moved, key.replace('.jws', '.copy'), ...withoutId]
    for (const name of names) await erasure.blobs.put(name, genuine)
    const refused = Object.keys(forgeries).length + names.length
    expect(await reapplyLedger(erasure.options)).toMatchObject({
      ...{ persons: 0, browsers: 0, missing: 0 },
      refused,
    })
    expect(await fingerprint(erasure, project.id, bob)).toBe(before)
    expect(await readLedgerHealth(erasure.options.db.sql)).toMatchObject({ refused })
    expect(erasure.logged()).toContain('ledger.refused')
  })

  test('erases nobody by putting back an entry whose person came back since', async ({
    erasure,
    project,
  }) => {
    const { entry, key } = await erased(erasure, project.id)
    const bytes = await erasure.blobs.get(key)
    await erasure.blobs.delete([key])
    const again = await record(erasure, project.id, 'ada')
    const before = await fingerprint(erasure, project.id, again)
    await erasure.blobs.put(key, bytes)
    expect(await reapplyLedger(erasure.options)).toMatchObject({ persons: 0, refused: 0 })
    expect(await fingerprint(erasure, project.id, again)).toBe(before)
    expect(entry.personId).not.toBe(again.personId)
  })

  test('a removed entry is detected, and a removed ledger stops the start until the operator gives it up', async ({
    erasure,
    project,
  }) => {
    for (const name of ['ada', 'eve', 'kim']) {
      await record(erasure, project.id, name)
      await requestErasure(erasure, project.id, name)
      expect(await runNextAttempt(erasure.options)).toBe('completed')
    }
    const keys: string[] = []
    for await (const key of erasure.blobs.list('ledger/')) keys.push(key)
    const numberOf = (key: string) => Number(/\/(\d+)-/.exec(key)?.[1])
    keys.sort((one, other) => numberOf(one) - numberOf(other))
    await erasure.blobs.delete([keys[1]!])
    expect(await reapplyLedger(erasure.options)).toMatchObject({ missing: 1, persons: 0 })
    expect(await readLedgerHealth(erasure.options.db.sql)).toMatchObject({ missing: 1 })

    await erasure.blobs.delete(keys)
    await expect(reapplyLedger(erasure.options)).rejects.toMatchObject({ name: 'LedgerMissing' })
    const terms = { withoutLedger: true }
    expect(await reapplyLedger(erasure.options, terms)).toMatchObject({ persons: 0, missing: 0 })
    expect(await reapplyLedger(erasure.options)).toMatchObject({ persons: 0, missing: 0 })
  })
})

test('entries stay genuine while the master key they were signed under is listed', {
  concurrent: true,
}, async ({ erasure, project, backup }) => {
  const ada = await record(erasure, project.id, 'ada')
  const { restore } = await backup()
  await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  const restored = restore()
  const [old] = [...erasure.masterKeys.byId]
  const fresh = createSecretKey(randomBytes(32))
  const signerUnder = async (...byId: [string, KeyObject][]) => {
    const [[id, key]] = byId as [[string, KeyObject]]
    return openSigner(restored.options.db, { current: { id, key }, byId: new Map(byId) })
  }
  const without = { ...restored.options, signer: await signerUnder(['k2', fresh]) }
  expect(await reapplyLedger(without)).toMatchObject({ refused: 1, persons: 0 })
  const rotated = { ...restored.options, signer: await signerUnder(['k2', fresh], old!) }
  expect(await reapplyLedger(rotated)).toMatchObject({ refused: 0, persons: 1 })
  expect(await remains(restored, project.id, ada)).toEqual(nothing)
})

test('entries are signed again after a rotation of the master key, and the old key can go', {
  concurrent: true,
}, async ({ erasure, project, backup }) => {
  const ada = await record(erasure, project.id, 'ada')
  const { restore } = await backup()
  await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  const { db, blobs, signer } = erasure.options
  const [old] = [...erasure.masterKeys.byId]
  const fresh: [string, KeyObject] = ['k2', createSecretKey(randomBytes(32))]
  const signerUnder = async (on: Db, ...byId: [string, KeyObject][]) => {
    const [[id, key]] = byId as [[string, KeyObject]]
    return openSigner(on, { current: { id, key }, byId: new Map(byId) })
  }
  const both = (await signerUnder(db, fresh, old!)).ledger
  // One key alone has nothing to do.
  expect(await signLedgerAgain(db.sql, blobs, signer.ledger)).toBe(0)
  expect(await signLedgerAgain(db.sql, blobs, both)).toBe(1)
  expect(await signLedgerAgain(db.sql, blobs, both)).toBe(0)
  const restored = restore()
  const without = await signerUnder(restored.options.db, fresh)
  const options = { ...restored.options, signer: without }
  expect(await reapplyLedger(options)).toMatchObject({ refused: 0, persons: 1 })
  expect(await remains(restored, project.id, ada)).toEqual(nothing)
})
