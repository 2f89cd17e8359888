import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative, sep } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import { type ChunkContext, open } from '../src/blobs/sealing.ts'
import { type BrowserKeys, readBrowserKey } from '../src/recordings/browser-keys.ts'
import type { Sql } from '../src/sql.ts'
import { sendRaw } from './fixtures.ts'
import { findTolerantly, type Hit, scan } from './residue-scanner.ts'

/** A place where something could have been kept, and all that stands there. */
export interface Zone {
  name: string
  bytes: Buffer
}

export interface ZoneHit extends Hit {
  zone: string
}

/** Texts that occur nowhere else in the world, one for each place of a person's data. */
export const fields = [
  'externalId',
  'name',
  'email',
  'property',
  'propertyKey',
  'nested',
  'long',
  'sessionUrl',
  'userAgent',
  'pageText',
  'pageUrl',
  'beforeIdentified',
  'asset',
] as const

export type Field = (typeof fields)[number]

export type Canaries = Record<Field, string>

/** Those that only stand in chunks, which are sealed. */
export const sealedFields: readonly Field[] = ['pageText', 'pageUrl', 'beforeIdentified', 'asset']

export function newCanaries(): Canaries {
  return Object.fromEntries(fields.map((field) => [field, newCanary()])) as Canaries
}

export function newCanary(): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  return [...randomBytes(24)].map((byte) => letters[byte % letters.length]).join('')
}

export interface Keys {
  url: string
  secretKey: string
  publicKey: string
}

/** A person of a backend and of a page, with all its canaries, through the API alone. */
export async function plant(keys: Keys, canaries: Canaries): Promise<string> {
  const browserId = await recordPage(keys, canaries)
  const { externalId, name, email, property, propertyKey, nested, long } = canaries
  const filling = 'and so on and so forth, '.repeat(500)
  const properties = {
    name: `Ada ${name}`,
    email: `${email}@example.com`,
    plan: property,
    [propertyKey]: true,
    nested: { deep: [nested] },
    // Without the colon, a text that begins as the filling does is compressed with it, and not found.
    long: `${filling}:${long}${filling}`,
  }
  await expectStatus(
    sendRaw(keys.url, '/v1/persons', keys.secretKey, {
      method: 'POST',
      body: { externalId, properties },
    }),
    200,
  )
  return browserId
}

/** A session before the identification, the identification, and a session after it. */
async function recordPage({ url, publicKey }: Keys, canaries: Canaries): Promise<string> {
  const ingest = (path: string, body: string | Buffer, query: Record<string, string> = {}) =>
    expectStatus(
      sendRaw(
        url,
        `/ingest/v1/${path}?${new URLSearchParams({ key: publicKey, ...query })}`,
        null,
        {
          method: 'POST',
          rawBody: body,
          headers: { 'content-type': 'text/plain', 'user-agent': `Browser ${canaries.userAgent}` },
        },
      ),
      200,
    )
  const start = { url: `https://example.com/${canaries.sessionUrl}`, sdkVersion: '1.0.0' }
  const first = await ingest('start', JSON.stringify(start))
  const { browserId } = first
  const chunk = (session: string, events: object[], number = 0) =>
    ingest('chunks', gzipSync(events.map((event) => `${JSON.stringify(event)}\n`).join('')), {
      browser: browserId,
      session,
      tab: 'tab',
      number: String(number),
    })
  await chunk(first.sessionId, [textEvent(canaries.beforeIdentified)])
  await ingest('identify', JSON.stringify({ browserId, userId: canaries.externalId }))
  const second = await ingest('start', JSON.stringify({ ...start, browserId }))
  await chunk(second.sessionId, [
    { type: 4, timestamp: 1, data: { href: `https://example.com/${canaries.pageUrl}` } },
  ])
  await chunk(second.sessionId, [textEvent(canaries.pageText), assetEvent(canaries.asset)], 1)
  return browserId
}

const textEvent = (textContent: string) => ({
  type: 2,
  timestamp: 2,
  data: { node: { type: 3, id: 1, textContent } },
})

/** The bytes of an image, as the recorder puts them into a recording. */
const assetEvent = (text: string) => ({
  type: 5,
  timestamp: 3,
  data: {
    tag: 'lethe:asset',
    payload: {
      key: 'a',
      data: `data:image/png;base64,${Buffer.from(`PNG ${text}`).toString('base64')}`,
    },
  },
})

async function expectStatus(answering: ReturnType<typeof sendRaw>, status: number) {
  const answer = await answering
  if (answer.status !== status) throw new Error(`It answered ${answer.status}, not ${status}.`)
  return answer.json
}

/** Every row of every table that is not PostgreSQL's own, as a logical dump has it. */
export async function databaseZones(name: string, sql: Sql): Promise<Zone[]> {
  const tables = await sql<{ table: string }>`
    select format('%I.%I', n.nspname, c.relname) as "table"
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'm', 'f')
      and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`
  const zones: Zone[] = []
  for (const { table } of tables) {
    const [rows] = await sql<{ text: string | null }>`
      select query_to_xml(${`select t::text as row from ${table} t`}, true, false, '')::text as text`
    zones.push({ name: `${name} ${table}`, bytes: Buffer.from(rows?.text ?? '') })
  }
  return zones
}

/** Every file under a folder, with its path; those that `leave` is true for are left out. */
export async function fileZones(
  name: string,
  folder: string,
  leave: (path: string) => boolean = () => false,
): Promise<Zone[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const zones: Zone[] = []
  for (const entry of entries) {
    const path = relative(folder, join(entry.parentPath, entry.name))
    if (!entry.isFile() || leave(path)) continue
    const bytes = await buffer(createReadStream(join(folder, path)))
    zones.push({ name: `${name} ${path}`, bytes: Buffer.concat([Buffer.from(`${path}\n`), bytes]) })
  }
  return zones
}

export function scanZones(zones: readonly Zone[], texts: readonly string[]): ZoneHit[] {
  return zones.flatMap(({ name: zone, bytes }) =>
    scan(bytes, texts).map((hit) => ({ zone, ...hit })),
  )
}

/** What the chunks of these browsers hold, opened with their keys: still compressed. */
export async function openedChunks(
  sql: Sql,
  browserKeys: BrowserKeys,
  projectId: number,
  browserIds: readonly string[],
  folder: string,
): Promise<Zone[]> {
  const chunks = await sql<ChunkContext & { browserId: string; blobKey: string }>`
    select c.project_id as "projectId", c.session_id as "sessionId", c.tab, c.number,
      s.browser_id as "browserId", c.blob_key as "blobKey"
    from chunks c
    join sessions s on s.project_id = c.project_id and s.id = c.session_id
    where c.project_id = ${projectId} and s.browser_id = any(${browserIds}::uuid[])`
  const zones: Zone[] = []
  for (const { browserId, blobKey, ...place } of chunks) {
    const key = await readBrowserKey(browserKeys, projectId, browserId)
    if (!key) throw new Error('The key of a chunk is gone.')
    const opened = open(key, place, await readFile(join(folder, blobKey)))
    zones.push({ name: blobKey, bytes: Buffer.from(opened) })
  }
  return zones
}

/** A server of somebody's that keeps what webhooks bring. */
export async function startReceiver(): Promise<{ url: string; received(): Buffer }> {
  const bodies: Buffer[] = []
  const server = createServer(async (request, response) => {
    bodies.push(await buffer(request))
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, received: () => Buffer.concat(bodies) }
}

/** How many of the texts the files of a database server hold, by the kind of file. */
export interface Remains {
  tables: number
  indexes: number
  statistics: number
  wal: number
  other: number
}

/** Reads the files of a running server themselves. `sql` is a connection to its database. */
export async function remainsInFiles(
  sql: Sql,
  folder: string,
  texts: readonly string[],
): Promise<Remains> {
  await sql`checkpoint`
  const kinds = await kindsOfFiles(sql)
  const found = new Map<keyof Remains, Set<string>>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile()) continue
    const bytes = await readFile(path).catch(() => Buffer.alloc(0))
    const kind = kinds(relative(folder, path))
    const set = found.get(kind) ?? new Set()
    found.set(kind, set)
    for (const text of findTolerantly(bytes, texts)) set.add(text)
  }
  const count = (kind: keyof Remains) => found.get(kind)?.size ?? 0
  return {
    tables: count('tables'),
    indexes: count('indexes'),
    statistics: count('statistics'),
    wal: count('wal'),
    other: count('other'),
  }
}

async function kindsOfFiles(sql: Sql): Promise<(path: string) => keyof Remains> {
  const relations = await sql<{ path: string; kind: string; name: string }>`
    select pg_relation_filepath(oid) as path, relkind as kind, coalesce(
      (select t.relname from pg_class t where t.reltoastrelid = c.oid), relname) as name
    from pg_class c
    where pg_relation_filepath(oid) is not null`
  const kinds = new Map<string, keyof Remains>()
  for (const { path, kind, name } of relations) {
    const isStatistic = name.startsWith('pg_statistic')
    kinds.set(path, isStatistic ? 'statistics' : kind === 'i' ? 'indexes' : 'tables')
  }
  return (path) => {
    if (path.startsWith(`pg_wal${sep}`)) return 'wal'
    return kinds.get(path.replace(/(?:_\w+)?(?:\.\d+)?$/, '')) ?? 'other'
  }
}

/** Which of these grams the keys of an index file still name. */
export async function gramsInIndex(
  sql: Sql,
  folder: string,
  grams: readonly string[],
): Promise<string[]> {
  await sql`checkpoint`
  const [index] = await sql<{ path: string }>`
    select pg_relation_filepath('person_search_grams') as path`
  const bytes = await readFile(join(folder, (index as { path: string }).path))
  return grams.filter((gram) => bytes.includes(`1:1:${gram}`))
}

/** How many files under a folder hold these bytes. */
export async function filesWith(folder: string, bytes: Buffer): Promise<number> {
  let count = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = await readFile(join(entry.parentPath, entry.name)).catch(() => Buffer.alloc(0))
    if (file.includes(bytes)) count += 1
  }
  return count
}
