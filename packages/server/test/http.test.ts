import { connect as connectSocket } from 'node:net'
import { createPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { connect } from '../src/sql.ts'
import { type Service, startService, test } from './fixtures.ts'

/** Sends bytes as they are and returns all that comes back until the server closes. */
function speak(service: Service, bytes: string): Promise<string> {
  const { hostname, port } = new URL(service.url)
  return new Promise((resolve, reject) => {
    const socket = connectSocket({ host: hostname, port: Number(port) })
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('close', () => resolve(received))
    socket.on('error', reject)
    socket.write(bytes)
  })
}

describe('404 not_found', () => {
  test('for an unknown path, in the common error shape', async ({ service }) => {
    for (const path of [
      '/v1/no-such-thing',
      '/v1',
      '/v1/',
      '/v2/persons',
      '/V1/persons',
      '/v1//persons',
      '/v1/persons/a/b',
      '/v1/persons/a/',
      '/nothing.php',
    ]) {
      const answer = await service.send(path)
      expect([answer.status, answer.json?.error.code], path).toEqual([404, 'not_found'])
      expect(answer.json).toEqual({
        error: {
          code: 'not_found',
          message: expect.any(String),
          requestId: answer.headers.get('x-request-id'),
        },
      })
      expect(answer.text).not.toContain('no-such')
    }
  })
})

describe('405 method_not_allowed', () => {
  for (const [method, path, allow] of [
    ['PUT', '/v1/persons', ['GET', 'HEAD', 'POST']],
    ['DELETE', '/v1/persons', ['GET', 'HEAD', 'POST']],
    ['POST', '/v1/persons/a%2Fb', ['DELETE', 'GET', 'HEAD', 'PATCH']],
    ['PUT', '/v1/persons/a?x=1', ['DELETE', 'GET', 'HEAD', 'PATCH']],
    ['DELETE', '/v1/deletion-jobs/x', ['GET', 'HEAD']],
    ['OPTIONS', '/v1/persons', ['GET', 'HEAD', 'POST']],
    ['POST', '/health/live', ['GET', 'HEAD']],
  ] as const) {
    test(`${method} ${path}`, async ({ service }) => {
      const answer = await service.send(path, { method })
      expect([answer.status, answer.json.error.code]).toEqual([405, 'method_not_allowed'])
      const allowed = answer.headers.get('allow')?.split(', ').sort()
      expect(allowed).toEqual(expect.arrayContaining([...allow]))
      expect(allowed).not.toContain(method)
    })
  }
})

describe('414 uri_too_long', () => {
  test('for a URL of more than 8 KiB, and for a much larger one', async ({ service }) => {
    for (const length of [8_200, 20_000, 40_000]) {
      const answer = await service.send(`/v1/persons/${'x'.repeat(length)}`)
      expect([answer.status, answer.json.error.code], String(length)).toEqual([414, 'uri_too_long'])
    }
  })
})

describe('what is no HTTP', () => {
  for (const [what, bytes, status, code] of [
    ['rubbish', 'rubbish\r\n\r\n', 400, 'invalid_request'],
    [
      'a header without a colon',
      'GET /v1/persons HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n',
      400,
      'invalid_request',
    ],
    [
      'two lengths',
      'POST /v1/persons HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
      'invalid_request',
    ],
    [
      'a length and chunks',
      'POST /v1/persons HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'invalid_request',
    ],
    [
      'a space in the path',
      'GET /v1/persons/a b HTTP/1.1\r\nHost: x\r\n\r\n',
      400,
      'invalid_request',
    ],
    [
      'too many headers',
      `GET /v1/persons HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(40_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
  ] as const) {
    test(`${what} gets an error of the one shape`, async ({ service }) => {
      const answer = await speak(service, bytes)
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
      expect(body.error).toEqual({
        code,
        message: expect.any(String),
        requestId: expect.any(String),
      })
      expect(answer).toContain(`X-Request-Id: ${body.error.requestId}`)
      expect((await service.send('/v1/persons')).status).toBe(200)
    })
  }

  test('a request that breaks off leaves the service running and nothing stored', async ({
    service,
    project,
  }) => {
    const { hostname, port } = new URL(service.url)
    for (const part of [
      'POST /v1/persons HT',
      `POST /v1/persons HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${project.secretKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"externalId":"half`,
    ]) {
      const socket = connectSocket({ host: hostname, port: Number(port) })
      await new Promise<void>((resolve) => socket.write(part, () => resolve()))
      socket.destroy()
    }
    expect((await service.send('/v1/persons')).json.persons).toEqual([])
  })
})

test('every response has its own request id, and one that was sent is ignored', async ({
  service,
}) => {
  const ids = new Set<string | null>()
  for (const path of [
    '/v1/persons',
    '/v1/persons/x',
    '/nowhere',
    '/health/live',
    '/v1/persons/%zz',
  ]) {
    const answer = await service.send(path, { headers: { 'x-request-id': 'ada@example.com' } })
    ids.add(answer.headers.get('x-request-id'))
  }
  expect(ids.size).toBe(5)
  expect(ids.has('ada@example.com')).toBe(false)
  expect(ids.has(null)).toBe(false)
})

test('the server API sends no CORS headers', async ({ service }) => {
  const answer = await service.send('/v1/persons', { headers: { origin: 'https://example.com' } })
  expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
})

describe('503 unavailable', () => {
  test('while the database is down, with Retry-After, and recovery without a restart', async ({
    db,
    address,
    project,
  }) => {
    const { client, end } = await (await import('../src/sql.ts')).connectOne({
      ...address,
      database: 'postgres',
    })
    // A proxy of the test's own would be one more thing to trust: the database itself refuses.
    const own = connect({ connection: address })
    const service = await startService(own, address, project)
    const post = (externalId: string) =>
      service.send('/v1/persons', { method: 'POST', body: { externalId } })
    expect((await post('before')).status).toBe(201)

    await client.query(`alter database ${address.database} allow_connections false`)
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${address.database}'`,
    )
    for (const path of [
      '/v1/persons',
      '/v1/persons/before',
      '/v1/persons?search=b',
      '/health/ready',
    ]) {
      await expect
        .poll(async () => (await service.send(path)).status, { timeout: 20_000 })
        .toBe(503)
      const answer = await service.send(path)
      expect([answer.json.error.code, answer.headers.get('retry-after')]).toEqual([
        'unavailable',
        '1',
      ])
    }
    expect((await post('meanwhile')).status).toBe(503)
    expect((await service.send('/health/live')).status).toBe(200)

    await client.query(`alter database ${address.database} allow_connections true`)
    await expect
      .poll(async () => (await post('after')).status, { timeout: 20_000 })
      .toBeLessThan(300)
    expect((await service.send('/health/ready')).status).toBe(200)
    expect((await service.send('/v1/persons?search=before')).json.persons).toHaveLength(1)
    expect(service.logged()).not.toMatch(/before|meanwhile|after"/)
    await service.close()
    await own.end()
    await end()
    await db.sql`select 1`.catch(() => {})
  })
})

test('no 5xx and no log line repeats what was sent', async ({ service, db, project }) => {
  const canary = 'canary-7f3a'
  await service.call(createPerson, {
    body: {
      externalId: canary,
      properties: { name: canary, email: `${canary}@example.com`, [canary]: canary },
    },
  })
  await db.sql`alter table persons add constraint broken check (not (properties ? 'breaks')) not valid`
  const broken = await service.send(`/v1/persons/${canary}`, {
    method: 'PATCH',
    body: { properties: { breaks: canary } },
  })
  await db.sql`alter table persons drop constraint broken`
  expect([broken.status, broken.json.error.code]).toEqual([500, 'internal_error'])
  expect(broken.text).not.toContain(canary)
  for (const path of [
    `?search=${canary}`,
    `/${canary}`,
    `/${canary}?x=${canary}`,
    `/${canary}/x`,
    `?cursor=${canary}`,
  ]) {
    await service.send(`/v1/persons${path}`)
  }
  await service.send('/v1/persons', { method: 'POST', rawBody: `{"externalId":"${canary}` })
  await service.send('/v1/persons', { headers: { authorization: `Bearer ${canary}` }, key: null })
  expect(service.logged()).toContain('request.fault')
  expect(service.logged()).toContain('/v1/persons/:externalId')
  expect(service.logged()).not.toContain(canary)
  expect(service.logged()).not.toContain(project.secretKey)
  expect(await service.metrics.registry.metrics()).not.toContain(canary)
})

test('/metrics counts requests by route pattern', async ({ service }) => {
  await service.send('/v1/persons/someone')
  const { text } = await service.send('/metrics', { key: null })
  expect(text).toMatch(
    /lethe_http_request_seconds_count\{method="GET",route="\/v1\/persons\/:externalId",status="404"\} 1/,
  )
  expect(text).not.toContain('someone')
})

test('/docs shows the API and asks no other host for anything', async ({ service }) => {
  const page = await service.send('/docs/', { key: null })
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const urls = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url as string)
  expect(urls.length).toBeGreaterThan(3)
  expect(urls.filter((url) => /^(?:https?:)?\/\//.test(url))).toEqual([])
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/https?:|[a-z]+\.[a-z]+|\*/)
  const document = await service.send('/docs/json', { key: null })
  expect(Object.keys(document.json.paths)).toContain('/v1/persons/{externalId}')
})
