import { METHODS } from 'node:http'
import { connect } from 'node:net'
import { listPersons } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { type Service, test } from './fixtures.ts'

/** Sends bytes as they are, in turns, and returns all that comes back until the server closes. */
function speak(service: Service, ...turns: (string | ((received: string) => boolean))[]) {
  const { hostname, port } = new URL(service.url)
  return new Promise<string>((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    let received = ''
    const step = () => {
      for (;;) {
        const turn = turns[0]
        if (turn === undefined) return
        if (typeof turn === 'function' && !turn(received)) return
        turns.shift()
        if (turn === half) socket.end()
        else if (typeof turn === 'string') socket.write(turn)
      }
    }
    socket.on('data', (part) => {
      received += part
      step()
    })
    socket.on('connect', step)
    socket.on('end', () => {
      socket.end()
      resolve(received)
    })
    socket.on('error', reject)
  })
}

const half = 'the client closes its half'

function head(method: string, path: string, headers: Record<string, string | number | undefined>) {
  const lines = Object.entries({ Host: 'x', Connection: 'close', ...headers })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The statuses that came back, those before the last one too, and the last one's body. */
function read(received: string) {
  const statuses = [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) =>
    Number(status),
  )
  const body = received.slice(received.lastIndexOf('\r\n\r\n') + 4)
  return { statuses, json: body === '' ? undefined : JSON.parse(body) }
}

const json = { 'Content-Type': 'application/json' }

describe('Expect: 100-continue', () => {
  const expectation = { ...json, Expect: '100-continue' }

  for (const [what, path, headers, status] of [
    ['no key', '/v1/persons', { ...expectation, 'Content-Length': 20 }, 401],
    ['a body too large', '/v1/persons', { ...expectation, 'Content-Length': 8_000_000 }, 413],
    ['a path that is none', '/v1/nothing', { ...expectation, 'Content-Length': 20 }, 404],
    [
      'a wrong type',
      '/v1/persons',
      { ...expectation, 'Content-Type': 'text/csv', 'Content-Length': 20 },
      415,
    ],
    ['a query that is broken', '/v1/persons?a=%zz', { ...expectation, 'Content-Length': 20 }, 400],
  ] as const) {
    test(`gets no 100 with ${what}`, async ({ service, project }) => {
      const key = what === 'no key' ? undefined : `Bearer ${project.secretKey}`
      const answer = read(
        await speak(service, head('POST', path, { ...headers, Authorization: key })),
      )
      expect(answer.statuses).toEqual([status])
      expect(answer.json.error.requestId).toEqual(expect.any(String))
    })
  }

  test('gets a 100, and then the response', async ({ service, project }) => {
    const body = '{"externalId":"expected"}'
    const answer = await speak(
      service,
      head('POST', '/v1/persons', {
        ...expectation,
        Authorization: `Bearer ${project.secretKey}`,
        'Content-Length': body.length,
      }),
      (received) => received.includes('100 Continue'),
      body,
    )
    expect(read(answer).statuses).toEqual([100, 201])
  })

  test('of anything else is 417 in the one shape, and nothing is done', async ({
    service,
    project,
  }) => {
    const headers = { ...json, Authorization: `Bearer ${project.secretKey}`, 'Content-Length': 18 }
    const body = '{"externalId":"x"}'
    const answer = read(
      await speak(service, head('POST', '/v1/persons', { ...headers, Expect: 'foo' }) + body),
    )
    expect(answer.statuses).toEqual([417])
    expect(answer.json.error.code).toBe('expectation_failed')
    expect((await service.send('/v1/persons/x')).status).toBe(404)
  })
})

test('a client that closes its half after the request gets the response', async ({
  service,
  project,
}) => {
  const body = '{"externalId":"half"}'
  const headers = {
    ...json,
    Authorization: `Bearer ${project.secretKey}`,
    'Content-Length': body.length,
  }
  const request = head('POST', '/v1/persons', { ...headers, Connection: 'keep-alive' }) + body
  expect(read(await speak(service, request, half)).statuses).toEqual([201])
})

describe('Host', () => {
  for (const [what, request, status] of [
    ['none', 'GET /health/live HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['two', 'GET /health/live HTTP/1.1\r\nHost: a\r\nhost: b\r\nConnection: close\r\n\r\n', 400],
    ['one', 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 200],
    ['none, in HTTP/1.0', 'GET /health/live HTTP/1.0\r\n\r\n', 200],
  ] as const) {
    test(`${what}: ${status}`, async ({ service }) => {
      const { statuses, json } = read(await speak(service, request))
      expect(statuses).toEqual([status])
      if (status === 400) {
        const { code, requestId } = json.error
        expect([code, requestId]).toEqual(['invalid_request', expect.any(String)])
      }
    })
  }
})

test('two keys in one request are refused, whichever of them works', async ({
  service,
  project,
}) => {
  const { secretKey } = project
  for (const [first, second] of [
    [secretKey, 'sk_other'],
    ['sk_other', secretKey],
    [secretKey, secretKey],
  ]) {
    const headers = { Authorization: `Bearer ${first}`, authorization: `Bearer ${second}` }
    const { statuses, json } = read(await speak(service, head('GET', '/v1/persons', headers)))
    expect([statuses, json.error.details?.[0].path]).toEqual([[400], '/headers/authorization'])
  }
})

test('a coding of the body that no one here undoes is refused', async ({ service, project }) => {
  const headers = { ...json, Authorization: `Bearer ${project.secretKey}` }
  const chunked = '12\r\n{"externalId":"x"}\r\n0\r\n\r\n'
  const send = (coding: string) =>
    speak(
      service,
      head('POST', '/v1/persons', { ...headers, 'Transfer-Encoding': coding }) + chunked,
    )
  const refused = read(await send('gzip, chunked'))
  expect([refused.statuses, refused.json.error.details?.[0].path]).toEqual([
    [400],
    '/headers/transfer-encoding',
  ])
  expect(read(await send('Chunked')).statuses).toEqual([201])
})

test('a target that cannot be read is refused with what is wrong with it', async ({
  service,
  project,
}) => {
  const key = { Authorization: `Bearer ${project.secretKey}` }
  for (const [target, words] of [
    ['ftp://x/v1/persons', 'must be a path or an http URL'],
    ['http://', 'must be a path or an http URL'],
    ['http:///v1/persons', 'must be a path or an http URL'],
    ['http://x/v1/persons#y', 'must be a path or an http URL'],
    ['*', 'must be a path or an http URL'],
    ['/v1/persons/%zz', 'invalid percent-encoding'],
    ['http://x/v1/persons/%zz', 'invalid percent-encoding'],
  ] as const) {
    const { statuses, json } = read(await speak(service, head('GET', target, key)))
    expect([target, statuses, json.error.code]).toEqual([target, [400], 'invalid_request'])
    expect([target, json.error.message]).toEqual([target, expect.stringContaining(words)])
  }
})

test('an unsupported method is 405, with the supported ones in Allow', async ({
  service,
  project,
}) => {
  const authorization = `Bearer ${project.secretKey}`
  const others = METHODS.filter((one) => !['GET', 'HEAD', 'POST', 'CONNECT'].includes(one))
  expect(others).toContain('QUERY')
  for (const method of others) {
    const { status, headers, json } = await service.send('/v1/persons', { method })
    expect([status, json?.error.code], method).toEqual([405, 'method_not_allowed'])
    expect(headers.get('allow')?.split(', ').sort()).toEqual(['GET', 'HEAD', 'POST'])
    const nowhere = await service.send('/v1/nothing', { method, headers: { authorization } })
    expect(nowhere.status, method).toBe(404)
  }
})

describe('input that is not known is refused', () => {
  test('a body on GET and DELETE, and nothing is deleted', async ({ service }) => {
    await service.send('/v1/persons', { method: 'POST', body: { externalId: 'a' } })
    for (const method of ['GET', 'DELETE']) {
      for (const rawBody of ['{"keepRecordings":true}', '{}', ' ']) {
        for (const type of ['application/json', 'text/plain']) {
          const answer = await service.send('/v1/persons/a', {
            method,
            rawBody,
            headers: { 'content-type': type },
          })
          expect([answer.status, answer.json.error.details?.[0].path]).toEqual([400, '/body'])
        }
      }
      const chunked = await service.send('/v1/persons/a', {
        method,
        headers: { 'transfer-encoding': 'chunked' },
      })
      expect(chunked.status).toBe(400)
    }
    expect((await service.send('/v1/persons/a')).status).toBe(200)
    expect((await service.send('/v1/deletion-jobs')).json.jobs).toEqual([])
  })

  test('but not a Content-Type without a body', async ({ service }) => {
    await service.send('/v1/persons', { method: 'POST', body: { externalId: 'typed' } })
    for (const [method, status] of [
      ['GET', 200],
      ['DELETE', 202],
    ] as const) {
      const headers = {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': '0',
      }
      expect((await service.send('/v1/persons/typed', { method, headers })).status).toBe(status)
    }
  })

  test('a condition header that the server does not support', async ({ service }) => {
    await service.send('/v1/persons', { method: 'POST', body: { externalId: 'b' } })
    const write = { method: 'PATCH', body: { properties: { x: 1 } } }
    for (const [name, value, requests] of [
      ['if-match', '"1"', [write, { method: 'DELETE' }, {}]],
      ['if-match', '*', [write, { method: 'DELETE' }]],
      ['if-unmodified-since', 'Sat, 01 Jan 2000 00:00:00 GMT', [write, { method: 'DELETE' }]],
      ['if-none-match', '*', [write, { method: 'DELETE' }]],
    ] as const) {
      for (const request of requests) {
        const answer = await service.send('/v1/persons/b', {
          ...request,
          headers: { [name]: value },
        })
        expect([answer.status, answer.json.error.details]).toEqual([
          400,
          [{ path: `/headers/${name}`, issue: expect.any(String) }],
        ])
      }
    }
    expect((await service.send('/v1/persons/b')).json.person.properties).toEqual({})
    const whole = await service.send('/v1/persons/b', { headers: { 'if-none-match': '"x"' } })
    expect(whole.status).toBe(200)
  })

  test('Content-Encoding: Identity is no encoding, in any case', async ({ service }) => {
    for (const [encoding, status] of [
      ['Identity', 200],
      ['identity', 200],
      ['gzip', 415],
    ] as const) {
      await service.send('/v1/persons', { method: 'POST', body: { externalId: 'c' } })
      const answer = await service.send('/v1/persons', {
        method: 'POST',
        body: { externalId: 'c' },
        headers: { 'content-encoding': encoding },
      })
      expect([encoding, answer.status]).toEqual([encoding, status])
    }
  })
})

test('responses of the server API are never cached and never sniffed', async ({ service }) => {
  for (const [path, key] of [
    ['/v1/persons', undefined],
    ['/v1/persons/x', undefined],
    ['/v1/persons', null],
    ['/v1/nothing', undefined],
    ['/v1/persons/%zz', undefined],
    ['/v1/persons?limit=x', undefined],
  ] as const) {
    const { headers } = await service.send(path, key === null ? { key } : {})
    expect([headers.get('cache-control'), headers.get('x-content-type-options')], path).toEqual([
      'no-store',
      'nosniff',
    ])
  }
})

test('a raw + in an externalId of a query is refused, as it may be meant; a search takes it', async ({
  service,
}) => {
  for (const externalId of ['a+b@x.example', 'a b@x.example']) {
    await service.send('/v1/persons', { method: 'POST', body: { externalId } })
  }
  for (const path of ['/v1/persons', '/v1/deletion-jobs']) {
    for (const name of ['externalId', 'external%49d']) {
      expect((await service.send(`${path}?${name}=a+b@x.example`)).status).toBe(400)
    }
  }
  const idsOf = async (query: string) => {
    const { persons } = (await service.send(`/v1/persons?${query}`)).json
    return (persons as { externalId: string }[]).map((person) => person.externalId)
  }
  expect(await idsOf('externalId=a%2Bb@x.example')).toEqual(['a+b@x.example'])
  expect(await idsOf('externalId=a%20b@x.example')).toEqual(['a b@x.example'])
  expect(await idsOf('search=a+b')).toEqual(['a b@x.example'])
  for (const externalId of ['a+b@x.example', 'a b@x.example']) {
    const { body } = await service.call(listPersons, { query: { externalId, limit: 1 } })
    expect(body.persons.map((person) => person.externalId)).toEqual([externalId])
  }
})

test('a raw # is refused: what follows it would be lost, and another person meant', async ({
  service,
  project,
}) => {
  for (const externalId of ['a', 'a#']) {
    await service.send('/v1/persons', { method: 'POST', body: { externalId } })
  }
  const key = { Authorization: `Bearer ${project.secretKey}` }
  for (const method of ['GET', 'DELETE']) {
    const answer = read(await speak(service, head(method, '/v1/persons/a#', key)))
    expect(answer).toMatchObject({ statuses: [400], json: { error: { code: 'invalid_request' } } })
  }
  expect((await service.send('/v1/persons/a')).status).toBe(200)
  expect((await service.send('/v1/persons/a%23', { method: 'DELETE' })).status).toBe(202)
  expect((await service.send('/v1/deletion-jobs?externalId=a')).json).toMatchObject({ jobs: [] })
})
