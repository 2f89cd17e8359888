/**
 * Compares the person API with its floors: `node bench/persons.ts [--persons N] [--seconds S]
 * [--rounds R]`. Prints tables in Markdown. Needs wrk and pgbench (Debian's wrk and
 * postgresql-contrib).
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { indexSearchTail } from '../packages/server/src/persons/search-index.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { connect } from '../packages/server/src/sql.ts'
import type { LoopWaits } from './loop-waits.ts'
import {
  inTurns,
  type Load,
  letheWords,
  load,
  residentMegabytes,
  start,
  stop,
  urlOf,
} from './measure.ts'
import { insertPersons } from './persons-data.ts'

const { values: options } = parseArgs({
  options: {
    persons: { type: 'string', default: '300000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
  },
})
const persons = Number(options.persons)
const seconds = Number(options.seconds)
const rounds = Number(options.rounds)
/** Until its code is compiled, a service needs up to twice the processor time. */
const warmUpSeconds = 10

const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-'))
const embedded = await openEmbedded({ dataDir: folder })
const { host, port, user, password, database } = embedded.address
const databaseUrl = urlOf(embedded.address)
await migrate(embedded.address)
const db = connect({ connection: embedded.address, statementSeconds: 600 })

const project = await createProject(db.sql, 'bench')
const { text: key } = await createKey(db.sql, project.id, 'secret', 'bench')
await insertPersons(db, project.id, persons)
// A service in use has already indexed its persons; otherwise that would take a minute of the run.
while ((await indexSearchTail(db, { seconds: 10 })) > 0);
await db.sql`vacuum analyze`

type Started = Awaited<ReturnType<typeof start>>

let service!: Started
let floor!: Started
/** Megabytes at the end of each round. */
const resident = { service: [] as number[], floor: [] as number[] }

async function stopBoth(): Promise<void> {
  resident.service.push(residentMegabytes(service.child.pid as number))
  resident.floor.push(residentMegabytes(floor.child.pid as number))
  await stop(service.child)
  await stop(floor.child)
}

/** Starts a new service and floor and warms them up. */
async function restartBoth(): Promise<void> {
  if (service) await stopBoth()
  service = await start([...letheWords, 'serve'], /listens on (\S+)/, {
    DATABASE_URL: databaseUrl,
    PORT: '0',
    DATA_DIR: join(folder, 'service'),
  })
  floor = await start(
    [join(import.meta.dirname, 'floor-server.ts'), databaseUrl, String(project.id)],
    /(http:\/\/\S+)/,
  )
  for (const run of Object.values(loads)) run(warmUpSeconds)
}

const headers = `wrk.headers["Authorization"] = "Bearer ${key}"
wrk.headers["Content-Type"] = "application/json"
math.randomseed(os.time())`
const get = (base: string) => ({
  url: base,
  lua: `${headers}
request = function() return wrk.format("GET", "/v1/persons/user-" .. math.random(${persons})) end`,
})
const list = (base: string) => ({
  url: `${base}/v1/persons`,
  lua: headers,
})
const post = (properties: string) => ({
  url: service.found,
  lua: `${headers}
request = function()
  return wrk.format("POST", "/v1/persons", nil,
    '{"externalId":"user-' .. math.random(${persons}) .. '","properties":${properties}}')
end`,
})

/** The same statement as a POST that changes, prepared, from 32 clients and without HTTP. */
function pgbench(): Load {
  const script = join(folder, 'write.sql')
  writeFileSync(
    script,
    `\\set n random(1, ${persons})
\\set v random(1, 1000000000)
select outcome, external_id, properties, created_at, updated_at from person_write(
  ${project.id}, 'user-' || :n::int, jsonb_build_object('changed', :v::int), '{}', 'user-' || :n::int, null, null, true);
`,
  )
  const words = ['-n', '-M', 'prepared', '-c', '32', '-j', '1', '-T', String(seconds), '-f', script]
  const out = execFileSync(
    'pgbench',
    [...words, '-h', host, '-p', String(port), '-U', user, database],
    { encoding: 'utf8', env: { ...process.env, PGPASSWORD: password } },
  )
  const requestsPerSecond = Number(/tps = ([\d.]+)/.exec(out)?.[1])
  return { requestsPerSecond, p50: Number.NaN, p99: Number.NaN, errors: 0 }
}

const loads = {
  floorGet: (time = seconds) => load(get(floor.found), 32, time),
  get: (time = seconds) => load(get(service.found), 32, time),
  unchanged: (time = seconds) => load(post('{"absent":null}'), 32, time),
  floorList: (time = seconds) => load(list(floor.found), 16, time),
  list: (time = seconds) => load(list(service.found), 16, time),
  post: (time = seconds) => load(post(`{"changed":' .. math.random(1000000000) .. '}`), 32, time),
}
const measured = await inTurns({ ...loads, pgbench }, rounds, restartBoth)
await stopBoth()

/**
 * Measures the longest delays of the event loop of a separate service, with the largest bodies and
 * pages and, for what the machine itself adds, without requests.
 */
async function longestWaits(): Promise<Record<string, LoopWaits>> {
  const file = join(folder, 'loop-waits')
  const watching = ['--import', join(import.meta.dirname, 'loop-waits.ts')]
  const watched = await start([...watching, ...letheWords, 'serve'], /listens on (\S+)/, {
    DATABASE_URL: databaseUrl,
    PORT: '0',
    DATA_DIR: join(folder, 'service'),
    LOOP_WAITS: file,
  })
  const large = await createProject(db.sql, 'large')
  const { text: largeKey } = await createKey(db.sql, large.id, 'secret', 'bench')
  const send = async (path: string, init: RequestInit = {}) => {
    const authorization = {
      authorization: `Bearer ${largeKey}`,
      'content-type': 'application/json',
    }
    const answer = await fetch(watched.found + path, { ...init, headers: authorization })
    if (!answer.ok) throw new Error(`${path} returned ${answer.status}.`)
    await answer.arrayBuffer()
  }
  const properties = (n: number) =>
    Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, `${n} ${i} `.repeat(20)]))
  const post = (n: number) =>
    send('/v1/persons', {
      method: 'POST',
      body: JSON.stringify({ externalId: `large-${n % 100}`, properties: properties(n) }),
    })
  const read = async (): Promise<LoopWaits> => {
    rmSync(file, { force: true })
    watched.child.kill('SIGUSR2')
    while (!existsSync(file)) await setTimeout(20)
    return JSON.parse(readFileSync(file, 'utf8'))
  }
  const during = async (work: (n: number) => Promise<unknown>, times: number) => {
    await read()
    const lane = async (first: number) => {
      for (let n = first; n < times; n += 4) await work(n)
    }
    await Promise.all([0, 1, 2, 3].map(lane))
    return read()
  }
  // Warms up the service first.
  await during(post, 100)
  const waits = {
    'bodies of 200 KB': await during(post, 200),
    'pages of 100 such persons': await during(() => send('/v1/persons?limit=100'), 40),
    'no request at all': await during(() => setTimeout(50), 200),
  }
  await stop(watched.child)
  return waits
}

const waits = await longestWaits()

const rows: [what: string, ours: Load | undefined, floor: Load | undefined, target: number][] = [
  ['GET one person / bare Fastify, same select', measured.get, measured.floorGet, 0.75],
  ['POST that changes / pgbench, same statement, 32 clients', measured.post, measured.pgbench, 0.6],
  ['POST that changes nothing / GET', measured.unchanged, measured.get, 0.85],
  ['list of 50 / bare Fastify, same rows', measured.list, measured.floorList, 0.75],
]
const [megabytes, floorMegabytes] = [Math.max(...resident.service), Math.max(...resident.floor)]
console.log(`Person API, ${persons} persons, ${rounds} rounds of ${seconds} s, medians:\n`)
console.log('| what | requests/s | of the floor | target | p50 ms | p99 ms |')
console.log('| --- | ---: | ---: | ---: | ---: | ---: |')
for (const [what, ours, floorLoad, target] of rows) {
  if (!ours || !floorLoad) continue
  const ratio = ours.requestsPerSecond / floorLoad.requestsPerSecond
  console.log(
    `| ${what} | ${Math.round(ours.requestsPerSecond)} | ${Math.round(ratio * 100)} % | ≥ ${target * 100} % ${ratio >= target ? 'met' : 'MISSED'} | ${ours.p50.toFixed(2)} | ${ours.p99.toFixed(2)} |`,
  )
}
console.log(
  `\nMemory of the service after this load: ${Math.round(megabytes)} MB (target < 200 MB ${megabytes < 200 ? 'met' : 'MISSED'}), of the bare Fastify ${Math.round(floorMegabytes)} MB.`,
)

console.log('\nLongest delays of the event loop (target < 50 ms with bodies and with pages):\n')
console.log('| with | own ms | others’ turns counted in, ms |')
console.log('| --- | ---: | ---: |')
for (const [what, { longestOwnMilliseconds, longestMilliseconds }] of Object.entries(waits)) {
  const figures = [longestOwnMilliseconds, longestMilliseconds].map((one) => one.toFixed(1))
  console.log(`| ${[what, ...figures].join(' | ')} |`)
}

await db.end()
await embedded.close()
rmSync(folder, { recursive: true, force: true })
