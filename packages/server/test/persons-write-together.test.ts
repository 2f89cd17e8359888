import { createPerson, getPerson } from '@lethe/contract/person.ts'
import { expect } from 'vitest'
import { personWriter } from '../src/persons/writer.ts'
import type { Sql } from '../src/sql.ts'
import { test } from './fixtures.ts'

test('writes that arrive together are one statement, sixteen of them one at once', async ({
  db,
  project,
}) => {
  let statements = 0
  const writes: Sql = (strings, ...values) => {
    statements++
    return db.writes(strings, ...values)
  }
  const write = personWriter({ sql: db.sql, writes })
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

test('each of many writes at once has its own answer', async ({ service }) => {
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

test('a write that waits for a lock does not hold the others up', async ({
  service,
  db,
  project,
}) => {
  const post = (externalId: string) =>
    service.send('/v1/persons', { method: 'POST', body: { externalId, properties: { a: 1 } } })
  await service.call(createPerson, { body: { externalId: 'held' } })
  let isAnswered = false
  const holding = db.begin(async (tx) => {
    await tx`select from persons where project_id = ${project.id} and external_id = 'held'
      for update`
    const held = post('held').then(({ status }) => {
      isAnswered = true
      return status
    })
    const others = await Promise.all(Array.from({ length: 30 }, (_, i) => post(`free ${i}`)))
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 201))
    expect(isAnswered).toBe(false)
    return { held }
  })
  expect(await (await holding).held).toBe(200)
})
