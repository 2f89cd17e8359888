import { createPerson, getPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { awkwardIds } from './awkward.ts'
import { newProject, test } from './fixtures.ts'

describe('200', () => {
  test('every awkward id is read back through the real port', async ({ service }) => {
    for (const externalId of awkwardIds) {
      await service.call(createPerson, { body: { externalId, properties: { externalId } } })
    }
    for (const externalId of awkwardIds) {
      const answer = await service.send(`/v1/persons/${encodeURIComponent(externalId)}`)
      expect([answer.status, answer.json.person?.externalId]).toEqual([200, externalId])
      expect(answer.json.person.properties).toEqual({ externalId })
    }
  })

  test('characters a URL allows unencoded, and lower-case encoding, mean the same', async ({
    service,
  }) => {
    await service.call(createPerson, { body: { externalId: "a+b@c;d:e'é/" } })
    const answer = await service.send("/v1/persons/a+b@c;d:e'%c3%a9%2f")
    expect(answer.json.person?.externalId).toBe("a+b@c;d:e'é/")
  })

  test('a person is readable while its deletion runs', async ({ service }) => {
    const { body } = await service.call(createPerson, { body: { externalId: 'going' } })
    await service.send('/v1/persons/going', { method: 'DELETE' })
    const read = await service.call(getPerson, { params: { externalId: 'going' } })
    expect(read.body).toEqual(body)
  })

  test('HEAD returns what GET does, without the body', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    const get = await service.send('/v1/persons/ada')
    const head = await service.send('/v1/persons/ada', { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'))
  })
})

describe('404 person_not_found', () => {
  test('unknown, in another project, and an id no person can have: the same response', async ({
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
      ['nobody', 'theirs', 'x'.repeat(201), '💩'.repeat(201)].map((id) =>
        service.send(`/v1/persons/${encodeURIComponent(id)}`),
      ),
    )
    const bodies = answers.map(({ text }) => text.replace(/"requestId":"[^"]+"/, ''))
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
    expect(answers[0]?.json.error.code).toBe('person_not_found')
    expect(new Set(bodies).size).toBe(1)
  })

  test('ids that differ in case, spaces or normal form are different persons', async ({
    service,
  }) => {
    await service.call(createPerson, { body: { externalId: 'é' } })
    for (const id of ['É', 'e\u0301', ' é', 'é ']) {
      expect((await service.send(`/v1/persons/${encodeURIComponent(id)}`)).status).toBe(404)
    }
  })

  test('the empty id is a 404, never the list', async ({ service }) => {
    await service.call(createPerson, { body: { externalId: 'ada' } })
    for (const path of ['/v1/persons/', '/v1/persons/?limit=1']) {
      const answer = await service.send(path)
      expect([answer.status, /\bada\b/.test(answer.text)]).toEqual([404, false])
    }
  })
})

describe('400 invalid_request', () => {
  for (const path of [
    '%zz',
    '%',
    '%e9',
    '%00',
    'a%00b',
    '%ed%a0%80',
    '%c0%af',
    'ada?%zz=1',
    'ada?a=%e9',
    'ada?unknown=1',
  ]) {
    test(`/v1/persons/${path}`, async ({ service }) => {
      const answer = await service.send(`/v1/persons/${path}`)
      expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
      expect(answer.headers.get('x-request-id')).toBe(answer.json.error.requestId)
    })
  }
})
