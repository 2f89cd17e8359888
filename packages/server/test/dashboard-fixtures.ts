import { randomBytes, randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { dashboardClient } from '@lethe/contract/dashboard-client.ts'
import { type Role, signIn as signInEndpoint } from '@lethe/contract/dashboard-members.ts'
import type { RouteOptions } from 'fastify'
import { type AppOptions, buildApp } from '../src/app.ts'
import { type AttemptOptions, runNextAttempt } from '../src/erasure/attempt.ts'
import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import { createLog } from '../src/log.ts'
import type { DashboardOptions } from '../src/members/context.ts'
import { openSignIn, type SignIn } from '../src/members/open-sign-in.ts'
import { insertMember } from '../src/members/store.ts'
import { createMetrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { suppressionsWith } from '../src/projects/suppressions.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { type DbAddress, openPool } from '../src/sql.ts'
import { sendRaw, type TestProject } from './fixtures.ts'
import { test as base, type Started } from './recordings-fixtures.ts'

export const password = 'correct horse battery staple'
export const webhookKey = Buffer.alloc(32, 7)

/** A browser of somebody: it keeps cookies and says where its requests come from. */
export interface Visitor {
  call: ReturnType<typeof dashboardClient>['call']
  /** A request as the browser would send it, with whatever is given on top. */
  fetch(path: string, init?: RequestInit & { headers?: Record<string, string> }): Promise<Response>
  cookies: Map<string, string>
}

export interface SignedInVisitor extends Visitor {
  memberId: string
  email: string
}

export interface Dashboard {
  url: string
  project: TestProject
  /** The project's id as paths have it. */
  projectId: string
  /** Every route of the server, off its own router. */
  everyRoute: readonly RouteOptions[]
  logged(): string
  /** The server API with the project's secret key. */
  send(path: string, options?: Parameters<typeof sendRaw>[3]): ReturnType<typeof sendRaw>
  visitor(): Visitor
  /** A browser that records a session, of a chunk each a tab, and then says whose it is. */
  record(externalId?: string, tabs?: Record<string, string[]>): Promise<Started>
  /** The internal id of a person. */
  personId(externalId: string): Promise<string>
  /** Somebody who is a member of this role, and signed in. */
  member(role: Role, options?: { mayDeletePersons?: boolean }): Promise<SignedInVisitor>
  close(): Promise<void>
}

/** `dashboard`: the whole server with its dashboard, over this file's database. */
export const test = base.extend<{ signIn: SignIn; dashboard: Dashboard }>({
  signIn: [
    async ({ address }, use) => {
      const pool = openPool(address, 2)
      const auth = await openSignIn(pool, randomBytes(32).toString('base64url'))()
      await verifyOnce(auth)
      await use(async () => auth)
      await pool.end()
    },
    { scope: 'file' },
  ],
  dashboard: async ({ recordings, address, project, signIn }, use) => {
    // The master key is this test's own: what an earlier one wrapped cannot be opened any more. And
    // no attempt works on jobs that an earlier test has left open.
    await recordings.db.sql`truncate signing_keys, persons, deletion_jobs cascade`
    const dashboard = await startDashboard({ recordings, address, project, signIn })
    await use(dashboard)
    await dashboard.close()
  },
})

/** Of the one password of all members: it takes long on purpose. */
let passwordHash: Promise<string> | undefined

const verified = new Map<string, Promise<boolean>>()

/** Verifies each pair of password and hash once: that takes long on purpose too. */
async function verifyOnce(auth: Awaited<ReturnType<SignIn>>): Promise<void> {
  const { password } = await auth.$context
  const { verify } = password
  password.verify = (given) => {
    const pair = `${given.hash} ${given.password}`
    const found = verified.get(pair) ?? verify(given)
    verified.set(pair, found)
    return found
  }
}

export async function startDashboard(
  parts: { recordings: Recordings; address: DbAddress; project: TestProject; signIn: SignIn },
  options: { app?: Partial<AppOptions>; dashboard?: Partial<DashboardOptions> } = {},
): Promise<Dashboard> {
  const { recordings, address, project, signIn } = parts
  let logged = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk
      done()
    },
  })
  const app = await buildApp({
    db: recordings.db,
    log: createLog('debug', destination),
    metrics: createMetrics(),
    cursorKey: await readCursorKey(address),
    recordings,
    dashboard: {
      signIn,
      publicUrl: '',
      replayUrl: '/replay',
      version: '0.0.0',
      database: { version: '18', isEmbedded: true },
      blobs: { kind: 'folder' },
      webhooks: { secret: webhookKey, allowPrivate: true },
      ...options.dashboard,
    },
    ...options.app,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const visitor = () => newVisitor(url)
  return {
    url,
    project,
    projectId: String(project.id),
    everyRoute: app.everyRoute,
    logged: () => logged,
    send: (path, options = {}) => sendRaw(url, path, project.secretKey, options),
    visitor,
    async record(externalId, tabs = { tab1: ['{"type":4,"timestamp":1}\n'] }) {
      const ingest = async (path: string, query: Record<string, string>, body: object | Buffer) => {
        const search = new URLSearchParams({ key: project.publicKey, ...query })
        const rawBody = Buffer.isBuffer(body) ? body : JSON.stringify(body)
        const { status, json } = await sendRaw(url, `/ingest/v1/${path}?${search}`, null, {
          method: 'POST',
          rawBody,
          headers: {
            'content-type': Buffer.isBuffer(body) ? 'application/octet-stream' : 'text/plain',
            'user-agent': 'Mozilla/5.0 (test)',
          },
        })
        if (status !== 200) throw new Error(`${path} answered ${status}`)
        return json
      }
      const started = await ingest('start', {}, { url: 'https://shop.example/', sdkVersion: '1' })
      const { browserId, sessionId } = started as Started
      for (const [tab, chunks] of Object.entries(tabs)) {
        for (const [number, chunk] of chunks.entries()) {
          const place = { browser: browserId, session: sessionId, tab, number: String(number) }
          await ingest('chunks', place, gzipSync(chunk))
        }
      }
      if (externalId !== undefined) await ingest('identify', {}, { browserId, userId: externalId })
      return { browserId, sessionId }
    },
    async personId(externalId) {
      const [person] = await recordings.db.sql<{ id: string }>`
        select id from persons where project_id = ${project.id} and external_id = ${externalId}`
      return person!.id
    },
    async member(role, { mayDeletePersons = role === 'owner' } = {}) {
      const email = `${randomUUID()}@example.com`
      passwordHash ??= (await (await signIn()).$context).password.hash(password)
      const hash = await passwordHash
      const member = await recordings.db.begin((tx) =>
        insertMember(tx, {
          name: `The ${role}`,
          email,
          role,
          mayDeletePersons,
          passwordHash: hash,
        }),
      )
      const browser = visitor()
      await browser.call(signInEndpoint, { body: { email, password } })
      return { ...browser, memberId: member!.id, email }
    },
    close: () => app.close(),
  }
}

export function newVisitor(url: string): Visitor {
  const cookies = new Map<string, string>()
  const fetch: Visitor['fetch'] = async (path, init = {}) => {
    const response = await globalThis.fetch(path.startsWith('http') ? path : url + path, {
      redirect: 'manual',
      ...init,
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...((init.method ?? 'GET') !== 'GET' && { origin: url }),
        ...init.headers,
      },
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (/max-age=0/i.test(cookie)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return response
  }
  const { call } = dashboardClient(url, ((input: string, init: RequestInit) =>
    fetch(input, init as Parameters<typeof fetch>[1])) as typeof globalThis.fetch)
  return { call, fetch, cookies }
}

/** What attempts of erasures need, over the same recordings. */
export async function erasureOptions(
  { db, blobs, browserKeys }: Recordings,
  over: Partial<AttemptOptions> = {},
): Promise<AttemptOptions> {
  return {
    db,
    keySql: browserKeys.sql,
    blobs,
    log: createLog('silent'),
    metrics: createErasureMetrics(createMetrics().registry),
    signer: await openSigner(db, browserKeys.masterKeys),
    suppressions: suppressionsWith(browserKeys.masterKeys),
    retryDelaysSeconds: [0, 0, 0, 0],
    backupRetentionDays: 30,
    ...over,
  }
}

/** Runs attempts until the job of this person, or the next one, has ended. */
export async function eraseAll(options: AttemptOptions): Promise<string[]> {
  const outcomes: string[] = []
  for (;;) {
    const outcome = await runNextAttempt(options)
    if (outcome === undefined) return outcomes
    outcomes.push(outcome)
  }
}

/** What a call is refused with: its status and code. */
export async function refusalOf(
  call: Promise<unknown>,
): Promise<{ status: number; code: string } | undefined> {
  try {
    await call
    return undefined
  } catch (error) {
    const { status, code } = error as { status?: number; code?: string }
    if (status === undefined || code === undefined) throw error
    return { status, code }
  }
}

/** Repeats `look` until it returns something, and gives up after a while. */
export async function eventually<T>(
  look: () => Promise<T | undefined | false>,
  seconds = 30,
): Promise<T> {
  const end = Date.now() + seconds * 1_000
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error('What was waited for did not come about.')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
