/**
 * Compares ingestion on one core with its floor, the same bytes written by as many writers with an
 * fsync of file and folder each: `node bench/ingest.ts [--minutes M] [--rounds R] [--seconds S]
 * [--warm S] [--kilobytes LIST] [--beside CHECKOUT]…`. `--beside` measures other versions in turns
 * with this one. Prints tables in Markdown. Needs wrk and taskset (util-linux).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import {
  inTurns,
  type Load,
  letheWordsOf,
  load,
  loadMeanwhile,
  median,
  residentMegabytes,
  stop,
  urlOf,
} from './measure.ts'

const { values: options } = parseArgs({
  options: {
    /** The length of the memory measurement. */
    minutes: { type: 'string', default: '0.5' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
    seconds: { type: 'string', default: '5' },
    /** How long a service takes chunks before it is measured. */
    warm: { type: 'string', default: '30' },
    /** Folders of other versions, with their dependencies installed. */
    beside: { type: 'string', multiple: true, default: [] },
    kilobytes: { type: 'string', default: '8,64,256' },
    /** Runs as the floor: writes files of this many bytes into the folder. */
    floor: { type: 'string' },
    folder: { type: 'string' },
  },
})
const connections = Number(options.connections)
const seconds = Number(options.seconds)
let runs = 0

if (options.floor !== undefined) await beFloor(Number(options.floor), options.folder as string)
else await main()

/** A gzipped chunk of ndjson that compresses about eight to one, as real ones do. */
function chunkOf(gzipBytes: number): Buffer {
  const lines: string[] = []
  for (;;) {
    for (let i = 0; i < 20; i++) {
      const node = { type: 2, tagName: 'div', attributes: { class: `card card-${randomInt(50)}` } }
      const childNodes = Array.from({ length: 6 }, () => ({
        ...node,
        id: randomInt(5_000),
        childNodes: [
          { type: 3, textContent: randomBytes(3).toString('hex'), id: randomInt(5_000) },
        ],
      }))
      const data = { source: 0, texts: [], attributes: [], removes: [], adds: childNodes }
      lines.push(JSON.stringify({ type: 3, data, timestamp: Date.now() }))
    }
    const packed = gzipSync(lines.join('\n'))
    if (packed.length >= gzipBytes) return packed
  }
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-ingest-'))
  const services: Service[] = []
  try {
    services.push(await startService('this', join(import.meta.dirname, '..'), folder))
    for (const root of options.beside) {
      services.push(await startService(basename(root), resolve(root), folder))
    }
    await compare(folder, services)
    for (const service of services) await readDuringUploads(service, folder)
    for (const service of services) await watchMemory(service, folder)
  } finally {
    for (const service of services) await service.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Service {
  name: string
  url: string
  pid: number
  databasePid: number
  key: string
  secretKey: string
  places: Place[]
  end(): Promise<void>
}

/** Starts a version with a separate database, set up by that version's code. */
async function startService(name: string, root: string, folder: string): Promise<Service> {
  const source = join(root, 'packages/server/src')
  const { openEmbedded } = await import(join(source, 'embedded/embedded.ts'))
  const { migrate } = await import(join(source, 'migrate.ts'))
  const { createKey, createProject } = await import(join(source, 'projects/store.ts'))
  const { connect } = await import(join(source, 'sql.ts'))
  const dataDir = join(folder, name, 'database')
  const embedded = await openEmbedded({ dataDir })
  await migrate(embedded.address)
  const db = connect({ connection: embedded.address })
  const { id } = await createProject(db.sql, 'bench')
  const { text: key } = await createKey(db.sql, id, 'public', 'bench')
  const { text: secretKey } = await createKey(db.sql, id, 'secret', 'bench')
  await db.end()
  const { url, child } = await startPinned(letheWordsOf(root), {
    DATABASE_URL: urlOf(embedded.address),
    PORT: '0',
    DATA_DIR: join(folder, name, 'service'),
    INGEST_LIMIT_PER_ADDRESS: '0',
    INGEST_LIMIT_PER_PROJECT: '0',
    INGEST_MEGABYTES_PER_ADDRESS: '0',
  })
  return {
    name,
    url,
    pid: child.pid as number,
    databasePid: postmasterPid(dataDir),
    key,
    secretKey,
    places: await startSessions(url, key, 64),
    async end() {
      await stop(child)
      await embedded.close()
    },
  }
}

function postmasterPid(dataDir: string): number {
  const path = globSync('**/postmaster.pid', { cwd: dataDir })[0] as string
  return Number(readFileSync(join(dataDir, path), 'utf8').split('\n')[0])
}

/** Starts the service on the first core. */
function startPinned(words: string[], environment: Record<string, string>) {
  const child = spawn('taskset', ['-c', '0', process.execPath, ...words, 'serve'], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise<{ url: string; child: ChildProcess }>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
      const url = /listens on (\S+)/.exec(text)?.[1]
      if (url) resolve({ url, child })
    })
    child.on('exit', (code) => reject(new Error(`The service ended with ${code}`)))
  })
}

interface Place {
  browserId: string
  sessionId: string
}

async function startSessions(url: string, key: string, count: number): Promise<Place[]> {
  const places: Place[] = []
  for (let i = 0; i < count; i++) {
    const response = await fetch(`${url}/ingest/v1/start?key=${key}`, { method: 'POST' })
    places.push((await response.json()) as Place)
  }
  return places
}

/** Uploads of distinct chunks: to the sessions in turns, with one tab per run. */
function uploads({ url, key, places }: Service, file: string, delayMilliseconds = 0) {
  const tab = `run${++runs}`
  const list = places
    .map(({ browserId, sessionId }) => `"&browser=${browserId}&session=${sessionId}"`)
    .join(', ')
  return {
    url,
    lua: `local file = io.open("${file}", "rb")
local body = file:read("*all")
file:close()
local places = { ${list} }
local headers = { ["Content-Type"] = "application/octet-stream" }
local n = 0
delay = function()
  return ${delayMilliseconds}
end
request = function()
  n = n + 1
  local place = places[n % #places + 1]
  local path = "/ingest/v1/chunks?key=${key}" .. place .. "&tab=${tab}&number=" .. math.floor(n / #places)
  return wrk.format("POST", path, headers, body)
end`,
  }
}

async function compare(folder: string, services: Service[]): Promise<void> {
  console.log(
    `Ingestion, the service on one core, ${connections} connections, ${options.rounds} rounds of ${seconds} s, medians. The floor: ${connections} writers, each chunk a new file, fsync of file and folder, on the same core. CPU is processor time per chunk, which other load on the machine hardly affects.\n`,
  )
  console.log(
    '| version | chunk (gzip) | chunks/s | of the floor | CPU ms | floor CPU ms | database CPU ms | p50 ms | p99 ms | floor chunks/s | floor p99 ms |',
  )
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
  // Until its code is compiled, a service needs up to twice the processor time.
  let warmSeconds = Number(options.warm)
  for (const kilobytes of options.kilobytes.split(',').map(Number)) {
    const body = chunkOf(kilobytes * 1_024)
    const file = join(folder, `chunk-${kilobytes}`)
    writeFileSync(file, body)
    const cpu: Record<string, number[]> = {}
    const note = (name: string, milliseconds: number, run: Load) => {
      cpu[name] = [...(cpu[name] ?? []), milliseconds / (run.requestsPerSecond * seconds)]
    }
    const uploadsOf = (service: Service) => () => {
      const before = [
        cpuMilliseconds(service.pid),
        familyMilliseconds(service.databasePid),
      ] as const
      const run = load(uploads(service, file), connections, seconds)
      note(service.name, cpuMilliseconds(service.pid) - before[0], run)
      note(`${service.name} database`, familyMilliseconds(service.databasePid) - before[1], run)
      return run
    }
    for (const service of services) load(uploads(service, file), connections, warmSeconds)
    warmSeconds = seconds
    const { floor, ...loads } = await inTurns(
      {
        async floor() {
          const run = await runFloor(body.length, join(folder, `floor-${kilobytes}-${++runs}`))
          note('floor', run.cpuMilliseconds, run)
          return run
        },
        ...Object.fromEntries(services.map((service) => [service.name, uploadsOf(service)])),
      },
      Number(options.rounds),
    )
    for (const [name, ours] of Object.entries(loads)) {
      if (!floor) continue
      const share = Math.round((ours.requestsPerSecond / floor.requestsPerSecond) * 100)
      const cells = [
        name,
        `${Math.round(body.length / 1_024)} KB`,
        Math.round(ours.requestsPerSecond),
        `${share} %`,
        ...[name, 'floor', `${name} database`].map((one) => median(cpu[one] ?? []).toFixed(2)),
        ours.p50.toFixed(1),
        ours.p99.toFixed(1),
        Math.round(floor.requestsPerSecond),
        floor.p99.toFixed(1),
      ]
      console.log(`| ${cells.join(' | ')} |`)
    }
  }
}

type FloorLoad = Load & { cpuMilliseconds: number }

function runFloor(bytes: number, folder: string): Promise<FloorLoad> {
  mkdirSync(folder, { recursive: true })
  const words = [import.meta.filename, '--floor', String(bytes), '--folder', folder]
  const child = spawn(
    'taskset',
    [
      '-c',
      '0',
      process.execPath,
      ...words,
      '--connections',
      String(connections),
      '--seconds',
      String(seconds),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
    })
    child.on('exit', (code) => {
      rmSync(folder, { recursive: true })
      if (code === 0) resolve(JSON.parse(text))
      else reject(new Error(`The floor ended with ${code}`))
    })
  })
}

async function beFloor(bytes: number, folder: string): Promise<void> {
  const body = randomBytes(bytes)
  const began = process.cpuUsage()
  const until = performance.now() + seconds * 1_000
  const times: number[] = []
  const lane = async (name: number) => {
    for (let n = 0; performance.now() < until; n++) {
      const start = performance.now()
      const file = await open(join(folder, `${name}-${n}`), 'wx')
      await file.writeFile(body)
      await file.sync()
      await file.close()
      const directory = await open(folder, 'r')
      await directory.sync()
      await directory.close()
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: connections }, (_, name) => lane(name)))
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN
  const { user, system } = process.cpuUsage(began)
  const result: FloorLoad = {
    cpuMilliseconds: (user + system) / 1_000,
    requestsPerSecond: times.length / seconds,
    p50: at(0.5),
    p99: at(0.99),
    errors: 0,
  }
  process.stdout.write(JSON.stringify(result))
}

/** Returns the processor time that a process has used (proc(5), in hundredths of a second). */
function cpuMilliseconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** The same for a process with all its children, ended ones included. */
function familyMilliseconds(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
  return [String(pid), ...children].reduce((sum, one) => {
    const fields = readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return sum + fields.slice(11, 15).reduce((all, ticks) => all + Number(ticks) * 10, 0)
  }, 0)
}

/** Measures reads of a person, 4 at once, while browsers upload chunks of 9 KB at a given rate. */
async function readDuringUploads(service: Service, folder: string): Promise<void> {
  const { url, secretKey, name } = service
  const headers = {
    authorization: `Bearer ${secretKey}`,
    'content-type': 'application/json',
  }
  const body = JSON.stringify({ externalId: 'bystander', properties: { plan: 'free' } })
  await fetch(`${url}/v1/persons`, { method: 'POST', headers, body })
  const reads = {
    url: `${url}/v1/persons/bystander`,
    lua: `wrk.headers["Authorization"] = "${headers.authorization}"`,
  }
  const file = join(folder, 'chunk-beside')
  writeFileSync(file, chunkOf(8 * 1_024))
  console.log(
    `\n| ${name}: chunks requested and stored per second | p50 ms of GET | p99 ms | × idle |`,
  )
  console.log('| --- | ---: | ---: | ---: |')
  const stored: Record<string, number[]> = {}
  const beside = (rate: number) => async () => {
    const delay = Math.round((connections * 1_000) / rate)
    const chunks = uploads(service, file, Number.isFinite(rate) ? delay : 0)
    const uploading = loadMeanwhile(chunks, connections, seconds + 2)
    await sleep(1_000)
    const asked = load(reads, 4, seconds)
    stored[rate] = [...(stored[rate] ?? []), (await uploading).requestsPerSecond]
    return asked
  }
  const rates = [50, 100, 200, Number.POSITIVE_INFINITY]
  const asked = await inTurns(
    {
      idle: () => load(reads, 4, seconds),
      ...Object.fromEntries(rates.map((rate) => [rate, beside(rate)])),
    },
    Number(options.rounds),
  )
  for (const [rate, { p50, p99 }] of Object.entries(asked)) {
    const chunks = stored[rate] ? `${rate}, ${median(stored[rate]).toFixed(0)}` : rate
    const times = (p99 / (asked.idle?.p99 ?? Number.NaN)).toFixed(1)
    console.log(`| ${chunks} | ${p50.toFixed(1)} | ${p99.toFixed(1)} | ${times} |`)
  }
}

/** Uploads for some minutes and measures the service's memory. */
async function watchMemory(service: Service, folder: string): Promise<void> {
  const minutes = Number(options.minutes)
  const file = join(folder, `chunk-${options.kilobytes.split(',').at(-1)}`)
  const { pid } = service
  const samples: number[] = []
  let failed = 0
  // wrk runs synchronously, so memory is measured between short runs.
  const pieceSeconds = 5
  const pieces = Math.max(4, Math.round((minutes * 60) / pieceSeconds))
  for (let piece = 0; piece < pieces; piece++) {
    const { errors } = load(uploads(service, file), connections, pieceSeconds)
    failed += errors
    samples.push(residentMegabytes(pid))
  }
  const quarters = [0, 1, 2, 3].map((quarter) => {
    const [from, to] = [quarter, quarter + 1].map((at) => Math.round((at * samples.length) / 4))
    return Math.round(Math.max(...samples.slice(from, to)))
  })
  console.log(
    `\nMemory over ${((pieces * pieceSeconds) / 60).toFixed(1)} minutes of ${service.name}, maximum of each quarter: ${quarters.join(', ')} MB; ${failed} uploads failed.`,
  )
}
