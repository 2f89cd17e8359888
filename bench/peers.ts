/**
 * Compares the person API with Parse Server and Directus, on the same PostgreSQL with the same
 * persons: `node bench/peers.ts [--persons N] [--seconds S] [--rounds R] [--folder F]`. Installs both
 * from npm into the folder (some minutes, 1 GB, kept for the next run). Needs wrk and an installed
 * PostgreSQL, because neither supports unix sockets.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { migrate } from '../packages/server/src/migrate.ts'
import { indexSearchTail } from '../packages/server/src/persons/search-index.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { connect, connectOne } from '../packages/server/src/sql.ts'
import { startInstalledPostgres } from '../scripts/installed-postgres.ts'
import {
  freePort,
  inTurns,
  type Load,
  letheWords,
  load,
  type Requests,
  start,
  stop,
} from './measure.ts'

const { values: options } = parseArgs({
  options: {
    persons: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: join(tmpdir(), 'lethe-bench-peers') },
    /** The Node that their native modules are built for, if not this one. */
    'peer-node': { type: 'string', default: process.execPath },
  },
})
const persons = Number(options.persons)
const seconds = Number(options.seconds)
const rounds = Number(options.rounds)
const { folder } = options
const peerNode = options['peer-node']

/** A server with the requests to measure. */
interface Contender {
  name: string
  create: Requests
  read: Requests
  list: Requests
  common: Requests
  rare: Requests
  stop(): Promise<void>
}

const randomId = `"user-" .. math.random(${persons})`

/** Realistic names, frequent and rare: only one person has `Zqxwv`. */
const personColumns = `
  'user-' || n as external_id,
  (array['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Frances'])[n % 7 + 1] || ' '
    || (array['Lovelace', 'Hopper', 'Turing', 'Dijkstra', 'Liskov', 'Knuth', 'Allen', 'Smith'])[n % 8 + 1]
    || case when n = ${Math.floor(persons / 3)} then ' Zqxwv' else '' end as name,
  'user' || n || '@example.com' as email`

const json = (headers: Record<string, string>) =>
  Object.entries({ 'Content-Type': 'application/json', ...headers })
    .map(([name, value]) => `wrk.headers["${name}"] = "${value}"`)
    .join('\n')

function requests(url: string, headers: Record<string, string>, line: string): Requests {
  return {
    url,
    lua: `${json(headers)}
math.randomseed(os.time())
local n = math.random(1000000000)
request = function()
  n = n + 1
  ${line}
end`,
  }
}

async function lethe(databaseUrl: string): Promise<Contender> {
  await migrate(databaseUrl)
  const db = connect({ connection: databaseUrl, statementSeconds: 600 })
  const project = await createProject(db.sql, 'bench')
  const { text: key } = await createKey(db.sql, project.id, 'secret', 'bench')
  const { client, end } = await connectOne(databaseUrl)
  await client.query(`
    with given as (select n, ${personColumns} from generate_series(1, ${persons}) n),
    made as (
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (1700000000000 + n) << 20, external_id,
        jsonb_build_object('name', name, 'email', email),
        to_timestamp((1700000000000 + n) / 1000.0), to_timestamp((1700000000000 + n) / 1000.0)
      from given)
    insert into person_search (project_id, person_id, text)
    select ${project.id}, (1700000000000 + n) << 20,
      external_id || U&'\\FFFF' || lower(name) || U&'\\FFFF' || email from given`)
  await indexSearchTail(db)
  await client.query('vacuum analyze')
  await end()
  await db.end()
  const { found: url, child } = await start([...letheWords, 'serve'], /listens on (\S+)/, {
    DATABASE_URL: databaseUrl,
    PORT: '0',
    DATA_DIR: join(folder, 'lethe-data'),
  })
  const headers = { Authorization: `Bearer ${key}` }
  const get = (path: string) => requests(url, headers, `return wrk.format("GET", ${path})`)
  return {
    name: 'Lethe',
    create: requests(
      url,
      headers,
      `return wrk.format("POST", "/v1/persons", nil, '{"externalId":"new-' .. n .. '","properties":{"name":"New Person","email":"new' .. n .. '@example.com"}}')`,
    ),
    read: get(`"/v1/persons/" .. ${randomId}`),
    list: get(`"/v1/persons?limit=50"`),
    common: get(`"/v1/persons?limit=50&search=smith"`),
    rare: get(`"/v1/persons?limit=50&search=zqxwv"`),
    stop: () => stop(child),
  }
}

async function parseServer(databaseUrl: string): Promise<Contender> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = join(folder, 'parse-server.mjs')
  writeFileSync(
    program,
    `import express from 'express'
import { ParseServer } from 'parse-server'
const api = new ParseServer({
  databaseURI: '${databaseUrl}', appId: 'bench', masterKey: 'bench', restAPIKey: 'bench',
  serverURL: '${url}/parse', logLevel: 'error', silent: true, allowClientClassCreation: true,
  masterKeyIps: ['127.0.0.1', '::1'], encodeParseObjectInCloudFunction: true,
})
await api.start()
express().use('/parse', api.app).listen(${port}, '127.0.0.1', () => console.log('ready'))
`,
  )
  const { child } = await start(
    [program],
    /ready/,
    { PARSE_SERVER_LOGS_FOLDER: join(folder, 'logs') },
    peerNode,
  )
  const headers = { 'X-Parse-Application-Id': 'bench', 'X-Parse-Master-Key': 'bench' }
  const made = await fetch(`${url}/parse/classes/Person`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ externalId: 'first', name: 'First', email: 'first@example.com' }),
  })
  if (!made.ok) throw new Error(`Parse Server returned ${made.status}.`)
  const { client, end } = await connectOne(databaseUrl)
  await client.query(`
    insert into "Person" ("objectId", "createdAt", "updatedAt", "externalId", name, email)
    select 'o' || n, now() - n * interval '1 ms', now(), external_id, name, email
    from (select n, ${personColumns} from generate_series(1, ${persons}) n) given`)
  // It creates no indexes itself, and would read the whole table for each request.
  await client.query('create index on "Person" ("externalId")')
  await client.query('create index on "Person" ("createdAt" desc)')
  await client.query('vacuum analyze')
  await end()
  const where = (value: string) => `"/parse/classes/Person?limit=50&where=" .. ${value}`
  const get = (path: string) => requests(url, headers, `return wrk.format("GET", ${path})`)
  const matching = (text: string) =>
    where(
      `"${encodeURIComponent(JSON.stringify({ $or: ['externalId', 'name', 'email'].map((field) => ({ [field]: { $regex: text, $options: 'i' } })) }))}"`,
    )
  return {
    name: 'Parse Server',
    create: requests(
      url,
      headers,
      `return wrk.format("POST", "/parse/classes/Person", nil, '{"externalId":"new-' .. n .. '","name":"New Person","email":"new' .. n .. '@example.com"}')`,
    ),
    read: get(where(`"%7B%22externalId%22:%22" .. ${randomId} .. "%22%7D"`)),
    list: get(`"/parse/classes/Person?limit=50&order=-createdAt"`),
    common: get(matching('smith')),
    rare: get(matching('zqxwv')),
    stop: () => stop(child),
  }
}

async function directus(databaseUrl: string): Promise<Contender> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const { hostname, port: databasePort, username, pathname } = new URL(databaseUrl)
  const environment = {
    HOST: '127.0.0.1',
    PORT: String(port),
    DB_CLIENT: 'pg',
    DB_HOST: hostname,
    DB_PORT: databasePort,
    DB_USER: username,
    DB_PASSWORD: 'none',
    DB_DATABASE: pathname.slice(1),
    SECRET: 'bench-bench-bench-bench-bench-bench',
    ADMIN_EMAIL: 'bench@example.com',
    ADMIN_PASSWORD: 'bench-bench',
    ADMIN_TOKEN: 'bench-token',
    LOG_LEVEL: 'error',
    TELEMETRY: 'false',
    RATE_LIMITER_ENABLED: 'false',
    PUBLIC_URL: url,
  }
  const cli = join(folder, 'node_modules/directus/cli.js')
  execFileSync(peerNode, [cli, 'bootstrap'], {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: 'ignore',
  })
  const program = join(folder, 'directus.mjs')
  writeFileSync(
    program,
    `const { startServer } = await import('@directus/api/server')
await startServer()
console.log('ready')
`,
  )
  process.chdir(folder)
  const { child } = await start([program], /ready/, environment, peerNode)
  // It prints this before it listens.
  for (let n = 0; n < 300 && !(await fetch(`${url}/server/ping`).catch(() => undefined))?.ok; n++) {
    await sleep(200)
  }
  const headers = { Authorization: 'Bearer bench-token' }
  const field = (name: string, type: string) => ({ field: name, type, schema: {} })
  const made = await fetch(`${url}/collections`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      collection: 'persons',
      schema: {},
      meta: {},
      fields: [
        {
          field: 'id',
          type: 'integer',
          schema: { is_primary_key: true, has_auto_increment: true },
        },
        field('external_id', 'string'),
        field('name', 'string'),
        field('email', 'string'),
        field('created', 'timestamp'),
      ],
    }),
  })
  if (!made.ok) throw new Error(`Directus returned ${made.status}.`)
  const { client, end } = await connectOne(databaseUrl)
  await client.query(`
    insert into persons (external_id, name, email, created)
    select external_id, name, email, now() - n * interval '1 ms'
    from (select n, ${personColumns} from generate_series(1, ${persons}) n) given`)
  await client.query('create index on persons (external_id)')
  await client.query('create index on persons (created desc)')
  await client.query('vacuum analyze')
  await end()
  const get = (path: string) => requests(url, headers, `return wrk.format("GET", ${path})`)
  const matching = (text: string) =>
    `"/items/persons?limit=50&filter=${encodeURIComponent(JSON.stringify({ _or: ['external_id', 'name', 'email'].map((name) => ({ [name]: { _icontains: text } })) }))}"`
  return {
    name: 'Directus',
    create: requests(
      url,
      headers,
      `return wrk.format("POST", "/items/persons", nil, '{"external_id":"new-' .. n .. '","name":"New Person","email":"new' .. n .. '@example.com"}')`,
    ),
    read: get(`"/items/persons?limit=1&filter[external_id][_eq]=" .. ${randomId}`),
    list: get(`"/items/persons?limit=50&sort=-created"`),
    common: get(matching('smith')),
    rare: get(matching('zqxwv')),
    stop: () => stop(child),
  }
}

function install(): void {
  mkdirSync(folder, { recursive: true })
  if (existsSync(join(folder, 'node_modules/directus'))) return
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  // Both need native modules that their install scripts build.
  const words = ['i', 'parse-server@9.10.0', 'directus@11.3.5', '--dangerously-allow-all-scripts']
  execFileSync('npm', words, { cwd: folder, stdio: 'inherit' })
}

install()
const postgres = startInstalledPostgres({ listens: true, fsync: true })
if (!postgres) throw new Error('No installed PostgreSQL: apt-get install postgresql.')
try {
  const { client, end } = await connectOne(postgres.url)
  const contenders: Contender[] = []
  for (const [database, make] of Object.entries({ lethe, parse: parseServer, directus })) {
    await client.query(`create database ${database}`)
    const url = new URL(postgres.url)
    url.pathname = `/${database}`
    contenders.push(await make(url.href))
  }
  await end()
  const rows: string[] = []
  const targets: Record<string, number> = { create: 1, read: 5, list: 1, common: 1, rare: 20 }
  for (const what of ['create', 'read', 'list', 'common', 'rare'] as const) {
    const measured = await inTurns(
      Object.fromEntries(
        contenders.map((one) => [
          one.name,
          () => load(one[what], what === 'common' || what === 'rare' ? 4 : 16, seconds),
        ]),
      ),
      rounds,
    )
    const ours = (measured.Lethe as Load).requestsPerSecond
    const best = Math.max(
      ...['Parse Server', 'Directus'].map((name) => (measured[name] as Load).requestsPerSecond),
    )
    const cells = contenders.map(({ name }) => {
      const one = measured[name] as Load
      return `${Math.round(one.requestsPerSecond)}/s (p99 ${one.p99.toFixed(1)} ms)`
    })
    const target = targets[what] as number
    const label = {
      create: 'create',
      read: 'read by externalId',
      list: 'list 50 newest',
      common: 'search, frequent text',
      rare: 'search, rare text',
    }[what]
    rows.push(
      `| ${label} | ${cells.join(' | ')} | ${(ours / best).toFixed(1)} × | > ${target} × ${ours / best > target ? 'met' : 'MISSED'} |`,
    )
  }
  console.log(
    `\n${persons} persons, PostgreSQL ${postgres.version}, ${rounds} rounds of ${seconds} s, medians:\n`,
  )
  console.log(
    `| what | ${contenders.map(({ name }) => name).join(' | ')} | to the better of them | target |`,
  )
  console.log('| --- | ---: | ---: | ---: | ---: | --- |')
  console.log(rows.join('\n'))
  for (const one of contenders) await one.stop()
} finally {
  postgres.stop()
}
