/**
 * Measures how attacks on the service affect a client: the p99 of GET /v1/persons/:externalId during
 * each attack as a ratio to that without, in turns: `node bench/attacks.ts [--seconds S] [--rounds R]
 * [--only TEXT]`. Prints a table in Markdown. Needs wrk and two processors.
 *
 * The service and its database have one processor, the client and the attacker the other, because
 * real attacks come from other machines. To show what the attacker takes from the client, it also
 * attacks a server that does nothing. Each attack comes from one address, with the default limits.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { writePerson } from '../packages/server/src/persons/store.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { connect } from '../packages/server/src/sql.ts'
import { attackNames, type Target } from './attacker.ts'
import type { LoopWaits } from './loop-waits.ts'
import { letheWords, load, median, residentMegabytes, start, stop, urlOf } from './measure.ts'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
  },
})
const seconds = Number(options.seconds)
const rounds = Number(options.rounds)
/** Until the service has finished the work of an attack. */
const settleSeconds = 2
/** Until the burst that the limits allow is over. */
const burstSeconds = 6

/** Pins this process, and those it starts from now on, to a processor. */
function runOn(processor: number): void {
  execFileSync('taskset', ['-cp', String(processor), String(process.pid)])
}

const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-attacks-'))
runOn(0)
const embedded = await openEmbedded({ dataDir: join(folder, 'database') })
await migrate(embedded.address)
const db = connect({ connection: embedded.address, statementSeconds: 60 })
const { id: projectId } = await createProject(db.sql, 'bench')
const { text: secretKey } = await createKey(db.sql, projectId, 'secret', 'bench')
const { text: publicKey } = await createKey(db.sql, projectId, 'public', 'bench')
const largeProject = await createProject(db.sql, 'large')
const { text: largeKey } = await createKey(db.sql, largeProject.id, 'secret', 'bench')
await writePerson(db.sql, projectId, 'bystander', { name: 'A' }, true)
const properties = Object.fromEntries(
  Array.from({ length: 900 }, (_, i) => [`k${i}`, `${i} `.repeat(50)]),
)
for (let n = 0; n < 100; n++) {
  await writePerson(db.sql, largeProject.id, `large-${n}`, properties, true)
}
await db.end()

const masterKey = `k1:${randomBytes(32).toString('base64')}`

async function serve(name: string, settings: Record<string, string> = {}) {
  const waitsFile = join(folder, `${name}-waits`)
  const watching = ['--import', join(import.meta.dirname, 'loop-waits.ts')]
  const service = await start([...watching, ...letheWords, 'serve'], /Lethe listens on (\S+)/, {
    LOOP_WAITS: waitsFile,
    DATABASE_URL: urlOf(embedded.address),
    PORT: '0',
    DATA_DIR: join(folder, name),
    MASTER_KEY: masterKey,
    LOG_LEVEL: 'error',
    ...settings,
  })
  const answer = await fetch(`${service.found}/ingest/v1/start?key=${publicKey}`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: '{}',
  })
  const place = (await answer.json()) as { browserId: string; sessionId: string }
  const target: Target = {
    url: service.found,
    publicKey,
    largePath: '/v1/persons?limit=100',
    secretKey: largeKey,
    ...place,
  }
  return { ...service, target, waitsFile }
}

type Service = Awaited<ReturnType<typeof serve>>

/** Starts an attacker that uses only what the client leaves of their processor. */
function attack(name: string, target: Target): ChildProcess {
  const words = ['--idle', '0', process.execPath, join(import.meta.dirname, 'attacker.ts'), name]
  return spawn('chrt', [...words, JSON.stringify(target)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Ends the attacker. Returns how many responses it got per second. */
async function endAttack(attacker: ChildProcess): Promise<number> {
  let printed = ''
  attacker.stdout?.on('data', (text) => {
    printed += text
  })
  await stop(attacker)
  return Number(printed)
}

function measure({ found }: Service) {
  const lua = `wrk.headers["Authorization"] = "Bearer ${secretKey}"`
  const measured = load({ url: `${found}/v1/persons/bystander`, lua }, 4, seconds)
  if (measured.errors > 0) throw new Error(`${measured.errors} requests failed.`)
  return measured
}

/** Returns the longest delay that the event loop itself caused since the last call. */
async function readWaits({ child, waitsFile }: Service): Promise<number> {
  rmSync(waitsFile, { force: true })
  child.kill('SIGUSR2')
  while (!existsSync(waitsFile)) await sleep(20)
  return (JSON.parse(readFileSync(waitsFile, 'utf8')) as LoopWaits).longestOwnMilliseconds
}

interface Row {
  idle: number
  beside: number
  ratio: number
  control: number
  share: number
  answers: number
  ownWait: number
  megabytes: number
}

async function measureRound(name: string, service: Service): Promise<Row> {
  const idle = measure(service)
  const control = attack(name, { ...service.target, url: trivial.found })
  await sleep(settleSeconds * 1_000)
  const besideControl = measure(service)
  await endAttack(control)
  const attacker = attack(name, service.target)
  await sleep(burstSeconds * 1_000)
  await readWaits(service)
  const beside = measure(service)
  const ownWait = await readWaits(service)
  const megabytes = residentMegabytes(service.child.pid as number)
  const answers = await endAttack(attacker)
  await sleep(settleSeconds * 1_000)
  return {
    idle: idle.p99,
    beside: beside.p99,
    ratio: beside.p99 / idle.p99,
    control: besideControl.p99 / idle.p99,
    share: beside.requestsPerSecond / idle.requestsPerSecond,
    answers,
    ownWait,
    megabytes,
  }
}

runOn(1)
const trivial = await start([join(import.meta.dirname, 'trivial-server.ts')], /listens on (\S+)/)
console.log(
  '| beside | answers to it a second | p99 ms: idle, beside | × idle | where another server is attacked | requests a second, of idle | longest own wait of the loop, ms | MB resident |',
)
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
let missed = 0
for (const name of attackNames) {
  if (!name.includes(options.only)) continue
  runOn(0)
  // A new service for each attack: the previous one must not affect the figures.
  const service = await serve(
    name,
    name.includes('quota') ? { INGEST_MEGABYTES_PER_ADDRESS: '1' } : {},
  )
  runOn(1)
  measure(service)
  const all: Row[] = []
  for (let round = 0; round < rounds; round++) all.push(await measureRound(name, service))
  await stop(service.child)
  const of = (field: keyof Row) => median(all.map((row) => row[field]))
  if (of('ratio') > 2) missed++
  const figures = [
    of('answers').toFixed(0),
    `${of('idle').toFixed(2)}, ${of('beside').toFixed(2)}`,
    of('ratio').toFixed(2) + (of('ratio') > 2 ? ' **missed**' : ''),
    of('control').toFixed(2),
    `${Math.round(100 * of('share'))} %`,
    of('ownWait').toFixed(0),
    of('megabytes').toFixed(0),
  ]
  console.log(`| ${[name, ...figures].join(' | ')} |`)
}
console.log(`\nTarget: at most 2 × idle; ${missed} missed.`)

await stop(trivial.child)
await embedded.close()
rmSync(folder, { recursive: true, force: true })
