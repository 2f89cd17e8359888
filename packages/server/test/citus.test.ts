import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, onTestFinished } from 'vitest'
import { byProject, distribute, distributeNew, everywhere, readNodes } from '../src/distribute.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { readLedgerHealth } from '../src/erasure/ledger-store.ts'
import { migrate, migrateTo } from '../src/migrate.ts'
import { searchPersons } from '../src/persons/search.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import { writePerson } from '../src/persons/store.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { createDatabase, dropDatabase, joinNodes } from './databases.ts'
import { fingerprint, nothing, record, remains, requestErasure, test } from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

/** `npm run test:deep` runs this on a Citus cluster as well. */
const isCluster = inject('servers').length > 1

/** It names projects, and some entries concern none: it stays on the coordinator. */
const onCoordinator = ['audit_log']

test('every table that names a project has its place on a cluster', async ({ erasure }) => {
  const tables = await erasure.options.db.sql<{ name: string }>`
    select c.relname as name
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'project_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition`
  const placed = [...everywhere, ...byProject, ...onCoordinator]
  expect(tables.length).toBeGreaterThan(20)
  expect(tables.map(({ name }) => name).filter((name) => !placed.includes(name))).toEqual([])
})

if (isCluster) describe('on a cluster', onCluster)
else {
  test('on one PostgreSQL there is nothing to spread the tables over, and the error says so', async ({
    address,
    db,
  }) => {
    await expect(distribute(address)).rejects.toThrow('not a Citus cluster')
    expect(await readNodes(db.sql)).toBeUndefined()
  })
}

/** From here on, each migration must also run on a cluster; some before it do not. */
const firstUpgrade = '0073'

function onCluster() {
  test('a cluster of an earlier version is upgraded with its persons', async ({ address, db }) => {
    const servers = inject('servers')
    const name = `lethe_earlier_${process.pid}`
    await createDatabase(servers, name)
    onTestFinished(() => dropDatabase(servers, name))
    await joinNodes(servers, name)
    const earlier = { ...address, database: name }
    const known = await db.sql<{ name: string; sha256: string }>`
      select name, sha256 from migrations where name < ${firstUpgrade} or name like 'keys/%'`
    const connection = await connectOne(earlier)
    await migrateTo(connection, known, 'The test')
    for (const { name, sha256 } of known) {
      await connection.sql`insert into migrations (name, sha256) values (${name}, ${sha256})`
    }
    await connection.end()
    await distribute(earlier)
    const before = connect({ connection: earlier })
    const project = await newProject(before)
    const create = (of: Db, externalId: string) =>
      writePerson(of.short, project.id, externalId, { name: 'Ada' }, true)
    await create(before, 'early')
    await before.end()

    const { applied } = await migrate(earlier)
    expect(applied.length).toBeGreaterThan(1)
    await distributeNew(earlier)
    const after = connect({ connection: earlier })
    onTestFinished(() => after.end())
    expect(await placedTables(after)).toEqual(await placedTables(db))
    await create(after, 'late')
    await indexSearchTail(after, { seconds: 60, smallProjectPersons: 1 })
    const found = await searchPersons(after.sql, project.id, 'ada', null, 10)
    expect(found.map(({ externalId }) => externalId)).toEqual(['late', 'early'])
  })

  test('the tables are spread once, and a second time changes nothing', async ({ address, db }) => {
    expect(await readNodes(db.sql)).toBe(2)
    expect(await distribute(address)).toEqual([])
  })

  test('persons are erased while their rows move from node to node: nothing is lost', async ({
    address,
    erasure,
  }) => {
    const { db } = erasure.options
    const options = { ...erasure.options, retryDelaysSeconds: [0, 0, 0, 0] as const }
    const project = await newProject(db)
    const recording = { browsers: 1, sessions: 1 }
    const names = Array.from({ length: 12 }, (_, n) => `p${n}`)
    const persons = []
    for (const name of names) persons.push(await record(erasure, project.id, name, recording))
    const stay = persons.slice(6)
    const before = await Promise.all(stay.map((one) => fingerprint(erasure, project.id, one)))
    const moving = moveBackAndForth(address, project.id)
    for (const name of names.slice(0, 6)) {
      await untilDone(() => requestErasure(erasure, project.id, name))
    }
    const isOpen = async () =>
      (
        await db.sql`
          select from deletion_jobs
          where project_id = ${project.id} and status in ('pending', 'running')`
      ).length > 0
    while (await untilDone(isOpen)) {
      await untilDone(() => runNextAttempt(options))
      await sleep(50)
    }
    expect(await moving.stop()).toBeGreaterThan(0)
    const jobs = await db.sql`
      select distinct status from deletion_jobs where project_id = ${project.id}`
    expect(jobs).toEqual([{ status: 'completed' }])
    for (const gone of persons.slice(0, 6)) {
      expect(await remains(erasure, project.id, gone)).toEqual(nothing)
    }
    expect(await Promise.all(stay.map((one) => fingerprint(erasure, project.id, one)))).toEqual(
      before,
    )
    const [chain] = await db.sql<{ length: string; receipts: number }>`
      select c.length, (select count(*)::int from receipts where project_id = ${project.id}) as receipts
      from receipt_chains c where c.project_id = ${project.id}`
    expect(chain).toEqual({ length: '6', receipts: 6 })
    expect(await readLedgerHealth(db.sql)).toMatchObject({ entries: 6, missing: 0 })
  })
}

function placedTables(db: Db) {
  return db.sql`
    select logicalrelid::text as name, partmethod as method from pg_dist_partition order by 1`
}

/** What a move refuses while it changes over is asked again, as every caller of a service does. */
async function untilDone<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 60) throw error
      await sleep(250)
    }
  }
}

/** Moves the rows of a project to the other node, again and again; `stop` says how often. */
function moveBackAndForth(address: DbAddress, projectId: number) {
  let isOver = false
  let moves = 0
  const moving = (async () => {
    const { client, end } = await connectOne(address)
    try {
      do {
        await client.query(
          `select citus_move_shard_placement(s.shardid, f.nodename, f.nodeport, t.nodename, t.nodeport,
             shard_transfer_mode => 'force_logical')
           from (select get_shard_id_for_distribution_column('deletion_jobs', $1::integer) as shardid) s
           join pg_dist_placement p using (shardid)
           join pg_dist_node f on f.groupid = p.groupid
           join pg_dist_node t on t.groupid <> p.groupid and t.shouldhaveshards`,
          [projectId],
        )
        moves++
      } while (!isOver)
    } finally {
      await end()
    }
  })()
  // Looked at by `stop`.
  moving.catch(() => {})
  return {
    async stop() {
      isOver = true
      await moving
      return moves
    },
  }
}
