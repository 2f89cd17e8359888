import { randomUUID } from 'node:crypto'
import type { RouteOptions } from 'fastify'
import { describe, expect } from 'vitest'
import { bodyReader } from '../src/http/arrivals.ts'
import { answerTo } from '../src/http/callers.ts'
import { httpServer } from '../src/http/server.ts'
import { createLog } from '../src/log.ts'
import { access } from '../src/members/access.ts'
import { createMetrics } from '../src/metrics.ts'
import { createKey, revokeKey } from '../src/projects/store.ts'
import { type Dashboard, test } from './dashboard-fixtures.ts'
import { newProject, sendRaw } from './fixtures.ts'
import { isDeep } from './proof/deep.ts'

/** Who may call what, written down a second time and by hand; the first pattern that fits decides. */
const expected: [pattern: RegExp, caller: string][] = [
  [/^\/v1(\/|$)/, 'secret key'],
  [/^\/ingest\/v1\/(start|identify|chunks|withdraw)$/, 'public key'],
  [/^\/ingest\/\*$/, 'anyone'],
  [/^\/dashboard\/v1\//, 'member'],
  [/^\/docs(\/|$)/, 'anyone'],
  [/^\/health\/(live|ready)$/, 'anyone'],
  [/^\/metrics$/, 'anyone'],
  [/^\/\.well-known\/jwks\.json$/, 'anyone'],
  [/^\/$/, 'anyone'],
]

interface Call {
  method: string
  path: string
  route: RouteOptions
}

/** Each method of each route, with ids of things that are not there. */
function callsOf({ everyRoute, projectId }: Dashboard, idOf = () => randomUUID() as string) {
  return everyRoute.flatMap((route) =>
    [route.method].flat().map(
      (method): Call => ({
        method,
        route,
        path: route.url
          .replace(':projectId', projectId)
          .replace(/:personId/, '1')
          .replaceAll(/:\w+/g, idOf)
          .replace('*', 'nothing'),
      }),
    ),
  )
}

function send({ url }: Dashboard, { method, path }: Call, key: string | null) {
  const takesBody = ['POST', 'PUT', 'PATCH'].includes(method)
  // As a page of the dashboard would: which pages may, is another question (members.test.ts).
  const headers = { origin: url }
  return sendRaw(url, path, key, { method, headers, ...(takesBody && { body: { unknown: true } }) })
}

describe('who may call a route', () => {
  test('is decided for each one, as it is written down', async ({ dashboard }) => {
    const calls = callsOf(dashboard)
    expect(calls.length).toBeGreaterThan(120)
    for (const { route } of calls) {
      const caller = expected.find(([pattern]) => pattern.test(route.url))?.[1]
      expect({ url: route.url, caller: route.config?.caller }).toEqual({ url: route.url, caller })
    }
  })

  test('holds for every route and every caller', async ({ dashboard, db }) => {
    const { project } = dashboard
    const revoked = await createKey(db.sql, project.id, 'secret', 'revoked')
    await revokeKey(db.sql, revoked.key.id, 0)
    const viewer = await dashboard.member('viewer')
    const keys: Record<string, string | null> = {
      nobody: null,
      'a public key': project.publicKey,
      'a revoked key': revoked.text,
      'a secret key': project.secretKey,
      'a key of another project': (await newProject(db)).secretKey,
    }
    const answerOf: Record<string, Record<string, number | undefined>> = {
      'secret key': { nobody: 401, 'a public key': 403, 'a revoked key': 401 },
      'public key': Object.fromEntries(Object.keys(keys).map((who) => [who, 401])),
      member: Object.fromEntries(Object.keys(keys).map((who) => [who, 401])),
      anyone: {},
    }
    const deviations: string[] = []
    for (const call of callsOf(dashboard)) {
      const { route, method, path } = call
      const { operationId = '' } = (route.schema ?? {}) as { operationId?: keyof typeof access }
      const isOpen = operationId !== '' && access[operationId] === 'anyone'
      const caller = isOpen ? 'anyone' : (route.config?.caller ?? '')
      for (const [who, key] of Object.entries(keys)) {
        const { status } = await send(dashboard, call, key)
        const wanted = answerOf[caller]?.[who]
        // The fixture's dashboard is not built, which its first page says.
        const isPage = route.url === '/' && status === 503
        const isLetIn = isPage || (status !== 403 && status < 500)
        const isRight = wanted === undefined ? isLetIn : status === wanted
        // A wrong password is a 401 as well, and an unknown body is looked at before.
        if (!isRight || (wanted === undefined && status === 401)) {
          deviations.push(`${method} ${path} by ${who}: ${status}`)
        }
      }
      if (caller === 'secret key') {
        const cookie = [...viewer.cookies].map((pair) => pair.join('=')).join('; ')
        const { status } = await sendRaw(dashboard.url, path, null, { method, headers: { cookie } })
        if (status !== 401) deviations.push(`${method} ${path} by a member: ${status}`)
      }
    }
    expect(deviations).toEqual([])
  })

  test('is no page but those of the dashboard, whatever it sends with the cookie of a member', async ({
    dashboard,
  }) => {
    const { url } = dashboard
    const owner = await dashboard.member('owner')
    const cookie = [...owner.cookies].map((pair) => pair.join('=')).join('; ')
    const { hostname, port } = new URL(url)
    const origins = [
      undefined,
      'null',
      'file://',
      'https://evil.example',
      `http://${hostname}`,
      `http://${hostname}:${Number(port) + 1}`,
      `http://evil.${hostname}:${port}`,
      `${url}.evil.example`,
      `${url}, ${url}`,
    ]
    const types = [
      'text/plain',
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      undefined,
    ]
    const calls = callsOf(dashboard).filter(
      ({ method, path }) => path.startsWith('/dashboard/') && !['GET', 'HEAD'].includes(method),
    )
    expect(calls.length).toBeGreaterThan(40)
    const letIn: string[] = []
    // The type of a body is no part of the decision: in a normal run each is tried with one origin.
    const pairs = origins.flatMap((origin, at) =>
      types.filter((_, of) => isDeep || of === at % types.length).map((type) => ({ origin, type })),
    )
    for (const { method, path } of calls) {
      for (const { origin, type } of pairs) {
        const headers = { cookie, ...(origin && { origin }), 'content-type': type ?? '' }
        const request = { method, headers, rawBody: '{}' }
        const { status, json } = await sendRaw(url, path, null, request)
        if (status !== 403 || json.error.code !== 'forbidden') {
          letIn.push(`${method} ${path} from ${origin} as ${type}: ${status}`)
        }
      }
      // No form of another origin can send what the dashboard's own pages send.
      const plain = { cookie, origin: url, 'content-type': 'text/plain' }
      const { status } = await sendRaw(url, path, null, { method, headers: plain, rawBody: '{}' })
      if (status < 400) letIn.push(`${method} ${path} as text: ${status}`)
    }
    expect(letIn).toEqual([])
  })

  test('is no fault with an id that cannot be one', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const cookie = [...owner.cookies].map((pair) => pair.join('=')).join('; ')
    const { url, project } = dashboard
    const faults: string[] = []
    for (const id of ['x', '%00', '-'.repeat(36)]) {
      const calls = callsOf(dashboard, () => id).filter(({ path }) => path.includes(id))
      expect(calls.length).toBeGreaterThan(30)
      for (const { method, path } of calls) {
        const isOfMembers = path.startsWith('/dashboard/')
        const key = isOfMembers ? null : project.secretKey
        const headers = isOfMembers ? { origin: url, cookie } : {}
        const { status } = await sendRaw(url, path, key, { method, headers })
        if (status >= 500) faults.push(`${method} ${path}: ${status}`)
      }
    }
    expect(faults).toEqual([])
  })

  test('is the same however its URL is written', async ({ dashboard }) => {
    const { project, url } = dashboard
    const spellings: ((path: string) => string)[] = [
      (path) => path.replace('/v1', '/%761'),
      (path) => path.replace('/v1', '/%76%31'),
      (path) => path.replace('/v1/p', '/v1/%70'),
      (path) => path.replace('/v1/d', '/v1/%64'),
      (path) => `http://x${path}`,
      (path) => `HTTP://${new URL(url).host}${path}`,
      (path) => `http://x${path.replace('/v1', '/%761')}`,
      (path) => `${path}?a=%zz`,
      (path) => `${path}#/docs`,
    ]
    const calls = callsOf(dashboard).filter(({ route }) => route.config?.caller === 'secret key')
    expect(calls.length).toBeGreaterThan(20)
    for (const [at, call] of calls.entries()) {
      // What takes a path apart does not know the route: in a normal run each has a third of them.
      for (const spell of spellings.filter((_, of) => isDeep || (of - at) % 3 === 0)) {
        const path = spell(call.path)
        const statuses = [null, project.publicKey].map(
          async (key) => (await send(dashboard, { ...call, path }, key)).status,
        )
        const [nobody, publicKey] = await Promise.all(statuses)
        // What no router would take for a path of /v1 is not found, and nothing else.
        expect([401, 404], `${call.method} ${path}`).toContain(nobody)
        expect([403, 404], `${call.method} ${path}`).toContain(publicKey)
      }
    }
    for (const path of ['/%761/persons', `http://x/v1/persons`, '/v1/%70ersons']) {
      expect((await sendRaw(url, path, null, {})).status).toBe(401)
      expect((await sendRaw(url, path, project.secretKey, {})).status).toBe(200)
    }
  })
})

describe("another project's key", () => {
  test('reads and changes nothing, by any route', async ({ dashboard, db }) => {
    const { project, url } = dashboard
    const externalId = `canary-${randomUUID()}`
    await dashboard.record(externalId)
    const session = await db.sql<{ id: string }>`
      select id from sessions where project_id = ${project.id}`
    const job = await dashboard.send('/v1/persons/to-delete', { method: 'DELETE' })
    expect(job.status).toBe(404)
    const other = await newProject(db)
    const ids = [externalId, session[0]?.id ?? '']
    const routes = dashboard.everyRoute.filter(({ config }) => config?.caller === 'secret key')
    for (const route of routes) {
      for (const method of [route.method].flat()) {
        for (const id of ids) {
          const path = route.url.replaceAll(/:\w+/g, id).replace('*', 'nothing')
          const body = { properties: { taken: true } }
          const takesBody = method === 'PATCH'
          const answer = await sendRaw(url, path, other.secretKey, {
            method,
            ...(takesBody && { body }),
          })
          expect(answer.text, `${method} ${path}`).not.toContain(externalId)
          expect(answer.text, `${method} ${path}`).not.toContain(session[0]?.id)
        }
      }
    }
    const person = await dashboard.send(`/v1/persons/${externalId}`)
    expect(person.json.person).toMatchObject({ externalId, properties: {} })
  })
})

describe('a server', () => {
  const server = () =>
    httpServer({
      log: createLog('silent'),
      metrics: createMetrics(),
      readBody: bodyReader(),
      pace: () => 0,
      authenticate: () => ({}),
      handleIngestError: (error) => {
        throw error
      },
    })

  test('with a route whose callers are not decided does not start', async () => {
    const app = server()
    app.get('/forgotten', async () => 'ok')
    await expect(app.ready()).rejects.toThrow('/forgotten')
  })

  test('has no project where no key gave one', async () => {
    const app = server()
    answerTo(app, 'anyone')
    app.get('/open', async ({ projectId }) => ({ projectId }))
    expect((await app.inject('/open')).statusCode).toBe(500)
    await app.close()
  })
})
