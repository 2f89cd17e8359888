import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished } from 'vitest'
import { type PurgeOptions, purge, purgeAt } from '../src/erasure/purge.ts'
import { findPurgeStatement, isPurgeTime } from '../src/erasure/purge-store.ts'
import { findReceipt, verifyPurge, verifyReceipt } from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import {
  test as base,
  openClock,
  record,
  requestErasure,
  runAll,
  type TestErasure,
} from './erasure-fixtures.ts'

const test = base.extend<{ purging: PurgeOptions }>({
  purging: async ({ erasure, address }, use) => {
    const { db, signer } = erasure.options
    await db.sql`truncate purges cascade`
    await use({
      db,
      signer,
      databases: [{ name: 'main', connection: address }],
      lockMilliseconds: 50,
      // An automatic ANALYZE is an old transaction too, for a moment.
      pauseMilliseconds: 500,
    })
  },
})

async function erase(erasure: TestErasure, projectId: number, externalId: string) {
  await record(erasure, projectId, externalId, { browsers: 1 })
  const { id } = await requestErasure(erasure, projectId, externalId)
  await runAll(erasure.options)
  return id
}

/** A transaction of somebody else that has begun, and ends with the test at the latest. */
async function hold(address: DbAddress, statement: string) {
  const { client, end } = await connectOne(address)
  onTestFinished(end)
  await client.query('begin isolation level repeatable read')
  await client.query(statement)
  return end
}

describe('a purge', () => {
  test('leaves a table that is in use for later, does the others once, and signs a statement for each job when all is done', async ({
    purging,
    erasure,
    project,
    address,
    db,
  }) => {
    expect(await purge(purging)).toEqual({ jobs: 0, purgedAt: null, left: [] })
    const id = await erase(erasure, project.id, 'ada')
    const path = async (table: string) => {
      const [row] = await db.sql<{ path: string }>`select pg_relation_filepath(${table}) as path`
      return row?.path
    }
    const release = await hold(address, 'lock table sessions in row share mode')
    const { left } = await purge(purging)
    // The transaction has a snapshot too, but took it after the erasure.
    expect(left).toEqual([{ part: 'main/public.sessions', code: 'locked' }])
    expect(await findPurgeStatement(db.sql, project.id, id)).toBeNull()
    const later = await erase(erasure, project.id, 'eve')
    const persons = await path('persons')
    await release()

    const outcome = await purge(purging)
    expect(outcome).toEqual({ jobs: 1, purgedAt: expect.any(String), left: [] })
    expect(await path('persons')).toBe(persons)
    const receipt = (await findReceipt(db.sql, project.id, id)) as string
    const jws = (await findPurgeStatement(db.sql, project.id, id)) as string
    const keys = await publicKeys(db.sql)
    expect(await verifyPurge(jws, keys, receipt)).toMatchObject({
      jobId: id,
      projectId: project.id,
      purgedAt: outcome.purgedAt,
    })
    // Neither passes for the other, nor for that of another job.
    await expect(verifyReceipt(jws, keys)).rejects.toThrow('not a receipt')
    await expect(verifyPurge(receipt, keys, receipt)).rejects.toThrow('not a receipt')
    const other = (await findReceipt(db.sql, project.id, later)) as string
    await expect(verifyPurge(jws, keys, other)).rejects.toThrow('another receipt')
    // What was erased since is for the next one.
    expect(await findPurgeStatement(db.sql, project.id, later)).toBeNull()
  })

  test('rewrites the keys of browsers a part at a time, so that chunks wait for a sixteenth of them', async ({
    purging,
    erasure,
    project,
    address,
    db,
  }) => {
    const id = await erase(erasure, project.id, 'ada')
    await db.sql`
      insert into browser_keys (project_id, browser_id, master_key_id, wrapped)
      select ${project.id}, md5(n::text)::uuid, 'k1', '' from generate_series(1, 320) n`
    const release = await hold(address, 'lock table browser_keys_7 in row share mode')
    const parts: string[] = []
    const { left } = await purge({ ...purging, onPart: (part) => parts.push(part) })
    expect(left).toEqual([{ part: 'main/public.browser_keys_7', code: 'locked' }])
    await release()
    expect(await purge(purging)).toMatchObject({ left: [], jobs: 1 })
    expect(await findPurgeStatement(db.sql, project.id, id)).not.toBeNull()

    const rewritten = parts.filter((part) => part.startsWith('main/public.browser_keys'))
    expect(rewritten).toHaveLength(16)
    const rows = await db.sql<{ count: number }>`
      select count(*)::integer as count from browser_keys
      where project_id = ${project.id}
      group by tableoid`
    expect(rows).toHaveLength(16)
    expect(Math.max(...rows.map(({ count }) => count))).toBeLessThan(40)
  })

  test('signs no statement while a transaction older than the erasure holds its rows', async ({
    purging,
    erasure,
    project,
    address,
  }) => {
    const release = await hold(address, 'select from persons')
    await erase(erasure, project.id, 'ada')
    const { left } = await purge(purging)
    expect(left).toEqual([{ part: 'main/canary', code: 'old_transaction' }])
    await release()

    // One that begins after the canary still sees the statistics that are replaced with the tables.
    let held: ReturnType<typeof hold> | undefined
    const onPart = (part: string) => {
      if (part.startsWith('main/public')) held ??= hold(address, 'select 1')
    }
    const second = await purge({ ...purging, onPart })
    expect(second.left).toEqual([{ part: 'main/statistics', code: 'old_transaction' }])
    await (await held)?.()
    expect(await purge(purging)).toMatchObject({ left: [], jobs: 1 })
  })

  test('waits for the transactions of another database, of which one is always open on a busy server', async ({
    purging,
    erasure,
    project,
    address,
  }) => {
    await erase(erasure, project.id, 'ada')
    let isBusy = true
    const write = async () => {
      const { client, end } = await connectOne({ ...address, database: 'postgres' })
      while (isBusy) {
        await client.query('begin; select pg_current_xact_id()')
        await sleep(200)
        await client.query('commit')
      }
      await end()
    }
    const first = write()
    await sleep(100)
    const writers = Promise.all([first, write()])
    await sleep(100)
    const outcome = await purge(purging)
    isBusy = false
    await writers
    expect(outcome).toMatchObject({ left: [], jobs: 1 })
  })

  test('signs no statement if the database role lacks rights', async ({
    purging,
    erasure,
    project,
    address,
  }) => {
    await erase(erasure, project.id, 'ada')
    const role = `purger_${project.id}`
    const { client, end } = await connectOne(address)
    await client.query(`create role ${role} login password 'x' in role pg_monitor`)
    await client.query(`grant select, insert, delete on all tables in schema public to ${role}`)
    try {
      const connection = { ...address, user: role, password: 'x' }
      const { left } = await purge({ ...purging, databases: [{ name: 'main', connection }] })
      expect(left).toEqual([{ part: 'main/canary', code: 'no_right' }])
    } finally {
      await client.query(`drop owned by ${role}`)
      await client.query(`drop role ${role}`)
      await end()
    }
  })

  test('is done by one process at a time, and taken over if that process dies', async ({
    purging,
    erasure,
    project,
    db,
    address,
  }) => {
    await erase(erasure, project.id, 'ada')
    await db.sql`insert into purges (claimed_until) values (app_now() + interval '10 minutes')`
    await expect(purge(purging)).rejects.toMatchObject({ name: 'PurgeClaimed' })
    const clock = await openClock(address)
    await clock.forward(601)
    const release = await hold(address, 'lock table sessions in row share mode')
    expect((await purge(purging)).left).toHaveLength(1)
    await release()
    await clock.close()
  })

  test('starts within hours after its time of day, once, and ends with the process', async ({
    purging,
    erasure,
    project,
    db,
    address,
  }) => {
    await erase(erasure, project.id, 'ada')
    const clock = await openClock(address)
    onTestFinished(clock.close)
    const now = clock.now()
    const minute = now.getUTCHours() * 60 + now.getUTCMinutes()
    const before = (minutes: number) => (minute - minutes + 1_440) % 1_440
    expect(await isPurgeTime(db.sql, before(1), 4)).toBe(true)
    expect(await isPurgeTime(db.sql, before(239), 4)).toBe(true)
    expect(await isPurgeTime(db.sql, before(242), 4)).toBe(false)
    expect(await isPurgeTime(db.sql, before(-2), 4)).toBe(false)
    expect(await purgeAt(before(242), purging)).toBeUndefined()

    const stopping = new AbortController()
    const release = await hold(address, 'lock table sessions in row share mode')
    const slow = { ...purging, lockMilliseconds: 60_000, signal: stopping.signal }
    const running = purgeAt(before(1), slow)
    await expect
      .poll(async () => {
        const rows = await db.sql`
          select from pg_stat_activity where query like 'vacuum%sessions' and state = 'active'`
        return rows.length
      })
      .toBe(1)
    stopping.abort()
    await expect(running).rejects.toThrow()
    await release()

    await db.sql`update purges set purged_at = app_now(), completed_at = app_now()`
    await erase(erasure, project.id, 'eve')
    expect(await isPurgeTime(db.sql, before(1), 4)).toBe(false)
  })
})
