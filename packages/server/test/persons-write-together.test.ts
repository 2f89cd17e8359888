import { createPerson, getPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { personWriter } from '../src/persons/writer.ts'
import { connect, type Sql } from '../src/sql.ts'
import { newProject, startService, type TestProject, test } from './fixtures.ts'

test('writes that arrive together become one statement', async ({ db, project }) => {
  let statements = 0
  const sql: Sql = (strings, ...values) => {
    statements++
    return db.sql(strings, ...values)
  }
  const write = personWriter({ ...db, sql })
  const writeAtOnce = async (count: number) => {
    statements = 0
    const writing = Array.from({ length: count }, (_, n) => {
      const externalId = `${count} ${n}`
      return write({ projectId: project.id, externalId, properties: {}, createMissing: true }, 50)
    })
    const begun = statements
    const outcomes = (await Promise.all(writing)).map(({ outcome }) => outcome)
    expect(outcomes).toEqual(writing.map(() => 'created'))
    return { begun, statements }
  }
  expect(await writeAtOnce(1)).toEqual({ begun: 0, statements: 1 })
  expect(await writeAtOnce(15)).toEqual({ begun: 0, statements: 1 })
  expect(await writeAtOnce(16)).toEqual({ begun: 1, statements: 1 })
  expect(await writeAtOnce(40)).toEqual({ begun: 2, statements: 3 })
})

test('each of many writes at once has its own result', async ({ service }) => {
  await service.call(createPerson, { body: { externalId: 'known', properties: { a: 1 } } })
  await service.call(createPerson, { body: { externalId: 'leaving' } })
  await service.send('/v1/persons/leaving', { method: 'DELETE' })
  const post = async (externalId: string, properties: Record<string, unknown>) =>
    (await service.send('/v1/persons', { method: 'POST', body: { externalId, properties } })).status
  const patch = async (externalId: string) =>
    (
      await service.send(`/v1/persons/${encodeURIComponent(externalId)}`, {
        method: 'PATCH',
        body: { properties: { b: 2 } },
      })
    ).status
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`k${i}`, 1]))

  const rounds = Array.from({ length: 20 }, (_, round) =>
    Promise.all([
      post(`new ${round}`, { round }),
      post('known', { a: 1 }),
      post('known', { round }),
      post('leaving', { a: 1 }),
      post('large', many),
      patch(`nobody ${round}`),
    ]),
  )
  for (const statuses of await Promise.all(rounds)) {
    expect(statuses).toEqual([201, 200, 200, 409, 400, 404])
  }
  for (let round = 0; round < 20; round++) {
    const { body } = await service.call(getPerson, { params: { externalId: `new ${round}` } })
    expect(body.person.properties).toEqual({ round })
  }
})

test('a write that the database refuses fails alone', async ({ service, db }) => {
  await db.sql`
    create function refuse_bad() returns trigger language plpgsql as $$
    begin
      if new.external_id = 'bad' then raise exception 'refused' using errcode = '22000'; end if;
      return new;
    end $$`
  await db.sql`
    create trigger refuse_bad before insert on persons for each row execute function refuse_bad()`
  const ids = Array.from({ length: 40 }, (_, i) => (i === 20 ? 'bad' : `good ${i}`))
  const answers = await Promise.all(
    ids.map((externalId) => service.send('/v1/persons', { method: 'POST', body: { externalId } })),
  )
  await db.sql`drop trigger refuse_bad on persons`
  expect(answers.map(({ status }) => status)).toEqual(ids.map((id) => (id === 'bad' ? 500 : 201)))
})

describe('a locked person', () => {
  const lock = (tx: Sql, project: TestProject) =>
    tx`select from persons where project_id = ${project.id} and external_id = 'held' for update`

  test('delays no write of another person, nor one of another project', async ({
    db,
    address,
    project,
  }) => {
    const other = await newProject(db)
    // Without time-outs: what waits for the lock waits until it is released.
    const patient = connect({ connection: address, statementSeconds: 0 })
    const service = await startService(patient, address, project)
    const post = (externalId: string, secretKey = project.secretKey) =>
      service.send('/v1/persons', {
        method: 'POST',
        headers: { authorization: `Bearer ${secretKey}` },
        body: { externalId, properties: { n: Math.random() } },
      })
    await service.call(createPerson, { body: { externalId: 'held' } })
    let answered = 0
    const held = db.begin(async (tx) => {
      await lock(tx, project)
      const writes = Array.from({ length: 40 }, () =>
        post('held').finally(() => {
          answered++
        }),
      )
      const free = Array.from({ length: 30 }, (_, i) => [
        post(`free ${i}`),
        post(`free ${i}`, other.secretKey),
      ])
      const statuses = (await Promise.all(free.flat())).map(({ status }) => status)
      expect(statuses).toEqual(statuses.map(() => 201))
      expect(answered).toBe(0)
      return { writes }
    })
    const { writes } = await held
    for (const { status } of await Promise.all(writes)) expect(status).toBe(200)
    await service.close()
    await patient.end()
  })

  test('takes one connection, and its writes end with one lock timeout', async ({
    service,
    db,
    project,
  }) => {
    await service.call(createPerson, { body: { externalId: 'held' } })
    const post = (n: number, padding = '') =>
      service.send('/v1/persons', {
        method: 'POST',
        body: { externalId: 'held', properties: { n, padding } },
      })
    let most = 0
    const statuses = await db.begin(async (tx) => {
      await lock(tx, project)
      let isOver = false
      const writes = Promise.all(
        Array.from({ length: 40 }, (_, n) => post(n, 'x'.repeat((n % 2) * 20_000))),
      ).finally(() => {
        isOver = true
      })
      while (!isOver) {
        const [row] = await tx<{ waiting: number }>`
          select count(*)::integer as waiting from pg_stat_activity
          where wait_event_type = 'Lock' and datname = current_database()`
        most = Math.max(most, row?.waiting ?? 0)
      }
      return (await writes).map(({ status }) => status)
    })
    expect(most).toBe(1)
    expect(statuses).toEqual(statuses.map(() => 503))
    expect((await post(1)).status).toBe(200)
  })
})
