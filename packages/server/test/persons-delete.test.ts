import { createPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { awkwardIds } from './awkward.ts'
import { newProject, test } from './fixtures.ts'

const remove = { method: 'DELETE' }

describe('202', () => {
  test('returns a pending job with exactly seven fields', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const answer = await service.send('/v1/persons/ada', remove)
    expect(answer.status).toBe(202)
    expect(answer.json).toEqual({
      job: {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        externalId: 'ada',
        keepRecordings: false,
        status: 'pending',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        startedAt: null,
        completedAt: null,
      },
    })
    expect((await service.send(`/v1/deletion-jobs/${answer.json.job.id}`)).json.job.id).toBe(
      answer.json.job.id,
    )
  })

  test('a repeated DELETE with the same keepRecordings returns the same job', async ({
    service,
  }) => {
    for (const [externalId, query] of [
      ['a', ''],
      ['b', '?keepRecordings=false'],
      ['c', '?keepRecordings=true'],
    ] as const) {
      await service.call(createPerson, { body: { externalId } })
      const first = await service.send(`/v1/persons/${externalId}${query}`, remove)
      const second = await service.send(`/v1/persons/${externalId}${query}`, remove)
      expect([second.status, second.json.job.id]).toEqual([202, first.json.job.id])
      expect(first.json.job.keepRecordings).toBe(query.endsWith('true'))
    }
  })

  test('absent and false mean the same', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const first = await service.send('/v1/persons/ada', remove)
    const second = await service.send('/v1/persons/ada?keepRecordings=false', remove)
    expect([second.status, second.json.job.id]).toEqual([202, first.json.job.id])
  })

  test('every awkward id can be deleted', async ({ service }) => {
    for (const externalId of awkwardIds) {
      await service.call(createPerson, { body: { externalId } })
      const answer = await service.send(`/v1/persons/${encodeURIComponent(externalId)}`, remove)
      expect([answer.status, answer.json.job?.externalId]).toEqual([202, externalId])
    }
  })

  test('a hundred DELETEs at once make one job', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => service.send('/v1/persons/ada', remove)),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(100).fill(202))
    expect(new Set(answers.map(({ json }) => json.job.id)).size).toBe(1)
  })

  test('a content type without a body does no harm', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const answer = await service.send('/v1/persons/ada', {
      ...remove,
      headers: { 'content-type': 'application/json' },
    })
    expect(answer.status).toBe(202)
  })
})

describe('409 deletion_in_progress', () => {
  test('with the other keepRecordings, in both directions', async ({ service }) => {
    for (const [externalId, first, other] of [
      ['a', 'true', 'false'],
      ['b', 'false', 'true'],
    ]) {
      await service.call(createPerson, { body: { externalId: externalId as string } })
      const path = `/v1/persons/${externalId}?keepRecordings=`
      await service.send(path + first, remove)
      const answer = await service.send(path + other, remove)
      expect([answer.status, answer.json.error.code]).toEqual([409, 'deletion_in_progress'])
    }
  })

  test('of two requests with different values at once, one creates the job and the other is refused', async ({
    service,
  }) => {
    for (let round = 0; round < 20; round++) {
      await service.call(createPerson, { body: { externalId: `p${round}` } })
      const answers = await Promise.all(
        ['true', 'false'].map((keep) =>
          service.send(`/v1/persons/p${round}?keepRecordings=${keep}`, remove),
        ),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
    }
  })
})

test('404 person_not_found: unknown and in another project, byte for byte, and no job is made', async ({
  service,
  db,
  project,
}) => {
  const other = await newProject(db)
  await service.send('/v1/persons', {
    method: 'POST',
    key: other.secretKey,
    body: { externalId: 'theirs' },
  })
  const answers = await Promise.all(
    ['nobody', 'theirs'].map((id) => service.send(`/v1/persons/${id}`, remove)),
  )
  const bodies = answers.map(
    ({ status, text }) => `${status} ${text.replace(/"requestId":"[^"]+"/, '')}`,
  )
  expect(new Set(bodies).size).toBe(1)
  expect(answers[0]?.json.error.code).toBe('person_not_found')
  expect(
    await db.sql`select id from deletion_jobs where project_id in (${project.id}, ${other.id})`,
  ).toEqual([])
})

describe('400 invalid_request', () => {
  for (const query of [
    'keepRecordings=',
    'keepRecordings=1',
    'keepRecordings=TRUE',
    'keepRecordings=yes',
    'keepRecordings=%20true',
    'keepRecordings=true&keepRecordings=true',
    'keeprecordings=true',
    'keepRecording=true',
    'force=1',
  ]) {
    test(`?${query}: a misspelt flag deletes nothing`, async ({ service, db, project }) => {
      await service.call(createPerson, { body: { externalId: 'ada' } })
      const answer = await service.send(`/v1/persons/ada?${query}`, remove)
      expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
      expect(await db.sql`select id from deletion_jobs where project_id = ${project.id}`).toEqual(
        [],
      )
    })
  }
})

test('POST, PATCH and DELETE racing: merged before the job, or refused, never after it', async ({
  service,
}) => {
  for (let round = 0; round < 20; round++) {
    const externalId = `r${round}`
    await service.call(createPerson, { body: { externalId, properties: { n: 0 } } })
    const writes = Array.from({ length: 6 }, (_, i) =>
      i % 2 === 0
        ? service.send('/v1/persons', {
            method: 'POST',
            body: { externalId, properties: { [`k${i}`]: i } },
          })
        : service.send(`/v1/persons/${externalId}`, {
            method: 'PATCH',
            body: { properties: { [`k${i}`]: i } },
          }),
    )
    const deletion = service.send(`/v1/persons/${externalId}`, remove)
    const answers = await Promise.all(writes)
    expect((await deletion).status).toBe(202)
    const merged = answers.flatMap(({ status }, i) => (status === 200 ? [`k${i}`] : []))
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    const { properties } = (await service.send(`/v1/persons/${externalId}`)).json.person
    expect(Object.keys(properties).sort()).toEqual([...merged, 'n'].sort())
  }
})
