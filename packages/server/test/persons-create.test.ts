import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { awkwardIds } from './awkward.ts'
import { newProject, type Service, test } from './fixtures.ts'

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('201', () => {
  test('creates a person with exactly four fields', async ({ service }) => {
    const made = await service.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'ada', properties: { name: 'Ada', plan: 'pro' } },
    })
    expect(made.status).toBe(201)
    expect(Object.keys(made.json)).toEqual(['person'])
    expect(made.json.person).toEqual({
      externalId: 'ada',
      properties: { name: 'Ada', plan: 'pro' },
      createdAt: expect.stringMatching(instant),
      updatedAt: made.json.person.createdAt,
    })
  })

  test('properties may be absent', async ({ service }) => {
    const { status, body } = await service.call(createPerson, { body: { externalId: 'bare' } })
    expect([status, body.person.properties]).toEqual([201, {}])
  })

  test('keys sent as null at creation are not stored; null further down is', async ({
    service,
  }) => {
    const { body } = await service.call(createPerson, {
      body: { externalId: 'nulls', properties: { gone: null, kept: { a: null, b: [null] } } },
    })
    expect(body.person.properties).toEqual({ kept: { a: null, b: [null] } })
  })

  test('every awkward id is its own person, as given', async ({ service }) => {
    for (const externalId of awkwardIds) {
      const { status, body } = await service.call(createPerson, { body: { externalId } })
      expect([status, body.person.externalId]).toEqual([201, externalId])
    }
  })

  test('the same externalId in another project is another person', async ({ service, db }) => {
    const other = await newProject(db)
    const body = { externalId: 'shared', properties: { of: 'one' } }
    const one = await service.send('/v1/persons', { method: 'POST', body })
    const two = await service.send('/v1/persons', {
      method: 'POST',
      key: other.secretKey,
      body: { externalId: 'shared' },
    })
    expect([one.status, two.status, two.json.person.properties]).toEqual([201, 201, {}])
  })

  test('a hundred POSTs of one id at once make one person and no error', async ({ service }) => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        service.send('/v1/persons', {
          method: 'POST',
          body: { externalId: 'raced', properties: { [`key${i}`]: i } },
        }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 200)).toHaveLength(99)
    const person = (await service.send('/v1/persons/raced')).json.person
    expect(Object.keys(person.properties)).toHaveLength(100)
  })
})

describe('200', () => {
  test('merges: a key sent replaces, null removes, the rest stays', async ({ service }) => {
    const send = (properties: object) =>
      service.send('/v1/persons', { method: 'POST', body: { externalId: 'm', properties } })
    const made = await send({ name: 'A', plan: 'x', nested: { k: null, deep: [1, { a: 2 }] } })
    const merged = await send({ plan: null, email: 'e', nested: { other: 1 } })
    expect(merged.status).toBe(200)
    expect(merged.json.person.properties).toEqual({ name: 'A', email: 'e', nested: { other: 1 } })
    expect(merged.json.person.createdAt).toBe(made.json.person.createdAt)
    expect(merged.json.person.updatedAt > made.json.person.updatedAt).toBe(true)
  })

  test('a POST that changes nothing writes nothing', async ({ service, db, project }) => {
    const body = { externalId: 'still', properties: { a: 1, nested: { x: [1] }, absent: null } }
    const made = await service.send('/v1/persons', { method: 'POST', body })
    const version = async () =>
      (await db.sql`select xmin::text, ctid::text from persons where project_id = ${project.id}`)[0]
    const before = await version()
    const again = await service.send('/v1/persons', { method: 'POST', body })
    const bare = await service.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'still' },
    })
    expect([again.status, again.json, bare.json]).toEqual([200, made.json, made.json])
    expect(await version()).toEqual(before)
  })

  test('keys such as __proto__ are ordinary and change nothing of the service', async ({
    service,
  }) => {
    const rawBody =
      '{"externalId":"proto","properties":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"x","hasOwnProperty":0}}'
    const made = await service.send('/v1/persons', { method: 'POST', rawBody })
    expect(made.status).toBe(201)
    const read = await service.send('/v1/persons/proto')
    expect(JSON.parse(read.text, (_, value) => value).person.properties.toString).toBe('x')
    expect(read.text).toContain('"__proto__": {"polluted": 1}')
    expect(Object.hasOwn(read.json.person.properties, '__proto__')).toBe(true)
    const removed = await service.send('/v1/persons', {
      method: 'POST',
      rawBody: '{"externalId":"proto","properties":{"__proto__":null,"constructor":null}}',
    })
    expect(removed.text).not.toContain('__proto__')
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test("customers' keys are never renamed, and any JSON value comes back", async ({ service }) => {
    const properties = {
      first_name: 'A',
      nested_obj: { deep_key: [{ x_y: 1 }] },
      UPPER_case: 1,
      'a-b': 2,
      ' ': ' ',
      ['k'.repeat(200)]: true,
      ['💩'.repeat(200)]: false,
      emptyObject: {},
      emptyList: [],
      number: -1.5e-7,
      text: 'line\nbreak\t"quotes" \\ \u2028 \ufffe 💩',
      externalId: 'not the id',
    }
    const made = await service.call(createPerson, { body: { externalId: 'values', properties } })
    expect(made.body.person.properties).toEqual(properties)
  })

  test('numbers beyond a double come back exactly as they were', async ({ service }) => {
    for (const number of [
      '9007199254740993',
      '-12345678901234567890',
      '123456789012345678901234567890',
      '0.1234567890123456789',
      '3.14159265358979323846264338327950288',
      '1.0000000000000000001',
    ]) {
      const rawBody = `{"externalId":"numbers","properties":{"n":${number},"list":[${number}]}}`
      const made = await service.send('/v1/persons', { method: 'POST', rawBody })
      expect(made.text).toContain(`"n": ${number}`)
      expect(made.text).toContain(`[${number}]`)
    }
  })
})

describe('400 invalid_request', () => {
  const refused: [what: string, body: string][] = [
    ['no body', ''],
    ['broken JSON', '{"externalId":'],
    ['JSON with something after it', '{"externalId":"a"} x'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a text', '"a"'],
    ['no externalId', '{"properties":{}}'],
    ['an empty externalId', '{"externalId":""}'],
    ['a number as externalId', '{"externalId":123}'],
    ['null as externalId', '{"externalId":null}'],
    ['true as externalId', '{"externalId":true}'],
    ['a list as externalId', '{"externalId":["a"]}'],
    ['an externalId of 201 characters', JSON.stringify({ externalId: 'x'.repeat(201) })],
    ['an externalId of 201 astral characters', JSON.stringify({ externalId: '💩'.repeat(201) })],
    ['U+0000 in the externalId', '{"externalId":"a\\u0000b"}'],
    ['an unpaired surrogate in the externalId', '{"externalId":"\\ud800"}'],
    ['a list as properties', '{"externalId":"a","properties":[]}'],
    ['null as properties', '{"externalId":"a","properties":null}'],
    ['a text as properties', '{"externalId":"a","properties":"x"}'],
    ...['-0', '1.10', '1.0e0', '12345678901234567890'].map((number): [string, string] => [
      `${number} as properties`,
      `{"externalId":"a","properties":${number}}`,
    ]),
    [
      'a number as properties of a large body',
      `{"externalId":"a"${' '.repeat(100_000)},"properties":1.0e0}`,
    ],
    ['an empty key', '{"externalId":"a","properties":{"":1}}'],
    [
      'a key of 201 characters',
      JSON.stringify({ externalId: 'a', properties: { ['k'.repeat(201)]: 1 } }),
    ],
    ['U+0000 in a key', '{"externalId":"a","properties":{"a\\u0000":1}}'],
    ['U+0000 in a value further down', '{"externalId":"a","properties":{"a":[{"b":"\\u0000"}]}}'],
    ['U+0000 in a key further down', '{"externalId":"a","properties":{"a":[{"\\u0000":1}]}}'],
    ['an unpaired surrogate in a value', '{"externalId":"a","properties":{"a":"x\\udc00"}}'],
    ['a field that is not known', '{"externalId":"a","property":{}}'],
    ['a number that is too large', '{"externalId":"a","properties":{"n":1e400}}'],
    ['a number that is too small', '{"externalId":"a","properties":{"n":[1e-400]}}'],
    [
      'a thousand large exponents',
      `{"externalId":"a","properties":{"n":[${'1e300,'.repeat(1_000)}1]}}`,
    ],
    ['21 levels', `{"externalId":"a","properties":{"n":${'['.repeat(20)}${']'.repeat(20)}}}`],
    [
      '200,000 levels',
      `{"externalId":"a","properties":{"n":${'['.repeat(200_000)}${']'.repeat(200_000)}}}`,
    ],
    ['200,000 open lists', '['.repeat(200_000)],
    [
      '1001 keys',
      JSON.stringify({
        externalId: 'a',
        properties: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, 1])),
      }),
    ],
    [
      'more than 256 KiB',
      JSON.stringify({ externalId: 'a', properties: { a: 'x'.repeat(262_144) } }),
    ],
  ]
  for (const [what, rawBody] of refused) {
    test(`refuses ${what} and stores nothing`, async ({ service }) => {
      const answer = await service.send('/v1/persons', { method: 'POST', rawBody })
      expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
      expect((await service.send('/v1/persons')).json.persons).toEqual([])
    })
  }

  test('refuses bytes that are not UTF-8', async ({ service }) => {
    const rawBody = Buffer.concat([
      Buffer.from('{"externalId":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ])
    const answer = await service.send('/v1/persons', { method: 'POST', rawBody })
    expect([answer.status, answer.json.error.code]).toEqual([400, 'invalid_request'])
  })

  test('never repeats a value or a key that was sent', async ({ service }) => {
    for (const [, rawBody] of refused) {
      const withCanary = rawBody.replace(
        '"properties":{',
        '"properties":{"secretcanary":"valuecanary",',
      )
      const answer = await service.send('/v1/persons', { method: 'POST', rawBody: withCanary })
      expect(answer.text).not.toMatch(/canary/)
    }
  })
})

describe('limits after the merge', () => {
  const post = (service: Service, properties: object) =>
    service.send('/v1/persons', { method: 'POST', body: { externalId: 'full', properties } })

  test('1000 keys and exactly 256 KiB are taken, one more is refused and nothing applied', async ({
    service,
  }) => {
    const thousand = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, i]))
    expect((await post(service, thousand)).status).toBe(201)
    expect((await post(service, { one: 1, k0: 'changed' })).status).toBe(400)
    expect((await service.send('/v1/persons/full')).json.person.properties).toEqual(thousand)
    expect((await post(service, { one: 1, k0: null })).status).toBe(200)

    const empty = JSON.stringify({ a: '', b: [1, 2, 3] }).length
    const exact = { a: 'x'.repeat(262_144 - empty), b: [1, 2, 3] }
    const send = (properties: object) =>
      service.send('/v1/persons', { method: 'POST', body: { externalId: 'large', properties } })
    expect((await send(exact)).status).toBe(201)
    expect((await send({ c: 1 })).status).toBe(400)
    expect((await send({ ...exact, a: `${exact.a}x` })).status).toBe(400)
    expect((await service.send('/v1/persons/large')).json.person.properties).toEqual(exact)
  })

  test('20 levels are taken', async ({ service }) => {
    const rawBody = `{"externalId":"deep","properties":{"n":${'['.repeat(19)}${']'.repeat(19)}}}`
    expect((await service.send('/v1/persons', { method: 'POST', rawBody })).status).toBe(201)
  })
})

describe('409 person_being_deleted', () => {
  test('while its deletion is in progress, also for a POST that would change nothing', async ({
    service,
  }) => {
    await service.call(createPerson, { body: { externalId: 'going', properties: { a: 1 } } })
    await service.send('/v1/persons/going', { method: 'DELETE' })
    for (const properties of [{ a: 2 }, { a: 1 }, {}]) {
      const answer = await service.send('/v1/persons', {
        method: 'POST',
        body: { externalId: 'going', properties },
      })
      expect([answer.status, answer.json.error.code]).toEqual([409, 'person_being_deleted'])
    }
    expect((await service.send('/v1/persons/going')).json.person.properties).toEqual({ a: 1 })
  })
})

describe('413 and 415', () => {
  test('a body that does not say its length: in pieces, too large, and broken off', async ({
    service,
    project,
  }) => {
    const post = (pieces: string[], isWhole = true) =>
      new Promise<number | string>((resolve) => {
        const { secretKey } = project
        const headers = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' }
        const outgoing = request(`${service.url}/v1/persons`, { method: 'POST', headers })
        outgoing.on('response', (answer) => resolve(answer.resume().statusCode ?? 0))
        outgoing.on('error', () => resolve('no answer'))
        const write = async () => {
          for (const piece of pieces) {
            outgoing.write(piece)
            await sleep(30)
          }
          if (isWhole) outgoing.end()
          else outgoing.destroy()
        }
        void write()
      })
    expect(await post(['{"external', 'Id":"in pieces","prop', 'erties":{"a":"é"}}'])).toBe(201)
    const large = ' '.repeat(300_000)
    expect(await post([large, large, large, large, '{"externalId":"large"}'])).toBe(413)
    expect(await post(['{"externalId":"broken"', '}'], false)).toBe('no answer')
    const { json } = await service.send('/v1/persons')
    const ids = json.persons.map(({ externalId }: { externalId: string }) => externalId)
    expect(ids).toEqual(['in pieces'])
    expect(service.logged()).not.toContain('"status":500')
  })

  test('a body of more than 1 MiB is payload_too_large', async ({ service }) => {
    const answer = await service.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'a', properties: { a: 'x'.repeat(1_048_576) } },
    })
    expect([answer.status, answer.json.error.code]).toEqual([413, 'payload_too_large'])
  })

  for (const headers of [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-encoding': 'gzip' },
  ] as Record<string, string>[]) {
    test(`${JSON.stringify(headers)} is unsupported_media_type`, async ({ service }) => {
      const answer = await service.send('/v1/persons', {
        method: 'POST',
        body: { externalId: 'a' },
        headers,
      })
      expect([answer.status, answer.json.error.code]).toEqual([415, 'unsupported_media_type'])
    })
  }

  test('application/json with a charset of UTF-8 is taken', async ({ service }) => {
    const answer = await service.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'é' },
      headers: { 'content-type': 'application/json; charset=UTF-8' },
    })
    expect(answer.status).toBe(201)
  })
})
