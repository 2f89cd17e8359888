/**
 * What the tables take, and how long requests take, as persons and sessions become many:
 * `node bench/growth.ts [--persons N] [--sessions N] [--folder F]`. Fills the real schema by SQL, has
 * the product build its search index, starts the real service and asks it over HTTP. The figures of
 * a run go to bench/growth.json; `--draw` makes docs/growth.svg and prints the tables of
 * docs/scaling.md from what is there.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { giveUpEntries } from '../packages/server/src/erasure/ledger-store.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { searchPersons } from '../packages/server/src/persons/search.ts'
import { indexSearchTail } from '../packages/server/src/persons/search-index.ts'
import { findPerson, listPersons } from '../packages/server/src/persons/store.ts'
import { createKey } from '../packages/server/src/projects/store.ts'
import { connect, connectOne, type Db, type DbAddress, raw } from '../packages/server/src/sql.ts'
import { draw, type Growth, printTables } from './growth-picture.ts'
import { letheWords, residentMegabytes, start, stop, urlOf } from './measure.ts'
import { loadPersons, textsOf } from './search-data.ts'

const { values: options } = parseArgs({
  options: {
    /** Four fifths of them in one large project, the others in a thousand small ones. */
    persons: { type: 'string', default: '1000000' },
    /** Finished and packed, of the persons of the large project; a browser has two. */
    sessions: { type: 'string', default: '1000000' },
    /** Of an earlier time: their jobs, receipts and all that stays of them. */
    erased: { type: 'string', default: '100000' },
    /** Requests of each kind. */
    requests: { type: 'string', default: '1000' },
    /** Where the database lies meanwhile: 1 KB a person and 1.5 KB a session. */
    folder: { type: 'string', default: tmpdir() },
    draw: { type: 'boolean', default: false },
  },
})
const persons = Number(options.persons)
const sessions = Number(options.sessions)
const erased = Number(options.erased)
const requests = Number(options.requests)
const figures = join(import.meta.dirname, 'growth.json')
const picture = join(import.meta.dirname, '../docs/growth.svg')

/** Filled by one statement. */
const sessionsAPart = 500_000
/** Of a session of five minutes, of which the SDK makes so many uploads. */
const chunksASession = 12
const bytesAChunk = 9_000

const measured = (): Growth[] =>
  existsSync(figures) ? JSON.parse(readFileSync(figures, 'utf8')) : []

async function measure(): Promise<Growth> {
  mkdirSync(options.folder, { recursive: true })
  const folder = mkdtempSync(join(options.folder, 'lethe-growth-'))
  const embedded = await openEmbedded({ dataDir: join(folder, 'database') })
  const { address } = embedded
  await migrate(address)
  await migrate(address, 'keys')
  const owner = await connectOne(embedded.superuserAddress)
  const settings = async (texts: string[]) => {
    for (const text of texts) await owner.client.query(text)
    await owner.client.query('select pg_reload_conf()')
  }
  const environment = {
    DATABASE_URL: urlOf(address),
    PORT: '0',
    DATA_DIR: join(folder, 'service'),
    LOG_LEVEL: 'error',
    INGEST_LIMIT_PER_ADDRESS: '0',
    INGEST_LIMIT_PER_PROJECT: '0',
  }
  let service: Awaited<ReturnType<typeof start>> | undefined
  const serve = async () => {
    service = await start([...letheWords, 'serve'], /listens on (\S+)/, environment)
    return service.found
  }
  // Loading waits for no disk and checks no references. Requests are measured without these.
  await settings([
    "alter system set max_wal_size = '16GB'",
    'alter system set fsync = off',
    'alter system set full_page_writes = off',
    `alter role ${address.user} set session_replication_role = replica`,
  ])
  const loading = connect({ connection: address, statementSeconds: 7_200 })
  let db = loading
  try {
    await timed(`${persons} persons`, () => loadPersons(loading, persons))
    const [project] = await loading.sql<{ id: number }>`select id from projects order by id limit 1`
    const large = project?.id as number
    await timed('the search index', () => indexAll(loading, owner.client))
    await timed(`${sessions} sessions`, () => loadSessions(loading, large))
    await settings([
      'alter system reset all',
      `alter role ${address.user} reset session_replication_role`,
      'vacuum analyze',
      'checkpoint',
    ])
    await loading.end()
    db = connect({ connection: address, statementSeconds: 7_200 })
    const secret = await createKey(db.sql, large, 'secret', 'bench')
    const open = await createKey(db.sql, large, 'public', 'bench')
    const before = requester(await serve(), secret.text, open.text)
    await timed(`${erased} erased persons`, () => loadErased(db, before, large))
    if (service) await stop(service.child)
    await settings(['vacuum analyze', 'checkpoint'])
    const sizes = await sizesOf(db)
    const asked = requester(await serve(), secret.text, open.text)
    const times = await timesOf(db, asked, large)
    const processor = await processorOf(db, address, large)
    const megabytes = Math.round(residentMegabytes(service?.child.pid as number))
    return { persons, sessions, erased, chunksASession, sizes, times, processor, megabytes }
  } finally {
    if (service && service.child.exitCode === null) await stop(service.child)
    await owner.end()
    await db.end()
    await embedded.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function timed(what: string, run: () => Promise<unknown>): Promise<void> {
  const began = performance.now()
  await run()
  console.log(`${what}: ${((performance.now() - began) / 1_000).toFixed(0)} s`)
}

/**
 * The product gives each person its segment as it does for an import; the index over all of them is
 * built afterwards in one go, which takes a tenth of the time and makes the same index.
 */
async function indexAll(db: Db, owner: Owner): Promise<void> {
  const grams = "'person_search_grams'::regclass"
  await owner.query(`update pg_index set indisready = false where indexrelid = ${grams}`)
  // A call may not come upon the project: it looks at some random pages only.
  for (let idle = 0; idle < 20; ) {
    const given = await indexSearchTail(db, { seconds: 10, partPersons: 2_000 })
    idle = given === 0 ? idle + 1 : 0
  }
  await owner.query(`update pg_index set indisready = true where indexrelid = ${grams}`)
  await owner.query("set maintenance_work_mem = '2GB'")
  await owner.query('set max_parallel_maintenance_workers = 2')
  await owner.query('reindex index person_search_grams')
  // The samples asked the index, which had nothing yet.
  await owner.query('delete from search_segment_grams')
  await owner.query('update search_segments set sampled_persons = 0')
  for (let isDone = false; !isDone; ) {
    const { rows } = await owner.query<{ sampled: boolean }>(
      `select search_sample_segment(project_id) as sampled
       from (select distinct project_id from search_segments) as projects`,
    )
    isDone = rows.every(({ sampled }) => !sampled)
  }
}

type Owner = Awaited<ReturnType<typeof connectOne>>['client']

/** Sessions as they are a day after their end: one row, and one of its pack. */
async function loadSessions(db: Db, project: number): Promise<void> {
  const packed = JSON.stringify(
    Array.from({ length: chunksASession }, (_, number) => [
      'tab1',
      number,
      0,
      number * bytesAChunk,
      bytesAChunk,
      1_760_000_000_000 + number * 25_000,
    ]),
  )
  for (let first = 0; first < sessions; first += sessionsAPart) {
    const count = Math.min(sessionsAPart, sessions - first)
    // An offset into the persons in the order of their ids would read all that come before.
    const [from] = await db.sql<{ id: string }>`
      select coalesce(max(person_id), 0) as id from person_browsers where project_id = ${project}`
    await db.sql`
      with person as (
        select id, row_number() over () as n from (
          select id from persons
          where project_id = ${project} and id > ${from?.id}
          order by id limit ${Math.ceil(count / 2)}) p
      ), browser as (
        select gen_random_uuid() as id, p.id as person_id
        from generate_series(1, ${Math.ceil(count / 2)}::int) n
        left join person p using (n)
      ), browsers as (
        insert into browsers (project_id, id) select ${project}, id from browser
      ), keys as (
        insert into browser_keys (project_id, browser_id, master_key_id, wrapped, unchecked_since)
        select ${project}, id, 'k1', decode(repeat('a7', 61), 'hex'), null from browser
      ), links as (
        insert into person_browsers (project_id, browser_id, person_id)
        select ${project}, id, person_id from browser where person_id is not null
      ), session as (
        insert into sessions (project_id, browser_id, started_at, last_chunk_at, chunks, bytes, pages,
          url, user_agent, sdk_version, first_event_at, last_event_at, packed, is_unpacked)
        select ${project}, b.id, moment, moment + interval '5 minutes', ${chunksASession},
          ${chunksASession * bytesAChunk}, 4, 'https://shop.example/products/' || s.n || '/details',
          'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
          '1.0.0', moment, moment + interval '5 minutes', ${packed}::jsonb, false
        from browser b, generate_series(1, 2) s(n),
          lateral (select app_now() - interval '1 day' - random() * interval '28 days' as moment) m
        returning id, browser_id, started_at
      )
      insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until, stored_at,
        bytes)
      select ${project}, id, '', 0,
        'blobs/' || ${project}::int || '/' || browser_id || '/' || id || '/-0-' || left(gen_random_uuid()::text, 8),
        'stored', started_at, started_at, ${chunksASession * bytesAChunk}
      from session`
  }
}

/** The service erases one person with a recording; what stays of it is what stays of each. */
async function loadErased(db: Db, { call, record }: Requester, project: number): Promise<void> {
  const made = await call('POST', '/v1/persons', { externalId: 'erased', properties: {} })
  if (made.status !== 201) throw new Error(`A person is created with ${made.status}.`)
  const recorded = await record()
  await recorded.upload(0)
  await recorded.identify('erased')
  await call('DELETE', '/v1/persons/erased')
  for (;;) {
    const [left] = await db.sql<{ status: string }>`
      select status from deletion_jobs where project_id = ${project}`
    if (left?.status === 'completed') break
    await sleep(100)
  }
  for (const table of stayingTables) {
    const columns = await db.sql<{ name: string; value: string }>`
      select quote_ident(attname) as name, case
          when attname in ('id', 'job_id') and atttypid = 'uuid'::regtype
            then 'overlay(' || quote_ident(attname) || '::text placing lpad(to_hex(n), 8, ''0'') from 1 for 8)::uuid'
          when attname = 'external_id' then '''user_erased_'' || n'
          when attname in ('person_hash', 'hash') then 'sha256(n::text::bytea)'
          when attname = 'number' and ${table} <> 'deletion_attempts' then 'number + n'
          else quote_ident(attname) end as value
      from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attidentity = ''`
    const names = raw(columns.map(({ name }) => name).join())
    const values = raw(columns.map(({ value }) => value).join())
    await db.sql`
      insert into ${raw(table)} (${names})
      select ${values} from ${raw(table)}, generate_series(1, ${erased}::int) n`
  }
  // There are no files to these rows of the ledger.
  await db.sql`
    update ledger_state set last_number = last_number + ${erased}, compared_to = last_number + ${erased}`
  await giveUpEntries(db.sql)
}

/** What an erasure leaves permanently. */
const stayingTables = [
  'deletion_jobs',
  'deletion_attempts',
  'receipts',
  'erased_persons',
  'job_purges',
  'ledger_entries',
  'audit_log',
]

async function sizesOf(db: Db): Promise<Growth['sizes']> {
  return db.sql<Growth['sizes'][number]>`
    select c.relname as table, c.reltuples::float8 as rows,
      (pg_relation_size(c.oid) + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0))::float8 as bytes,
      (select coalesce(json_object_agg(i.relname, pg_relation_size(i.oid) order by i.relname), '{}')
       from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = c.oid) as indexes
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.reltuples > 10000
    order by pg_total_relation_size(c.oid) desc`
}

/** The service's own responses, one request at a time. */
async function timesOf(
  db: Db,
  { call, record }: Requester,
  project: number,
): Promise<Growth['times']> {
  const ids = (
    await db.sql<{ externalId: string }>`
      select external_id as "externalId" from persons
      where project_id = ${project} and mod(hashint8(id), 300) = 0
        and not exists (select from person_browsers l where l.project_id = ${project} and l.person_id = persons.id)
      limit ${2 * requests}`
  ).map((one) => encodeURIComponent(one.externalId))
  const [seen, deleted] = [ids.slice(0, ids.length / 2), ids.slice(ids.length / 2)]
  const texts = Object.values(await textsOf(db, project)).flat()
  const recorded = await record()
  const search = (n: number, cursor = '') =>
    call('GET', `/v1/persons?search=${encodeURIComponent(at(texts, n))}${cursor}`)
  const later: string[] = []
  const times: Growth['times'] = {}
  const add = async (name: string, run: (n: number) => Promise<Answer>) => {
    for (let n = 0; n < 50; n++) await run(-1 - n)
    const taken: number[] = []
    for (let n = 0; n < requests; n++) {
      const began = performance.now()
      const { status, text } = await run(n)
      taken.push(performance.now() - began)
      if (status >= 300) throw new Error(`${name}: ${status} ${text}`)
    }
    times[name] = quantiles(taken)
  }
  await add('nothing (GET /health/live)', () => call('GET', '/health/live'))
  await add('get', (n) => call('GET', `/v1/persons/${at(seen, n)}`))
  await add('list', () => call('GET', '/v1/persons'))
  await add('search', async (n) => {
    const answer = await search(n)
    const { nextCursor } = JSON.parse(answer.text)
    if (nextCursor) later.push(`${encodeURIComponent(at(texts, n))}&cursor=${nextCursor}`)
    return answer
  })
  await add('search, second page', (n) => call('GET', `/v1/persons?search=${at(later, n)}`))
  await add('chunk of 9 KB', (n) => recorded.upload(n + 100))
  await add('DELETE', (n) => call('DELETE', `/v1/persons/${at(deleted, n)}`))
  return times
}

/**
 * What the database itself works on each, in processor time of its process, which other load on the
 * machine does not change.
 */
async function processorOf(db: Db, address: DbAddress, project: number): Promise<Growth['times']> {
  const { sql, end } = await connectOne(address)
  const [backend] = await sql<{ pid: number }>`select pg_backend_pid() as pid`
  const file = `/proc/${backend?.pid}/schedstat`
  const milliseconds = () => Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6
  const ids = await db.sql<{ id: string; externalId: string }>`
    select id, external_id as "externalId" from persons
    where project_id = ${project} and mod(hashint8(id), 200) = 0
    order by hashint8(id) limit ${requests}`
  const texts = Object.values(await textsOf(db, project)).flat()
  const times: Growth['times'] = {}
  const add = async (name: string, run: (n: number) => Promise<unknown>) => {
    for (let n = 0; n < 50; n++) await run(n)
    const taken: number[] = []
    for (let n = 0; n < requests; n++) {
      const before = milliseconds()
      await run(n)
      taken.push(milliseconds() - before)
    }
    times[name] = quantiles(taken)
  }
  const search = (n: number, cursor: string | null) =>
    searchPersons(sql, project, at(texts, n), cursor, 51)
  await add('get', (n) => findPerson(sql, project, at(ids, n).externalId))
  await add('list, any page', (n) => listPersons(sql, project, at(ids, n).id, 51))
  await add('search', (n) => search(n, null))
  await add('search, any page', (n) => search(n, at(ids, n).id))
  await end()
  return times
}

function quantiles(taken: number[]): { p50: number; p99: number } {
  const sorted = taken.toSorted((a, b) => a - b)
  const quantile = (share: number) => sorted[Math.floor(sorted.length * share)] as number
  return { p50: quantile(0.5), p99: quantile(0.99) }
}

const at = <Item>(items: Item[], n: number): Item => items.at(n % items.length) as Item

type Answer = { status: number; text: string }
type Requester = ReturnType<typeof requester>

function requester(url: string, secretKey: string, publicKey: string) {
  async function send(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(url + path, init)
    return { status: response.status, text: await response.text() }
  }
  const json = (method: string, key: string, body?: unknown) => ({
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const call = (method: string, path: string, body?: unknown) =>
    send(path, json(method, secretKey, body))
  /** A session of a new browser. */
  async function record() {
    const { text } = await send(`/ingest/v1/start?key=${publicKey}`, { method: 'POST' })
    const { browserId, sessionId } = JSON.parse(text)
    const place = `key=${publicKey}&browser=${browserId}&session=${sessionId}&tab=tab1`
    const chunk = gzipSync(randomBytes(bytesAChunk))
    return {
      identify: (userId: string) =>
        send(
          `/ingest/v1/identify?key=${publicKey}`,
          json('POST', publicKey, { browserId, userId }),
        ),
      upload: (number: number) =>
        send(`/ingest/v1/chunks?${place}&number=${number}`, { method: 'POST', body: chunk }),
    }
  }
  return { call, record }
}

if (options.draw) {
  writeFileSync(picture, draw(measured()))
  printTables(measured())
} else {
  const growth = await measure()
  const others = measured().filter((one) => one.persons !== persons || one.sessions !== sessions)
  const all = [...others, growth].sort((a, b) => a.persons - b.persons || a.sessions - b.sessions)
  writeFileSync(figures, `${JSON.stringify(all, null, 2)}\n`)
  printTables([growth])
}
