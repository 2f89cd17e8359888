import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { inject } from 'vitest'
import { type AppOptions, buildApp } from '../src/app.ts'
import { openFolder } from '../src/blobs/filesystem.ts'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { migrate, readCursorKey } from '../src/migrate.ts'
import { type ChunkToConfirm, confirmChunks } from '../src/recordings/ingest-store.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { connectOne, type Db, type DbAddress, raw, type Sql } from '../src/sql.ts'
import {
  type Answer,
  test as base,
  type RequestOptions,
  sendRaw,
  type TestProject,
} from './fixtures.ts'

export interface IngestService {
  url: string
  logged(): string
  /** Sends a request to the server API with the project's secret key. */
  send(path: string, options?: RequestOptions): Promise<Answer>
  /** Speaks as the SDK does: a POST of text or bytes, the public key in the query. */
  ingest(path: string, body?: unknown, options?: IngestRequest): Promise<Answer>
  start(browserId?: string): Promise<Started>
  identify(browserId: string, userId: string): Promise<Answer>
  chunk(place: ChunkQuery, body?: string | Buffer): Promise<Answer>
  close(): Promise<void>
}

export interface IngestRequest {
  key?: string | undefined
  query?: Record<string, string | number>
  headers?: Record<string, string>
  method?: string
}

export interface Started {
  browserId: string
  sessionId: string
}

export interface ChunkQuery extends Started {
  tab?: string
  number?: number
}

/**
 * `folder`: of blobs, this test's own. `recordings`: over that folder and this file's database.
 * `ingesting`: the whole server over both.
 */
export const test = base.extend<{
  folder: string
  recordings: Recordings
  ingesting: IngestService
}>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  folder: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), 'lethe-blobs-'))
    await use(folder)
    await rm(folder, { recursive: true, force: true })
  },
  recordings: async ({ db, address, folder }, use) =>
    use(await openRecordings(db, address, folder)),
  ingesting: async ({ recordings, address, project }, use) => {
    const service = await startIngesting(recordings, address, project)
    await use(service)
    await service.close()
  },
})

export async function openRecordings(
  db: Db,
  address: DbAddress,
  folder: string,
): Promise<Recordings> {
  await migrate(address, 'keys')
  return {
    db,
    blobs: await openFolder(folder),
    browserKeys: {
      sql: db.sql,
      masterKeys: parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`),
    },
  }
}

export async function startIngesting(
  recordings: Recordings,
  address: DbAddress,
  project: TestProject,
  options: Partial<AppOptions> = {},
): Promise<IngestService> {
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
    ...options,
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const ingest: IngestService['ingest'] = (path, body, request = {}) => {
    const { key = project.publicKey, query = {}, headers = {}, method = 'POST' } = request
    const search = new URLSearchParams({ key, ...query } as Record<string, string>)
    const isBytes = typeof body === 'string' || Buffer.isBuffer(body)
    return sendRaw(url, `/ingest/v1/${path}?${search}`, null, {
      method,
      ...(body !== undefined && { rawBody: isBytes ? body : JSON.stringify(body) }),
      headers: { 'content-type': 'text/plain', ...headers },
    })
  }
  return {
    url,
    logged: () => logged,
    ingest,
    send: (path, { key = project.secretKey, ...rest } = {}) => sendRaw(url, path, key, rest),
    start: async (browserId) => {
      const { status, json } = await ingest('start', browserId === undefined ? {} : { browserId })
      if (status !== 200) throw new Error(`start answered ${status}`)
      return json
    },
    identify: (browserId, userId) => ingest('identify', { browserId, userId }),
    chunk: ({ browserId, sessionId, tab = 'tab', number = 0 }, body = events(1)) =>
      ingest('chunks', body, {
        query: { browser: browserId, session: sessionId, tab, number },
        headers: { 'content-type': 'application/octet-stream' },
      }),
    close: () => app.close(),
  }
}

/** Recorded events as the SDK sends them; `first` numbers them. */
export function plainEvents(count: number, first = 0): string {
  return Array.from({ length: count }, (_, i) => `{"type":3,"timestamp":${first + i}}\n`).join('')
}

export function events(count: number, first = 0): Buffer {
  return gzipSync(plainEvents(count, first))
}

/** Moves the only clock of the server by so many seconds. */
export async function shiftClock(address: DbAddress, seconds: number): Promise<void> {
  const { client, end } = await connectOne(address)
  await client.query(
    `create or replace function app_now() returns timestamptz language sql stable
     return date_trunc('milliseconds', clock_timestamp()) + interval '${seconds} seconds'`,
  )
  await end()
}

export async function blobKeys(recordings: Recordings, prefix = 'blobs/'): Promise<string[]> {
  const keys: string[] = []
  for await (const key of recordings.blobs.list(prefix)) keys.push(key)
  return keys.sort()
}

/** Waits until so many statements wait for a lock of the test's database. */
export async function waitUntilBlocked(db: Db, count: number): Promise<void> {
  for (let tries = 0; tries < 4_000; tries++) {
    if ((await countBlocked(db)) >= count) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`Not ${count} statements wait for a lock.`)
}

/** On all nodes of a cluster, each of which has locks of its own. */
async function countBlocked(db: Db): Promise<number> {
  const statement = `
    select count(*) as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  const [here] = await db.sql<{ count: string }>`${raw(statement)}`
  if (inject('servers').length === 1) return Number(here?.count)
  const nodes = await db.sql<{ result: string }>`
    select result from run_command_on_workers(${statement})`
  return nodes.reduce((sum, { result }) => sum + Number(result), Number(here?.count))
}

/** Confirms an upload if its intent is still valid, and returns whether it was. */
export async function confirmChunk(sql: Sql, chunk: ChunkToConfirm): Promise<boolean> {
  return (await confirmChunks(sql, [chunk], { waits: true })).size === 1
}
