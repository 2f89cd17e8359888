/**
 * Compares `lethe serve --processes 2` with 1, in turns on one database: `node bench/processes.ts
 * [--rounds R] [--seconds S]`. The load and PostgreSQL share the cores, so two processes gain at
 * least as much elsewhere. Prints a table in Markdown. Needs wrk.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { connect } from '../packages/server/src/sql.ts'
import { inTurns, letheWords, load, start, stop, urlOf } from './measure.ts'
import { insertPersons } from './persons-data.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
  },
})
const seconds = Number(options.seconds)
const persons = 10_000

const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-processes-'))
const embedded = await openEmbedded({ dataDir: join(folder, 'database') })
await migrate(embedded.address)
const db = connect({ connection: embedded.address, statementSeconds: 600 })
const { id } = await createProject(db.sql, 'bench')
const { text: secretKey } = await createKey(db.sql, id, 'secret', 'bench')
const { text: publicKey } = await createKey(db.sql, id, 'public', 'bench')
await insertPersons(db, id, persons)

const startWith = (processes: number) =>
  start([...letheWords, 'serve', '--processes', String(processes)], /listens on (\S+)/, {
    DATABASE_URL: urlOf(embedded.address),
    PORT: '0',
    DATA_DIR: join(folder, 'service'),
    INGEST_LIMIT_PER_ADDRESS: '0',
    INGEST_LIMIT_PER_PROJECT: '0',
  })
const services = { one: await startWith(1), two: await startWith(2) }

const places: string[] = []
for (let i = 0; i < 64; i++) {
  const url = `${services.one.found}/ingest/v1/start?key=${publicKey}`
  const answer = (await (await fetch(url, { method: 'POST' })).json()) as Record<string, string>
  places.push(`"&browser=${answer.browserId}&session=${answer.sessionId}"`)
}
const chunk = join(folder, 'chunk')
writeFileSync(chunk, gzipSync(`{"type":3,"data":"${randomBytes(6_600).toString('base64')}"}\n`))

const headers = `wrk.headers["Authorization"] = "Bearer ${secretKey}"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(os.time())`
let runs = 0
const scripts: Record<string, () => string> = {
  'GET one person': () => `${headers}
request = function() return wrk.format("GET", "/v1/persons/user-" .. math.random(${persons})) end`,
  'POST that changes': () => `${headers}
request = function()
  return wrk.format("POST", "/v1/persons", nil, '{"externalId":"user-' .. math.random(${persons})
    .. '","properties":{"changed":' .. math.random(1000000000) .. '}}')
end`,
  'chunks of 9 KB': () => `local file = io.open("${chunk}", "rb")
local body = file:read("*all")
local places = { ${places.join(', ')} }
local n = 0
request = function()
  n = n + 1
  return wrk.format("POST", "/ingest/v1/chunks?key=${publicKey}" .. places[n % #places + 1]
    .. "&tab=run${++runs}&number=" .. math.floor(n / #places), nil, body)
end`,
}

console.log('| what | 1 process, a second | 2 processes, a second | ratio |')
console.log('| --- | ---: | ---: | ---: |')
for (const [what, lua] of Object.entries(scripts)) {
  const contender =
    ({ found }: { found: string }) =>
    () =>
      // Fewer than a process accepts from one address at once.
      load({ url: found, lua: lua() }, 30, seconds)
  const { one, two } = await inTurns(
    { one: contender(services.one), two: contender(services.two) },
    Number(options.rounds),
  )
  const rates = [one, two].map((run) => run?.requestsPerSecond ?? Number.NaN) as [number, number]
  console.log(
    `| ${what} | ${rates.map(Math.round).join(' | ')} | ${(rates[1] / rates[0]).toFixed(2)} |`,
  )
}

await stop(services.two.child)
await stop(services.one.child)
await db.end()
await embedded.close()
rmSync(folder, { recursive: true })
