import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { client } from '@lethe/contract/client.ts'
import { test as base, expect, inject } from 'vitest'
import { type AppOptions, buildApp } from '../src/app.ts'
import { createLog } from '../src/log.ts'
import { createMetrics, type Metrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { createKey, createProject } from '../src/projects/store.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { createDatabase, dropDatabase } from './databases.ts'

type Client = Awaited<ReturnType<typeof connectOne>>['client']

export interface TestProject {
  id: number
  secretKey: string
  publicKey: string
}

export interface Service {
  url: string
  /** Everything the service logged so far. */
  logged(): string
  metrics: Metrics
  /** Sends a request with the project's secret key; `path` goes out exactly as it is. */
  send(path: string, options?: RequestOptions): Promise<Answer>
  call: ReturnType<typeof client>
}

export interface RequestOptions {
  method?: string
  key?: string | null
  body?: unknown
  rawBody?: string | Buffer
  headers?: Record<string, string>
}

export interface Answer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of many shapes
  json: any
}

/**
 * `db`: a database of this test file's own, with all migrations. `project`: a project of this
 * test's own, with keys. `service`: the whole server on a port of its own, over that database.
 */
export const test = base.extend<{
  address: DbAddress
  db: Db
  project: TestProject
  service: Service
}>({
  address: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => withDatabase(use),
    { scope: 'file' },
  ],
  db: [
    async ({ address }, use) => {
      const db = connect({ connection: address })
      await use(db)
      await db.end()
    },
    { scope: 'file' },
  ],
  project: async ({ db }, use) => use(await newProject(db)),
  service: async ({ db, address, project }, use) => {
    const service = await startService(db, address, project)
    await use(service)
    await service.close()
  },
})

/** Makes a database with all migrations, and drops it after its use. */
export async function withDatabase(use: (address: DbAddress) => Promise<void>): Promise<void> {
  const template = inject('postgres')
  const servers = inject('servers')
  const database = `lethe_${randomUUID().replaceAll('-', '')}`
  await createDatabase(servers, database, template.database)
  await use({ ...template, database })
  const { client, end } = await connectOne({ ...template, database: 'postgres' })
  const left = await connectionsTo(client, database)
  await end()
  await dropDatabase(servers, database)
  expect(left, 'connections that this file left open').toEqual([])
}

/** The statements of the connections that are still there when those that end have ended. */
async function connectionsTo(client: Client, database: string): Promise<string[]> {
  for (const end = Date.now() + 10_000; ; await sleep(10)) {
    const { rows } = await client.query<{ query: string }>(
      `select query from pg_stat_activity where datname = $1 and backend_type = 'client backend'
         and application_name !~ '^citus'`,
      [database],
    )
    if (rows.length === 0 || Date.now() > end) return rows.map(({ query }) => query)
  }
}

export async function newProject(db: Db): Promise<TestProject> {
  const { id } = await createProject(db.sql, 'a project')
  const secret = await createKey(db.sql, id, 'secret', 'secret')
  const publicKey = await createKey(db.sql, id, 'public', 'public')
  return { id, secretKey: secret.text, publicKey: publicKey.text }
}

export async function startService(
  db: Db,
  address: DbAddress,
  project: TestProject,
  options: Partial<AppOptions> = {},
): Promise<Service & { close(): Promise<void> }> {
  let logged = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk
      done()
    },
  })
  const metrics = createMetrics()
  const app = await buildApp({
    db,
    log: createLog('debug', destination),
    metrics,
    cursorKey: await readCursorKey(address),
    ...options,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    metrics,
    logged: () => logged,
    call: client(url, project.secretKey),
    send: (path, { key = project.secretKey, ...rest } = {}) => sendRaw(url, path, key, rest),
    close: () => app.close(),
  }
}

/** Speaks HTTP without a URL parser in between, which would tidy up paths like `/v1/persons/..`. */
export async function sendRaw(
  baseUrl: string,
  path: string,
  key: string | null,
  { method = 'GET', body, rawBody, headers = {} }: RequestOptions,
): Promise<Answer> {
  const { request } = await import('node:http')
  const { hostname, port } = new URL(baseUrl)
  const payload = rawBody ?? (body === undefined ? undefined : JSON.stringify(body))
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        hostname,
        port,
        path,
        method,
        headers: {
          ...(key !== null && { authorization: `Bearer ${key}` }),
          ...(payload !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
          }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = response.headers['content-type']?.startsWith('application/json') && text
          resolve({
            status: response.statusCode ?? 0,
            headers: new Headers(response.headers as Record<string, string>),
            text,
            json: isJson ? JSON.parse(text) : undefined,
          })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(payload)
  })
}
