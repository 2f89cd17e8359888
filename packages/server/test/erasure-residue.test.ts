import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { openFolder } from '../src/blobs/filesystem.ts'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { addressesOf } from '../src/embedded/roles.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import type { BrowserKeys } from '../src/recordings/browser-keys.ts'
import { packSessions } from '../src/recordings/pack.ts'
import { connect, connectOne, type DbAddress, type Sql } from '../src/sql.ts'
import { sendRaw } from './fixtures.ts'
import {
  type Environment,
  eventually,
  type LetheProcess,
  newEnvironment,
  resultOf,
  runLethe,
  startLethe,
  urlOf,
} from './lethe-process.ts'
import {
  type Canaries,
  databaseZones,
  fields,
  filesWith,
  fileZones,
  gramsInIndex,
  newCanaries,
  newCanary,
  openedChunks,
  plant,
  type Remains,
  remainsInFiles,
  scanZones,
  sealedFields,
  startReceiver,
  type Zone,
  type ZoneHit,
} from './residue-fixtures.ts'
import { findTolerantly, scan } from './residue-scanner.ts'

describe('the scanner', () => {
  const text = newCanary()
  const object = JSON.stringify({ number: 1, data: { text: `before ${text} after` } })
  const codes = [...Buffer.from(text)].map((code) => code.toString(16))
  const noise = (bytes: Buffer | string) =>
    Buffer.concat([randomBytes(501), Buffer.from(bytes as string), randomBytes(701)])
  const forms: Record<string, Buffer> = {
    plain: noise(object),
    'in capitals': noise(object.toUpperCase()),
    hex: noise(Buffer.from(object).toString('hex')),
    'hex in capitals': noise(Buffer.from(object).toString('hex').toUpperCase()),
    'utf-16, little end first': noise(Buffer.from(object, 'utf16le')),
    'utf-16, big end first': noise(Buffer.from(object, 'utf16le').swap16()),
    'escaped as JSON': noise(codes.map((code) => `\\u00${code}`).join('')),
    'percent-encoded': noise(codes.map((code) => `%${code.toUpperCase()}`).join('')),
    'HTML entities': noise(codes.map((code) => `&#x${code};`).join('')),
    gzip: noise(gzipSync(object)),
    'gzip that was cut short': Buffer.concat([noise(''), gzipSync(object).subarray(0, -9)]),
    zlib: noise(deflateSync(object)),
    zstd: noise(zstdCompressSync(object)),
    'deflate alone': deflateRawSync(object),
    'brotli alone': brotliCompressSync(object),
    'gzip in hex, as a dump writes bytes': noise(`\\x${gzipSync(object).toString('hex')}`),
    'base64 in gzip in base64': noise(
      `"${gzipSync(Buffer.from(object).toString('base64')).toString('base64url')}"`,
    ),
    ...Object.fromEntries(
      ['', 'a', 'ab'].map((before) => [
        `base64, ${before.length} bytes late`,
        noise(Buffer.from(`${before}${text} and more`).toString('base64')),
      ]),
    ),
  }

  test.each(Object.entries(forms))('finds a text: %s', (_form, bytes) => {
    expect(scan(bytes, [newCanary(), text]).map((hit) => hit.text)).toContain(text)
  })

  test('finds nothing where nothing is, and what a database has compressed', () => {
    for (const bytes of Object.values(forms)) expect(scan(bytes, [newCanary()])).toEqual([])
    // As pglz writes it: a byte of flags before every eight characters.
    const packed = text.replaceAll(/.{8}/g, '\0$&')
    expect(scan(Buffer.from(packed), [text])).toEqual([])
    expect(findTolerantly(Buffer.from(packed), [text, newCanary()])).toEqual([text])
  })
})

interface Running {
  env: Environment & { DATA_DIR: string; TMPDIR: string }
  service: LetheProcess
  url: string
  secretKey: string
  publicKey: string
  sql: Sql
  keySql: Sql
  send(path: string, method?: string, body?: unknown): ReturnType<typeof sendRaw>
}

/** The service as an operator runs it, on its built-in database, the keys there too or apart. */
async function startService(keyAddress?: DbAddress): Promise<Running> {
  const env = await newEnvironment(undefined, {
    ...(keyAddress && { KEY_DATABASE_URL: urlOf(keyAddress) }),
    LOG_LEVEL: 'debug',
    WEBHOOK_PRIVATE_ADDRESSES: 'allow',
  })
  const service = await startLethe(['serve'], env, /listens on (\S+)[\s\S]*DELETE/)
  const url = service.found
  const [, secretKey = ''] = /secret key +(sk_\w+)/.exec(service.output()) ?? []
  const [, publicKey = ''] = /public key +(pk_\w+)/.exec(service.output()) ?? []
  const sql = await openSql(
    addressesOf(join(env.DATA_DIR, 'postgres'), join(env.DATA_DIR, 'postgres')).superuser,
  )
  const keySql = keyAddress ? await openSql(keyAddress) : sql
  const send: Running['send'] = (path, method = 'GET', body) =>
    sendRaw(url, path, secretKey, { method, ...(body !== undefined && { body }) })
  return { env, service, url, secretKey, publicKey, sql, keySql, send }
}

async function newKeyDatabase(): Promise<DbAddress> {
  const server = { ...inject('postgres'), database: 'postgres' }
  const database = `lethe_keys_${randomUUID().replaceAll('-', '')}`
  const { client, end } = await connectOne(server)
  await client.query(`create database ${database} template template0 encoding 'UTF8'`)
  onTestFinished(async () => {
    await client.query(`drop database ${database} with (force)`)
    await end()
  })
  return { ...server, database }
}

/** Several connections, as one that the end of the service breaks is opened again. */
async function openSql(connection: DbAddress): Promise<Sql> {
  const db = connect({ connection, statementSeconds: 120 })
  onTestFinished(() => db.end())
  return db.sql
}

/** All that the running service keeps, writes or returns. PostgreSQL's own files are measured apart. */
async function zonesOf(running: Running, jobIds: string[], received: Buffer): Promise<Zone[]> {
  const { env, service, sql, keySql, send, url } = running
  const answer = async (path: string) => ({
    name: `answer ${path}`,
    bytes: Buffer.from((await send(path)).text),
  })
  const receipts = await Promise.all(jobIds.map((id) => answer(`/v1/deletion-jobs/${id}/receipt`)))
  return [
    ...(await databaseZones('table', sql)),
    ...(await databaseZones('key table', keySql)),
    ...(await fileZones('file', env.DATA_DIR, (path) => path.startsWith('postgres/'))),
    ...(await fileZones('temporary file', env.TMPDIR)),
    { name: 'log', bytes: Buffer.from(service.output()) },
    { name: 'metrics', bytes: Buffer.from((await sendRaw(url, '/metrics', null, {})).text) },
    { name: 'webhooks', bytes: received },
    ...receipts,
    await answer('/.well-known/jwks.json'),
  ]
}

async function erase({ send }: Running, externalId: string, query = ''): Promise<string> {
  const deleted = await send(`/v1/persons/${externalId}${query}`, 'DELETE')
  const { id } = deleted.json.job
  await eventually(async () => {
    const { job } = (await send(`/v1/deletion-jobs/${id}`)).json
    return job.status === 'completed'
  })
  return id
}

/** Requests that name a person and end badly: faults and refusals say the most. */
async function provoke({ send, sql: _, env }: Running, { externalId, email }: Canaries) {
  const path = `/v1/persons/${externalId}`
  await send(`/v1/persons?search=${email}`)
  expect((await send(path, 'PATCH', { properties: externalId })).status).toBe(400)
  expect((await send(`${path}%zz`)).status).toBe(400)
  expect((await send(`${path}/${email}`)).status).toBe(404)
  // Held by somebody else for longer than a request may wait: a fault of the database.
  const { client, end } = await connectOne(
    addressesOf(join(env.DATA_DIR, 'postgres'), join(env.DATA_DIR, 'postgres')).superuser,
  )
  await client.query('begin')
  await client.query('select from persons for update')
  expect((await send(path, 'PATCH', { properties: { email } })).status).toBeGreaterThanOrEqual(500)
  await end()
}

/** The names of the canaries that were hit, with where. */
function told(hits: readonly ZoneHit[], owners: Record<string, Canaries>): string[] {
  const lines = hits.map(({ zone, text, form }) => {
    for (const [owner, canaries] of Object.entries(owners)) {
      const field = fields.find((one) => canaries[one] === text)
      if (field) return `${owner} ${field}: ${zone}, ${form}`
    }
    return text
  })
  return [...new Set(lines)].sort()
}

test('after an erasure nothing of the person is in the database, the blob store, the logs, the metrics, the receipt, the ledger or any file, in any form', async () => {
  const running = await startService(await newKeyDatabase())
  const { env, sql, keySql } = running
  const receiver = await startReceiver()
  await sql`
    insert into webhooks (project_id, url, events)
    values (1, ${receiver.url}, array['person.deletion.completed', 'person.deletion.failed'])`
  const [ada, kept, bystander] = [newCanaries(), newCanaries(), newCanaries()]
  const owners = { ada, kept, bystander }
  const texts = Object.values(owners).flatMap((canaries) => Object.values(canaries))
  const browserIds: string[] = []
  for (const canaries of Object.values(owners)) browserIds.push(await plant(running, canaries))
  await provoke(running, ada)
  const browserKeys = { sql: keySql, masterKeys: parseMasterKeys(env.MASTER_KEY as string) }
  const blobFolder = join(env.DATA_DIR, 'blobs')
  await packAll(running, { browserKeys, blobFolder })
  const openChunks = (ids: string[]) => openedChunks(sql, browserKeys, 1, ids, blobFolder)

  // The control: the same scan finds everybody, in rows and, once they are opened, in chunks.
  const before = await zonesOf(running, [], receiver.received())
  const everywhere = told(scanZones(before, texts), owners)
  const inChunks = told(scanZones(await openChunks(browserIds), texts), owners)
  for (const owner of Object.keys(owners)) {
    for (const field of fields) {
      const found = (lines: string[]) => lines.some((line) => line.startsWith(`${owner} ${field}:`))
      const isSealed = sealedFields.includes(field)
      expect([found(everywhere), found(inChunks)], `${owner} ${field}`).toEqual([
        !isSealed,
        isSealed,
      ])
    }
  }
  // Also before any erasure nobody is in a log, a metric, or a file.
  expect(everywhere.filter((line) => !/: table /.test(line))).toEqual([])

  const jobIds = [
    await erase(running, ada.externalId),
    await erase(running, kept.externalId, '?keepRecordings=true'),
  ]
  await eventually(async () => jobIds.every((id) => receiver.received().includes(id)))
  const after = await zonesOf(running, jobIds, receiver.received())
  const left = told(scanZones(after, texts), owners)
  expect(left.filter((line) => !line.startsWith('bystander'))).toEqual([
    // The proof that the request was carried out, and what tells the customer so.
    'ada externalId: table public.deletion_jobs, plain',
    'ada externalId: webhooks, plain',
    'kept externalId: table public.deletion_jobs, plain',
    'kept externalId: webhooks, plain',
    // The sessions that were to stay, anonymous.
    'kept sessionUrl: table public.sessions, plain',
    'kept userAgent: table public.sessions, plain',
  ])
  const ofBystander = (line: string) => line.startsWith('bystander')
  expect(left.filter(ofBystander)).toEqual(everywhere.filter(ofBystander))
  // A copy of the blobs has keys only for those that were to stay.
  const keys = await keySql<{ id: string }>`select browser_id as id from browser_keys order by 1`
  expect(keys.map(({ id }) => id)).toEqual(browserIds.slice(1).sort())
  expect(told(scanZones(await openChunks(browserIds), texts), owners)).toEqual(
    inChunks.filter((line) => !line.startsWith('ada')),
  )
  expect(await running.service.stop()).toBe(0)
})

/** Packs the sessions of two chunks as the worker does when they are finished. */
async function packAll(
  { env, sql }: Running,
  { browserKeys, blobFolder }: { browserKeys: BrowserKeys; blobFolder: string },
): Promise<void> {
  await sql`
    update sessions set started_at = started_at - interval '1 hour',
      last_chunk_at = last_chunk_at - interval '1 hour'`
  const db = connect({
    connection: addressesOf(join(env.DATA_DIR, 'postgres'), join(env.DATA_DIR, 'postgres'))
      .superuser,
  })
  const blobs = await openFolder(blobFolder)
  expect(await packSessions({ db, blobs, browserKeys })).toBe(3)
  await db.end()
}

/** The SQL that docs/erasure.md gives to operators: each block statement by statement. */
function documentedStatements(): string[][] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/erasure.md'), 'utf8')
  return [...text.matchAll(/```sql\n([^`]+)```/g)].map(
    ([, block = '']) => block.match(/(?:\$\$.*?\$\$|[^;])+;/gs) ?? [],
  )
}

test('what PostgreSQL’s own files still hold of an erased person is taken out by a purge, and the job says since when', async () => {
  const running = await startService()
  const { env, sql } = running
  const folder = join(env.DATA_DIR, 'postgres')
  const [ada, bystander] = [newCanaries(), newCanaries()]
  const browserId = await plant(running, ada)
  await plant(running, bystander)
  const [key] = await sql<{ wrapped: Buffer }>`
    select wrapped from browser_keys where browser_id = ${browserId}`
  const rowFields = fields.filter((field) => !sealedFields.includes(field))
  // The externalId is left out: the job, its indexes and the statistics of both say it.
  const texts = rowFields.filter((field) => field !== 'externalId').map((field) => ada[field])
  const bystanders = new Set(gramsOf(Object.values(bystander)))
  const grams = gramsOf([ada.externalId, ada.name, ada.email]).filter((one) => !bystanders.has(one))
  await fillProject(sql)
  await indexAll(env.DATA_DIR, fillers + 2)
  // Statistics hold examples of the values there are.
  await sql`analyze`
  const moments: Record<string, Measured> = {}
  const measure = async (moment: string) => {
    const measured = {
      ...(await remainsInFiles(sql, folder, texts)),
      keys: await filesWith(folder, (key as { wrapped: Buffer }).wrapped),
      examples: await countExamples(sql, texts),
      grams: (await gramsInIndex(sql, folder, grams)).length,
    }
    moments[moment] = measured
    return measured
  }

  const before = await measure('before the DELETE')
  expect(before).toMatchObject({ tables: texts.length, grams: grams.length })
  const jobId = await erase(running, ada.externalId)
  const { tables, wal, keys, examples } = await measure('completed')
  // How many depends on what PostgreSQL did meanwhile; none would mean that nobody looked.
  for (const count of [tables, wal, keys, examples]) expect(count).toBeGreaterThan(0)
  const [gentle = []] = documentedStatements()
  expect(gentle).toHaveLength(2)
  for (const statement of gentle.slice(0, 1)) await run(sql, statement)
  // The search finds nobody by them, but the pieces of the person's name stand in its index.
  expect(await measure('after the vacuum')).toMatchObject({ examples: 0, grams: grams.length })
  for (const statement of gentle.slice(1)) await run(sql, statement)
  expect(await measure('after the reindex')).toMatchObject({ grams: 0 })
  const receiptOf = async () => (await running.send(`/v1/deletion-jobs/${jobId}/receipt`)).json
  expect((await receiptOf()).purge).toBeNull()
  const purged = await runLethe(['purge', '--json'], env)
  expect(purged.code, purged.err).toBe(0)
  const { jobs, purgedAt } = resultOf(purged)
  expect(jobs).toBe(1)
  expect(await measure('in the end')).toEqual(none)
  const file = join(env.TMPDIR, 'receipt.json')
  await writeFile(file, JSON.stringify(await receiptOf()))
  const verified = await runLethe(['receipt', 'verify', file, '--json'], env)
  expect(JSON.parse(verified.out).purge).toMatchObject({ jobId, purgedAt })
  await rm(file)
  expect((await runLethe(['purge'], env)).out).toBe('There is nothing to purge.\n')
  console.table(moments)
  expect(await running.service.stop()).toBe(0)
})

interface Measured extends Remains {
  /** Files in which the wrapped data key stands. */
  keys: number
  /** Values that the planner's statistics quote. */
  examples: number
  /** Pieces of the person's texts that stand in the search index. */
  grams: number
}

const none: Measured = {
  tables: 0,
  indexes: 0,
  statistics: 0,
  wal: 0,
  other: 0,
  keys: 0,
  examples: 0,
  grams: 0,
}

async function countExamples(sql: Sql, texts: readonly string[]): Promise<number> {
  const rows = await sql`
    select from unnest(${texts}::text[]) as text
    where exists (select from pg_statistic s where strpos(s::text, text) > 0)`
  return rows.length
}

/** A statement that is no template of ours. */
function run(sql: Sql, statement: string): Promise<unknown> {
  return sql(Object.assign([statement], { raw: [statement] }))
}

/** Gives so many persons their place in the index of the search, as if they were too many to be scanned. */
async function indexAll(dataDir: string, persons: number): Promise<void> {
  const folder = join(dataDir, 'postgres')
  const db = connect({ connection: addressesOf(folder, folder).superuser })
  await eventually(async () => {
    await indexSearchTail(db, { smallProjectPersons: persons })
    const [row] = await db.sql<{ count: number }>`
      select count(*)::integer as count from person_search where segment > 0`
    return row?.count === persons
  })
  await db.end()
}

/** What the search makes of texts: pieces of five characters, or of four where one is a digit. */
function gramsOf(texts: readonly string[]): string[] {
  const grams = texts.flatMap((text) =>
    Array.from({ length: text.length - 4 }, (_, at) => {
      const four = text.slice(at, at + 4)
      return /[0-9]/.test(four) ? four : text.slice(at, at + 5)
    }),
  )
  return [...new Set(grams)]
}

const fillers = 500

async function fillProject(sql: Sql): Promise<void> {
  await sql`
    with made as (
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select 1, (extract(epoch from now) * 1000)::bigint << 20 | n, 
        translate(n::text, '0123456789', 'àáâãäåæçèé'), '{}', now, now
      from app_now() as now, generate_series(1, ${fillers}::integer) as n
      returning id, external_id
    )
    insert into person_search (project_id, person_id, text)
    select 1, id, external_id || U&'\\FFFF' || U&'\\FFFF' from made`
}
