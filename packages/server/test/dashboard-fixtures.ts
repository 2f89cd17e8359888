import { randomBytes, randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { dashboardClient } from '@lethe/contract/dashboard-client.ts'
import { type Role, signIn as signInEndpoint } from '@lethe/contract/dashboard-members.ts'
import { type AppOptions, buildApp } from '../src/app.ts'
import type { DashboardOptions } from '../src/dashboard/context.ts'
import { createLog } from '../src/log.ts'
import { openSignIn, type SignIn } from '../src/members/better-auth.ts'
import { insertMember } from '../src/members/store.ts'
import { createMetrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { type DbAddress, openPool } from '../src/sql.ts'
import { sendRaw, type TestProject } from './fixtures.ts'
import { test as base } from './recordings-fixtures.ts'

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
  logged(): string
  /** The server API with the project's secret key. */
  send(path: string, options?: Parameters<typeof sendRaw>[3]): ReturnType<typeof sendRaw>
  visitor(): Visitor
  /** Somebody who is a member of this role, and signed in. */
  member(role: Role, options?: { mayDeletePersons?: boolean }): Promise<SignedInVisitor>
  close(): Promise<void>
}

/** `dashboard`: the whole server with its dashboard, over this file's database. */
export const test = base.extend<{ signIn: SignIn; dashboard: Dashboard }>({
  signIn: [
    async ({ address }, use) => {
      const pool = openPool(address, 2)
      await use(openSignIn(pool, randomBytes(32).toString('base64url')))
      await pool.end()
    },
    { scope: 'file' },
  ],
  dashboard: async ({ recordings, address, project, signIn }, use) => {
    const dashboard = await startDashboard({ recordings, address, project, signIn })
    await use(dashboard)
    await dashboard.close()
  },
})

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
    logged: () => logged,
    send: (path, options = {}) => sendRaw(url, path, project.secretKey, options),
    visitor,
    async member(role, { mayDeletePersons = role === 'owner' } = {}) {
      const email = `${randomUUID()}@example.com`
      const passwordHash = await (await signIn.$context).password.hash(password)
      const member = await recordings.db.begin((tx) =>
        insertMember(tx, { name: `The ${role}`, email, role, mayDeletePersons, passwordHash }),
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

/** Looks again until `look` answers something, and gives up after a while. */
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
