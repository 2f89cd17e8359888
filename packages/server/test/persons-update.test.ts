import { createPerson, updatePerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { awkwardIds } from './awkward.ts'
import { newProject, test } from './fixtures.ts'

const patch = (body: unknown) => ({ method: 'PATCH', body })

describe('200', () => {
  test('merges by the same rules and returns the person', async ({ service }) => {
    const made = await service.call(createPerson, {
      body: { externalId: 'ada', properties: { a: 1, b: { c: 2 }, d: 3 } },
    })
    const answer = await service.send(
      '/v1/persons/ada',
      patch({ properties: { a: null, b: { e: 4 } } }),
    )
    expect(answer.status).toBe(200)
    expect(answer.json.person).toEqual({
      externalId: 'ada',
      properties: { b: { e: 4 }, d: 3 },
      createdAt: made.body.person.createdAt,
      updatedAt: expect.any(String),
    })
    expect(answer.json.person.updatedAt > made.body.person.updatedAt).toBe(true)
  })

  test('a change of nothing leaves updatedAt and the row alone', async ({
    service,
    db,
    project,
  }) => {
    const made = await service.call(createPerson, {
      body: { externalId: 'ada', properties: { a: 1 } },
    })
    const version = async () =>
      (await db.sql`select xmin::text, ctid::text from persons where project_id = ${project.id}`)[0]
    const before = await version()
    for (const properties of [{}, { a: 1 }, { absent: null }]) {
      const { body } = await service.call(updatePerson, {
        params: { externalId: 'ada' },
        body: { properties },
      })
      expect(body).toEqual(made.body)
    }
    expect(await version()).toEqual(before)
  })

  test('updatedAt moves with every change, however fast they follow', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const times: string[] = []
    for (let n = 0; n < 50; n++) {
      times.push(
        (await service.send('/v1/persons/ada', patch({ properties: { n } }))).json.person.updatedAt,
      )
    }
    expect(times).toEqual([...new Set(times)].sort())
  })

  test('updatedAt never goes backwards, also when the clock does', async ({
    service,
    db,
    project,
  }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    await db.sql`
      update persons set updated_at = app_now() + interval '1 hour' where project_id = ${project.id}`
    const before = (await service.send('/v1/persons/ada')).json.person.updatedAt
    const after = await service.send('/v1/persons/ada', patch({ properties: { a: 1 } }))
    expect(after.json.person.updatedAt > before).toBe(true)
  })

  test('every awkward id is patched, with its own externalId in the body or without', async ({
    service,
  }) => {
    for (const externalId of awkwardIds) {
      await service.call(createPerson, { body: { externalId } })
      const path = `/v1/persons/${encodeURIComponent(externalId)}`
      const answer = await service.send(
        path,
        patch({ externalId, properties: { here: externalId } }),
      )
      expect([answer.status, answer.json.person?.properties]).toEqual([200, { here: externalId }])
    }
  })
})

describe('400 invalid_request', () => {
  for (const body of [
    undefined,
    {},
    { properties: null },
    { properties: [] },
    { properties: 'x' },
    { properties: JSON.rawJSON('1.0e0') },
    { properties: JSON.rawJSON('12345678901234567890') },
    { externalId: 'ada' },
    { externalId: 'other', properties: {} },
    { properties: {}, extra: 1 },
    { properties: { '': 1 } },
  ]) {
    test(`for ${JSON.stringify(body) ?? 'no body'}, and nothing changes`, async ({ service }) => {
      const made = await service.call(createPerson, {
        body: { externalId: 'ada', properties: { a: 1 } },
      })
      const answer = await service.send('/v1/persons/ada', {
        method: 'PATCH',
        ...(body === undefined ? { headers: { 'content-type': 'application/json' } } : { body }),
      })
      expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
      expect((await service.send('/v1/persons/ada')).json).toEqual(made.body)
    })
  }

  test('when the merge would pass the limits, and nothing changes', async ({ service }) => {
    const properties = { a: 'x'.repeat(200_000) }
    const made = await service.call(createPerson, { body: { externalId: 'ada', properties } })
    const answer = await service.send(
      '/v1/persons/ada',
      patch({ properties: { b: 'x'.repeat(100_000) } }),
    )
    expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
    expect((await service.send('/v1/persons/ada')).json).toEqual(made.body)
  })
})

test('404 person_not_found: unknown and in another project, byte for byte, and nothing is created', async ({
  service,
  db,
}) => {
  const other = await newProject(db)
  await service.send('/v1/persons', {
    method: 'POST',
    key: other.secretKey,
    body: { externalId: 'theirs' },
  })
  const answers = await Promise.all(
    ['nobody', 'theirs'].map((id) =>
      service.send(`/v1/persons/${id}`, patch({ properties: { a: 1 } })),
    ),
  )
  const bodies = answers.map(
    ({ status, text }) => `${status} ${text.replace(/"requestId":"[^"]+"/, '')}`,
  )
  expect(new Set(bodies).size).toBe(1)
  expect(answers[0]?.json.error.code).toBe('person_not_found')
  expect((await service.send('/v1/persons')).json.persons).toEqual([])
})

test('409 person_being_deleted while its deletion is in progress', async ({ service }) => {
  await service.call(createPerson, { body: { externalId: 'ada' } })
  await service.send('/v1/persons/ada', { method: 'DELETE' })
  for (const properties of [{ a: 1 }, {}]) {
    const answer = await service.send('/v1/persons/ada', patch({ properties }))
    expect([answer.status, answer.json.error.code]).toEqual([409, 'person_being_deleted'])
  }
})

test('a hundred PATCHes of one person at once are all merged', async ({ service }) => {
  await service.call(createPerson, { body: { externalId: 'ada' } })
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      service.send('/v1/persons/ada', patch({ properties: { [`key${i}`]: i } })),
    ),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(200))
  const { properties } = (await service.send('/v1/persons/ada')).json.person
  expect(Object.keys(properties)).toHaveLength(100)
})
