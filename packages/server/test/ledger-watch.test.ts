import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { buildApp } from '../src/app.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { readStanding } from '../src/erasure/ledger-store.ts'
import { watchLedger } from '../src/erasure/ledger-watch.ts'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { createMetrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { nothing, record, remains, requestErasure, test } from './erasure-fixtures.ts'
import { eventually } from './lethe-process.ts'

/** Changes databases of these names while nobody is connected to the first one. */
async function whileAlone(address: DbAddress, statements: string[]): Promise<void> {
  const { client, end } = await connectOne({ ...address, database: 'postgres' })
  for (const statement of statements) {
    await eventually(async () => {
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${address.database}'`,
      )
      // Somebody may have connected again in between.
      return client.query(statement).then(
        () => true,
        (error) => {
          if (error.code !== '55006') throw error
          return undefined
        },
      )
    })
  }
  await end()
}

test('a database that goes back in time under a running service: 503 until everybody who came back is erased again', async ({
  erasure,
  project,
  address,
}) => {
  const { db, log } = erasure.options
  const ada = await record(erasure, project.id, 'ada')
  await record(erasure, project.id, 'bob')
  const copy = `lethe_${randomUUID().replaceAll('-', '')}`
  await whileAlone(address, [`create database ${copy} template ${address.database}`])
  const { id } = await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')

  const compared = Promise.withResolvers<void>()
  const mayCompare = Promise.withResolvers<void>()
  const last = await readStanding(db.sql)
  const watch = watchLedger({ db, log, watchSeconds: 0.05 }, last, async () => {
    await mayCompare.promise
    await reapplyLedger(erasure.options)
    compared.resolve()
  })
  const app = await buildApp({
    db,
    log,
    metrics: createMetrics(),
    cursorKey: await readCursorKey(address),
    held: watch,
  })
  const get = (externalId: string) =>
    app.inject({
      url: `/v1/persons/${externalId}`,
      headers: { authorization: `Bearer ${project.secretKey}` },
    })
  expect((await get('bob')).statusCode).toBe(200)

  await whileAlone(address, [
    `alter database ${address.database} rename to ${copy}_gone`,
    `alter database ${copy} rename to ${address.database}`,
  ])
  await eventually(async () => watch.isHeld() || undefined)
  for (const externalId of ['ada', 'bob']) {
    const held = await get(externalId)
    expect([held.statusCode, held.headers['retry-after']]).toEqual([503, '5'])
  }
  expect((await app.inject({ url: '/health/live' })).statusCode).toBe(200)

  mayCompare.resolve()
  await compared.promise
  await eventually(async () => (watch.isHeld() ? undefined : true))
  expect((await get('ada')).statusCode).toBe(404)
  expect((await get('bob')).statusCode).toBe(200)
  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  const [job] = await db.sql`select status from deletion_jobs where id = ${id}`
  expect(job).toEqual({ status: 'completed' })
  expect(erasure.logged()).toContain('ledger.database_changed')
  await watch.stop()
  await app.close()
  await whileAlone({ ...address, database: `${copy}_gone` }, [`drop database ${copy}_gone`])
})

test('a request that was let in before the database went back and ends after it is 503', async ({
  erasure,
  project,
  address,
}) => {
  const { db, log } = erasure.options
  await record(erasure, project.id, 'ada')
  let holds = 0
  const app = await buildApp({
    // It is held, and compared, while the person is read.
    db: {
      ...db,
      short: async (strings, ...values) => {
        holds++
        return db.short(strings, ...values)
      },
    },
    log,
    metrics: createMetrics(),
    cursorKey: await readCursorKey(address),
    held: { isHeld: () => false, holds: () => holds },
  })
  const headers = { authorization: `Bearer ${project.secretKey}` }
  const late = await app.inject({ url: '/v1/persons/ada', headers })
  expect([late.statusCode, late.headers['retry-after'], late.json().error.code]).toEqual([
    503,
    '5',
    'unavailable',
  ])
  await app.close()
})

test('behind a pooler a response waits for a check of the server after it was made', async ({
  erasure,
  project,
  address,
}) => {
  const { db, log } = erasure.options
  await record(erasure, project.id, 'ada')
  let server = 'before'
  let isLookHeldUp = Promise.resolve()
  // The pooler leads to another server while a person is read, and no connection is lost.
  const hiding = {
    ...db,
    short: (async (strings: TemplateStringsArray, ...values: unknown[]) => {
      const rows = await db.short(strings, ...values)
      if (!strings.join().includes('pg_postmaster_start_time')) return rows
      await isLookHeldUp
      return rows.map((row) => ({ ...row, server }))
    }) as typeof db.short,
  }
  const last = { ...(await readStanding(db.sql)), server }
  let comparisons = 0
  const options = { db: hiding, log, watchSeconds: 3_600, isPooled: true }
  const watch = watchLedger(options, last, async () => {
    comparisons += 1
  })
  const app = await buildApp({
    db: hiding,
    log,
    metrics: createMetrics(),
    cursorKey: await readCursorKey(address),
    held: watch,
  })
  const headers = { authorization: `Bearer ${project.secretKey}` }
  const get = () => app.inject({ url: '/v1/persons/ada', headers })
  const statuses = async () =>
    (await Promise.all([get(), get(), get()])).map((one) => one.statusCode)
  expect(await statuses()).toEqual([200, 200, 200])

  const { promise, resolve } = Promise.withResolvers<void>()
  isLookHeldUp = promise
  const under = statuses()
  server = 'after'
  resolve()
  expect(await under).toEqual([503, 503, 503])
  await eventually(async () => !watch.isHeld() || undefined)
  expect(comparisons).toBe(1)
  expect(await statuses()).toEqual([200, 200, 200])
  await watch.stop()
  await app.close()
})

test('a database that did not go back is not compared again, however many are erased', async ({
  erasure,
  project,
}) => {
  const { db, log } = erasure.options
  let looks = 0
  let comparisons = 0
  const counted = {
    ...db,
    short: ((strings: TemplateStringsArray, ...values: unknown[]) => {
      looks += 1
      return db.short(strings, ...values)
    }) as typeof db.short,
  }
  const watch = watchLedger(
    { db: counted, log, watchSeconds: 0.02 },
    await readStanding(db.sql),
    async () => {
      comparisons += 1
    },
  )
  for (const name of ['ada', 'bob']) {
    await record(erasure, project.id, name)
    await requestErasure(erasure, project.id, name)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
  }
  const until = looks + 3
  await eventually(async () => looks >= until || undefined)
  await watch.stop()
  expect(comparisons).toBe(0)
})

test('after a lost connection requests wait until the server that responds has been checked', async ({
  erasure,
  address,
}) => {
  const { db, log } = erasure.options
  const last = await readStanding(db.sql)
  let comparisons = 0
  // An hour: no look comes by itself.
  const watch = watchLedger({ db, log, watchSeconds: 3_600 }, last, async () => {
    comparisons += 1
  })
  await db.short`select 1`
  expect(watch.isHeld()).toBe(false)
  await whileAlone(address, [`alter database ${address.database} connection limit -1`])
  await eventually(async () => watch.isHeld() || undefined)
  await eventually(async () => !watch.isHeld() || undefined)
  expect(comparisons, 'it is the same server, with the same ledger').toBe(0)
  await watch.stop()
})
