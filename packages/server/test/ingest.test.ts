import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { describe, expect } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { networkOf } from '../src/http/network.ts'
import { createKey, revokeKey } from '../src/projects/store.ts'
import { isAllowed } from '../src/recordings/ingest-gate.ts'
import { setAllowedOrigins } from '../src/recordings/ingest-store.ts'
import { type Answer, newProject, sendRaw } from './fixtures.ts'
import { events, startIngesting, test } from './recordings-fixtures.ts'

/** A response without what is of its own each time. */
function comparable({ status, text, headers }: Answer) {
  const kept = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')
  return { status, text: text.replace(/"requestId":"[^"]+"/, ''), headers: kept }
}

describe('start', () => {
  test('gives a new browser its id, a session, and what the project decides', async ({
    ingesting,
    db,
    project,
  }) => {
    await db.sql`
      update projects set masking = 'strict', sample_rate = 0.25 where id = ${project.id}`
    const { status, json } = await ingesting.ingest(
      'start',
      { url: 'https://shop.example/cart', sdkVersion: '1.2.3' },
      { headers: { 'user-agent': 'a browser' } },
    )
    expect(status).toBe(200)
    expect(json).toEqual({
      next: 'continue',
      browserId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      sessionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      settings: {
        masking: 'strict',
        assets: true,
        sampleRate: 0.25,
        sessionIdleSeconds: 1_800,
        sessionMaximumSeconds: 86_400,
        chunkBytesMaximum: 1_048_576,
      },
    })
    const { json: read } = await ingesting.send(`/v1/sessions/${json.sessionId}`)
    expect(read.session).toMatchObject({
      browserId: json.browserId,
      url: 'https://shop.example/cart',
      userAgent: 'a browser',
      sdkVersion: '1.2.3',
      chunks: 0,
      lastChunkAt: null,
      beforeIdentification: false,
    })
  })

  test('gives a known browser another session', async ({ ingesting }) => {
    const first = await ingesting.start()
    const second = await ingesting.start(first.browserId)
    expect(second.browserId).toBe(first.browserId)
    expect(second.sessionId).not.toBe(first.sessionId)
  })

  test("gives the same response for a browser that is unknown, malformed, retired or another project's", async ({
    ingesting,
    db,
    project,
  }) => {
    const other = await newProject(db)
    const { json: foreign } = await ingesting.ingest('start', {}, { key: other.publicKey })
    const retired = await ingesting.start()
    await db.sql`
      update browsers set retired = true
      where project_id = ${project.id} and id = ${retired.browserId}`
    const ids = [randomUUID(), 'x', '', retired.browserId, foreign.browserId]
    const answers = await Promise.all(
      ids.map((browserId) => ingesting.ingest('start', { browserId })),
    )
    for (const answer of answers) expect(comparable(answer)).toEqual(comparable(answers[0]!))
    expect(answers[0]).toMatchObject({
      status: 410,
      json: { error: { code: 'browser_retired' }, next: 'new_browser' },
    })
  })

  test('refuses what cannot be stored, and tells the SDK to go on', async ({ ingesting }) => {
    const bodies: [body: unknown, status: number, code: string][] = [
      [{ url: 'a\u0000b' }, 400, 'invalid_request'],
      [{ url: 'x'.repeat(2_049) }, 400, 'invalid_request'],
      [{ sdkVersion: 'x'.repeat(41) }, 400, 'invalid_request'],
      [{ browserId: 7 }, 400, 'invalid_request'],
      ['{"url":', 400, 'invalid_request'],
      ['[]', 400, 'invalid_request'],
      [Buffer.of(0x22, 0xff, 0x22), 400, 'invalid_request'],
      [' '.repeat(20_000), 413, 'payload_too_large'],
    ]
    for (const [body, status, code] of bodies) {
      const answer = await ingesting.ingest('start', body)
      expect(answer).toMatchObject({ status, json: { error: { code }, next: 'continue' } })
    }
  })
})

describe('the type of a body', () => {
  test('is one that browsers send without asking first, or JSON, or none', async ({
    ingesting,
    project,
  }) => {
    const types = [
      'text/plain',
      'text/plain;charset=UTF-8',
      'application/octet-stream',
      'application/json',
    ]
    for (const type of types) {
      const { status } = await ingesting.ingest('start', {}, { headers: { 'content-type': type } })
      expect(status).toBe(200)
    }
    expect((await ingesting.ingest('start')).status).toBe(200)
    // A beacon of an ArrayBuffer names no type.
    const untyped = await fetch(`${ingesting.url}/ingest/v1/start?key=${project.publicKey}`, {
      method: 'POST',
      body: new TextEncoder().encode('{}'),
    })
    expect(untyped.status).toBe(200)
  })

  test('is refused where it is another, or compressed on the way', async ({ ingesting }) => {
    for (const headers of [
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': 'text/html' },
      { 'content-encoding': 'gzip' },
      { 'content-encoding': 'br' },
    ]) {
      expect(await ingesting.ingest('start', '{}', { headers })).toMatchObject({
        status: 415,
        json: { error: { code: 'unsupported_media_type' }, next: 'continue' },
      })
    }
  })
})

describe('pages of any origin', () => {
  test('can read every response, refusals and faults too, and never with credentials', async ({
    ingesting,
    project,
  }) => {
    const started = await ingesting.start()
    const place = { browser: started.browserId, session: started.sessionId, tab: 't', number: 0 }
    const answers = await Promise.all([
      ingesting.ingest('start', {}),
      ingesting.ingest('start', '{'),
      ingesting.ingest('start', {}, { key: 'pk_x' }),
      ingesting.ingest('start', {}, { key: project.secretKey }),
      ingesting.ingest('start', {}, { method: 'GET' }),
      ingesting.ingest('start', {}, { method: 'PUT' }),
      ingesting.ingest('nothing', {}),
      ingesting.ingest('start', {}, { headers: { 'content-type': 'text/html' } }),
      ingesting.identify(started.browserId, 'ada'),
      ingesting.identify(randomUUID(), 'ada'),
      ingesting.ingest('chunks', events(1), { query: place }),
      ingesting.ingest('chunks', 'x', { query: { ...place, number: 1 } }),
      ingesting.ingest('chunks', 'x', { query: { ...place, tab: '%' } }),
      ingesting.ingest('chunks', Buffer.alloc(1_048_577), { query: place }),
      sendRaw(ingesting.url, '/ingest/v1/start?key=%zz', null, { method: 'POST' }),
      sendRaw(ingesting.url, '/ingest/v1/%zz', null, { method: 'POST' }),
      sendRaw(ingesting.url, `/ingest/v1/start?${'x'.repeat(9_000)}`, null, { method: 'POST' }),
    ])
    expect(answers.map((answer) => answer.status)).toEqual([
      200, 400, 401, 403, 405, 405, 404, 415, 200, 410, 200, 400, 400, 413, 401, 400, 414,
    ])
    for (const { headers, json, status } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      expect(headers.get('access-control-expose-headers')).toContain('retry-after')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('set-cookie')).toBeNull()
      expect(['continue', 'retry', 'new_browser', 'stop']).toContain(json.next)
      if (status >= 400) expect(json.error).toMatchObject({ code: expect.any(String) })
    }
  })

  test('may ask first, though they need not', async ({ ingesting }) => {
    const answer = await ingesting.ingest('chunks', undefined, {
      method: 'OPTIONS',
      headers: { origin: 'https://shop.example', 'access-control-request-method': 'POST' },
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('access-control-allow-headers')).toContain('content-type')
  })

  test('may add headers of their own, or what measures them may', async ({ ingesting }) => {
    const asked = 'content-type,traceparent,x-datadog-origin'
    const answer = await ingesting.ingest('start', undefined, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://shop.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBe(asked)
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    const started = await ingesting.ingest('start', {}, { headers: { traceparent: '00-a-b-01' } })
    expect(started.status).toBe(200)
  })

  test('cannot read the server API', async ({ ingesting }) => {
    const { sessionId } = await ingesting.start()
    for (const path of ['/v1/persons', `/v1/sessions/${sessionId}/events`]) {
      const answer = await ingesting.send(path, { headers: { origin: 'https://shop.example' } })
      expect(answer.status).toBe(200)
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    }
  })
})

describe('the public key', () => {
  test('is required and has to be valid; without one the SDK stops', async ({
    ingesting,
    db,
    project,
  }) => {
    const { key, text } = await createKey(db.sql, project.id, 'public', 'revoked')
    await revokeKey(db.sql, key.id, 0)
    const never = (await createKey(db.sql, project.id, 'public', 'x')).text.replace('pk_', 'pk_0')
    for (const wrong of ['', 'pk_', 'x', never, text]) {
      expect(await ingesting.ingest('start', {}, { key: wrong })).toMatchObject({
        status: 401,
        json: { error: { code: 'unauthorized' }, next: 'stop' },
      })
    }
    const twice = await sendRaw(
      ingesting.url,
      `/ingest/v1/start?key=${project.publicKey}&key=${project.publicKey}`,
      null,
      { method: 'POST', rawBody: '{}' },
    )
    expect(twice.status).toBe(401)
  })

  test('is never a secret key: a page that has one gets an error that says so', async ({
    ingesting,
    project,
  }) => {
    const broken = `${project.secretKey.slice(0, -1)}_`
    for (const key of [project.secretKey, broken]) {
      const { status, json } = await ingesting.ingest('start', {}, { key })
      expect({ status, next: json.next, code: json.error.code }).toEqual({
        status: 403,
        next: 'stop',
        code: 'forbidden',
      })
      expect(json.error.message).toMatch(/secret key.*revoke/)
    }
  })

  test('works from its origins only, where it has some', async ({ ingesting, db, project }) => {
    const { key, text } = await createKey(db.sql, project.id, 'public', 'limited')
    const origins = ['https://shop.example', 'https://*.apps.example']
    expect(await setAllowedOrigins(db.sql, project.id, key.id, origins)).toBe(true)
    const from = async (origin?: string) => {
      const headers = origin === undefined ? {} : { origin }
      return (await ingesting.ingest('start', {}, { key: text, headers })).status
    }
    expect(await from('https://shop.example')).toBe(200)
    expect(await from('https://one.apps.example')).toBe(200)
    expect(await from('https://apps.example.evil')).toBe(403)
    expect(await from('http://shop.example')).toBe(403)
    expect(await from('null')).toBe(403)
    expect(await from()).toBe(403)
    const { json } = await ingesting.ingest('start', {}, { key: text })
    expect(json.next).toBe('stop')
  })

  test('takes chunks of a page that hides its origin, into a session of an allowed one', async ({
    ingesting,
    db,
    project,
  }) => {
    const { key, text } = await createKey(db.sql, project.id, 'public', 'limited')
    await setAllowedOrigins(db.sql, project.id, key.id, ['https://shop.example'])
    const { json } = await ingesting.ingest(
      'start',
      {},
      {
        key: text,
        headers: { origin: 'https://shop.example' },
      },
    )
    const from = async (number: number, headers: Record<string, string>) => {
      const query = { browser: json.browserId, session: json.sessionId, tab: 'tab', number }
      return (await ingesting.ingest('chunks', events(1), { key: text, query, headers })).status
    }
    expect(await from(0, { origin: 'null' })).toBe(200)
    expect(await from(1, {})).toBe(200)
    expect(await from(2, { origin: 'https://shop.example' })).toBe(200)
    expect(await from(3, { origin: 'https://evil.example' })).toBe(403)
  })

  test('and its origins are compared whole', () => {
    const allowed = ['https://*.a.example', 'https://b.example:8443']
    expect(isAllowed('https://x.a.example', allowed)).toBe(true)
    expect(isAllowed('https://x.y.a.example', allowed)).toBe(true)
    expect(isAllowed('https://a.example', allowed)).toBe(false)
    expect(isAllowed('https://xa.example', allowed)).toBe(false)
    expect(isAllowed('http://x.a.example', allowed)).toBe(false)
    expect(isAllowed('https://x.a.example.evil', allowed)).toBe(false)
    expect(isAllowed('https://b.example:8443', allowed)).toBe(true)
    expect(isAllowed('https://b.example', allowed)).toBe(false)
    expect(isAllowed('https://b.example', [])).toBe(false)
    expect(isAllowed(undefined, null)).toBe(true)
  })
})

describe('limits', () => {
  test('hold for an address, and say when to come back', async ({
    recordings,
    address,
    project,
  }) => {
    const service = await startIngesting(recordings, address, project, {
      ingestLimits: { perAddress: 1, perProject: 0 },
    })
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) statuses.push((await service.ingest('start', {})).status)
    // A fifth of ten at once for new sessions.
    expect(statuses).toContain(429)
    expect(statuses.slice(0, 2)).toEqual([200, 200])
    const refused = await service.ingest('start', {})
    expect(refused.json).toMatchObject({ error: { code: 'rate_limited' }, next: 'retry' })
    expect(refused.json.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(refused.headers.get('retry-after')).toBe(String(refused.json.retryAfterSeconds))
    await service.close()
  })

  test('tell visitors behind a trusted proxy apart, and believe nobody else', async ({
    recordings,
    address,
    project,
  }) => {
    const ingestLimits = { perAddress: 5, perProject: 0 }
    let logged = ''
    const statusesOf = async (trustProxy: number) => {
      const service = await startIngesting(recordings, address, project, {
        ingestLimits,
        trustProxy,
      })
      const statuses = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          service.ingest('start', {}, { headers: { 'x-forwarded-for': `10.0.0.${i}` } }),
        ),
      )
      logged += service.logged()
      await service.close()
      return statuses.filter((answer) => answer.status === 429).length
    }
    expect(await statusesOf(1)).toBe(0)
    expect(logged).not.toContain('proxy_not_trusted')
    expect(await statusesOf(0)).toBeGreaterThan(0)
    // An operator who forgot the setting is told, once.
    expect(logged.split('ingest.proxy_not_trusted').length - 1).toBe(1)
  })

  test('hold for a project, whatever the addresses', async ({
    recordings,
    address,
    project,
    db,
  }) => {
    const other = await newProject(db)
    const service = await startIngesting(recordings, address, project, {
      ingestLimits: { perAddress: 0, perProject: 1 },
      trustProxy: 1,
    })
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        service.ingest('start', {}, { headers: { 'x-forwarded-for': `10.0.0.${i}` } }),
      ),
    )
    expect(answers.filter((answer) => answer.status === 429).length).toBeGreaterThan(0)
    expect((await service.ingest('start', {}, { key: other.publicKey })).status).toBe(200)
    await service.close()
  })

  test('take a /64 of IPv6 for one visitor', () => {
    expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe(networkOf('2001:db8:1:2::9'))
    expect(networkOf('2001:db8:1:2::9')).not.toBe(networkOf('2001:db8:1:3::9'))
    expect(networkOf('::ffff:192.0.2.1')).toBe('192.0.2.1')
    expect(networkOf('192.0.2.1')).toBe('192.0.2.1')
    expect(networkOf('::1')).toBe('0:0:0:0')
  })
})

test('no log line has a URL, a user id, a key or what was recorded', async ({
  ingesting,
  project,
}) => {
  const url = 'https://shop.example/canary-url'
  const { json } = await ingesting.ingest('start', { url })
  await ingesting.identify(json.browserId, 'canary-user')
  await ingesting.ingest('identify', { browserId: 'canary-browser', userId: 'canary-user' })
  await ingesting.chunk(json, '{"text":"canary-text"}')
  await ingesting.chunk({ ...json, number: 1 }, 'canary-text')
  await ingesting.ingest('start', '{"canary-body"')
  expect(ingesting.logged()).toContain('/ingest/v1/chunks')
  expect(ingesting.logged()).not.toMatch(/canary/)
  expect(ingesting.logged()).not.toContain(project.publicKey)
})

test('while the blob store is away nothing is lost: the SDK is told to send it again', async ({
  recordings,
  address,
  project,
}) => {
  let isAway = false
  const { blobs } = recordings
  const unlessAway = async (work: () => Promise<void>) => {
    if (isAway) throw new BlobFault('unreachable', 'away')
    await work()
  }
  const service = await startIngesting(
    {
      ...recordings,
      blobs: {
        ...blobs,
        open: (prefix) => unlessAway(() => blobs.open(prefix)),
        put: (key, bytes, signal) => unlessAway(() => blobs.put(key, bytes, signal)),
        delete: (keys) => unlessAway(() => blobs.delete(keys)),
      },
    },
    address,
    project,
  )
  const started = await service.start()
  isAway = true
  for (const answer of [await service.ingest('start', {}), await service.chunk(started)]) {
    expect(answer).toMatchObject({
      status: 503,
      json: { error: { code: 'unavailable' }, next: 'retry', retryAfterSeconds: 10 },
    })
    expect(answer.headers.get('retry-after')).toBe('10')
  }
  isAway = false
  expect((await service.chunk(started)).status).toBe(200)
  await service.close()
})

test('the response is the same while the database is down', async ({
  address,
  project,
  recordings,
}) => {
  const { connect } = await import('../src/sql.ts')
  const refusing = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve))
  const { port } = refusing.address() as { port: number }
  const db = connect({ connection: { ...address, host: '127.0.0.1', port } })
  const service = await startIngesting({ ...recordings, db }, address, project)
  expect(await service.ingest('start', {})).toMatchObject({
    status: 503,
    json: { error: { code: 'unavailable' }, next: 'retry' },
  })
  await service.close()
  await db.end()
  refusing.close()
})
