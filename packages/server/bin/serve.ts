import { defineCommand } from 'citty'
import { type AppOptions, buildApp } from '../src/app.ts'
import type { Config } from '../src/config.ts'
import { claimService } from '../src/embedded/embedded.ts'
import type { LedgerWatch } from '../src/erasure/ledger-watch.ts'
import { basePathOf } from '../src/http/base-path.ts'
import type { PaceLimits } from '../src/http/pace.ts'
import { createLog, type Log } from '../src/log.ts'
import { keepAudit, writeAudit } from '../src/members/audit-store.ts'
import { makeSetUpLink } from '../src/members/links.ts'
import { deleteEnded } from '../src/members/store.ts'
import { createMetrics, type Metrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import { tokenBuckets } from '../src/projects/rate-limit.ts'
import { createProjectWithKeys, listProjects } from '../src/projects/store.ts'
import { openCountries } from '../src/recordings/countries.ts'
import { findDemoKey, openDemo } from '../src/recordings/demo.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { repeat } from '../src/repeat.ts'
import type { Db } from '../src/sql.ts'
import { print, withDatabase } from './command.ts'
import { compareAndWatch, withoutLedger } from './compare-ledger.ts'
import type { Opened } from './open.ts'
import { withDashboard } from './open-dashboard.ts'
import { type OpenedErasure, withErasure } from './open-erasure.ts'
import { openOperations } from './open-operations.ts'
import { openSdk } from './open-sdk.ts'
import type { Storage } from './open-storage.ts'
import {
  checkConnections,
  isSupervised,
  metricsOfAll,
  readProcesses,
  startProcesses,
} from './processes.ts'
import { type Stop, untilStopped } from './signals.ts'
import { startWork } from './work.ts'

/** How often new rows are indexed for the search: more often while there are some. */
const searchIndexSeconds = (given = 0) => (given > 0 ? 0.5 : 30)

/** How often expired sign-ins, links and limits are deleted. */
const membersUpkeepSeconds = 600
const auditUpkeepSeconds = 3_600

export const serve = defineCommand({
  meta: { name: 'serve', description: 'Run the service.' },
  args: {
    worker: {
      type: 'boolean',
      default: true,
      negativeDescription: 'Leave erasures and other background work to `lethe worker`.',
      description: 'Also run erasures and other background work.',
    },
    processes: {
      type: 'string',
      default: '1',
      description:
        'The number of processes that serve and share the port; one more supervises them.',
    },
    ...withoutLedger,
  },
  run: ({ args }) =>
    untilStopped((stop) =>
      withDatabase(async (opened) => {
        const processes = readProcesses(args.processes)
        if (processes > 1 && !isSupervised) await checkConnections(opened, processes)
        const service =
          opened.isEmbedded && !isSupervised
            ? await stop.unless(claimService(opened.connection))
            : undefined
        const log = createLog(opened.config.LOG_LEVEL)
        const metrics = isSupervised ? metricsOfAll(createMetrics()) : createMetrics()
        try {
          const work = async (erasure: OpenedErasure) => {
            // Before serving, erases people whom a restored backup brought back.
            const comparing = compareAndWatch(opened, erasure, args['without-ledger'])
            const watch = await stop.unless(comparing)
            try {
              const serving = { stop, opened, erasure: { ...erasure, watch }, log, metrics }
              if (isSupervised) await serveUntil(serving, false)
              else if (processes === 1) await serveUntil(serving, args.worker)
              else await superviseUntil(serving, processes, args.worker)
            } finally {
              await watch.stop()
            }
          }
          await withErasure(opened, work, log, metrics)
        } finally {
          await service?.release()
        }
        log.event('info', 'service.stopped')
      }, stop),
    ),
})

interface Serving {
  stop: Stop
  opened: Opened
  erasure: OpenedErasure & { watch: LedgerWatch }
  log: Log
  metrics: Metrics
}

async function serveUntil(
  { stop, opened, erasure, log, metrics }: Serving,
  withWorker: boolean,
): Promise<void> {
  const { config } = opened
  await withDashboard(opened, erasure.storage, async (dashboard, pages) => {
    const recordings = recordingsOf(opened, erasure.storage)
    const options = await stop.unless(appOptions(opened, recordings, log, metrics))
    const operations = await openOperations(opened, erasure.storage, log, metrics)
    const app = await buildApp({
      ...options,
      dashboard,
      pages,
      held: erasure.watch,
      findObstacle: operations.findObstacle,
      showsMetrics: config.OPERATIONS_PORT === undefined,
    })
    const running: (() => Promise<unknown>)[] = [() => app.close(), operations.close]
    try {
      const address = await app.listen({ host: config.HOST, port: config.PORT })
      if (!isSupervised) running.push(repeatUpkeep(opened, log))
      if (withWorker) running.push((await startWork(opened, erasure, log)).stop)
      if (!isSupervised) await stop.unless(greet(opened, address, options, pages !== undefined))
      if (operations.address) print(`  operations ${operations.address}/metrics, /health/ready`)
      await stop.wait()
      log.event('info', 'service.stopping')
    } finally {
      await Promise.all(running.map((end) => end()))
    }
  })
}

/** Runs several processes that serve; everything that exists only once runs in this one. */
async function superviseUntil(
  { stop, opened, erasure, log, metrics }: Serving,
  count: number,
  withWorker: boolean,
): Promise<void> {
  await withDashboard(opened, erasure.storage, async (_dashboard, pages) => {
    const recordings = recordingsOf(opened, erasure.storage)
    const options = await stop.unless(appOptions(opened, recordings, log, metrics))
    const processes = await stop.unless(startProcesses(count, metrics, log))
    const running: (() => Promise<unknown>)[] = [processes.close]
    try {
      const operations = await openOperations(opened, erasure.storage, log, processes.metrics)
      running.push(operations.close, repeatUpkeep(opened, log))
      if (withWorker) running.push((await startWork(opened, erasure, log)).stop)
      await stop.unless(greet(opened, processes.address, options, pages !== undefined))
      print(`  processes  ${count}`)
      if (operations.address) print(`  operations ${operations.address}/metrics, /health/ready`)
      await stop.wait()
      log.event('info', 'service.stopping')
    } finally {
      await Promise.all(running.map((end) => end()))
    }
  })
}

function recordingsOf({ db }: Opened, storage: Storage): Recordings {
  const { blobs, keySql, keyShort, masterKeys } = storage
  return { db, blobs, browserKeys: { sql: keySql, short: keyShort, masterKeys } }
}

async function appOptions(
  { config, db, connection }: Opened,
  recordings: Recordings,
  log: Log,
  metrics: Metrics,
): Promise<AppOptions> {
  return {
    db,
    log,
    metrics,
    cursorKey: await readCursorKey(connection),
    recordings,
    sdk: await openSdk(recordings.blobs, log),
    ...(isDemoOn(config) && { findDemoKey: () => findDemoKey(db.sql) }),
    findCountry: await openCountries(config.COUNTRY_DATABASE),
    trustProxy: config.TRUST_PROXY,
    basePath: basePathOf(config.PUBLIC_URL),
    ingestLimits: {
      perAddress: config.INGEST_LIMIT_PER_ADDRESS,
      perProject: config.INGEST_LIMIT_PER_PROJECT,
      bytesPerAddress: config.INGEST_MEGABYTES_PER_ADDRESS * 1_000_000,
      bytesPerProject: config.INGEST_MEGABYTES_PER_PROJECT * 1_000_000,
      sessionsPerBrowser: config.INGEST_SESSIONS_PER_BROWSER,
      browsersPerPerson: config.BROWSERS_PER_PERSON,
    },
    paceLimits: paceBelow(config.INGEST_LIMIT_PER_ADDRESS),
    unknownKeysPerSecond: config.UNKNOWN_KEYS_PER_ADDRESS,
    ...(config.RATE_LIMIT_PER_SECOND > 0 && {
      rateLimit: tokenBuckets(config.RATE_LIMIT_PER_SECOND, config.RATE_LIMIT_BURST),
    }),
  }
}

/**
 * At a quarter of the limit, one network uses an eighth of a processor at most. An office with a
 * thousand visitors needs less.
 */
function paceBelow(limit: number): PaceLimits | undefined {
  return limit > 0 ? { requestsPerSecond: limit / 4, burstRequests: limit } : undefined
}

/** Starts the background work of a service, with or without a worker. */
function repeatUpkeep({ db, config }: Opened, log: Log): () => Promise<unknown> {
  const auditDays = config.AUDIT_RETENTION_DAYS
  const stops = [
    repeat('search.index', searchIndexSeconds, () => indexSearchTail(db), log),
    repeat('members.upkeep', membersUpkeepSeconds, () => deleteEnded(db.sql), log),
    repeat('audit.upkeep', auditUpkeepSeconds, () => keepAudit(db.sql, auditDays), log),
  ]
  return () => Promise.all(stops.map((stop) => stop()))
}

/** On by default only if the service is reachable only from this machine, and not in production. */
function isDemoOn({ DEMO, DATABASE_URL, HOST, PUBLIC_URL }: Config): boolean {
  if (DEMO !== 'auto') return DEMO === 'on'
  const isLoopback = HOST === 'localhost' || HOST === '::1' || HOST.startsWith('127.')
  const isProduction = process.env.NODE_ENV === 'production'
  return DATABASE_URL === '' && PUBLIC_URL === '' && isLoopback && !isProduction
}

function originsOf({ PUBLIC_URL }: Config, address: string): string[] {
  if (PUBLIC_URL !== '') return [new URL(PUBLIC_URL).origin]
  return [new URL(address).origin, `http://localhost:${new URL(address).port}`]
}

async function greet(
  opened: Opened,
  address: string,
  { sdk, findDemoKey }: AppOptions,
  hasPages: boolean,
): Promise<void> {
  const { db, facts, isEmbedded, config } = opened
  const { encoding, locale } = facts
  const embedded = isEmbedded ? ', embedded' : ''
  const publicUrl = config.PUBLIC_URL || address
  const setUpLink = await makeSetUpLink(db, publicUrl)
  const keys = isEmbedded ? await createFirstProject(db) : undefined
  // After the first project, which has the id 1 in the documentation.
  if (sdk && findDemoKey) await openDemo(db, originsOf(config, address), writeAudit)
  // Printed when everything works: a reader may then send a request or a signal.
  print(`Lethe listens on ${address}`)
  print(`  database   PostgreSQL ${facts.version}${embedded} (${encoding}, ${locale})`)
  print(`  API page   ${address}/docs`)
  if (hasPages) print(`  dashboard  ${setUpLink ?? publicUrl}`)
  else print('  dashboard  not built: npm run build')
  if (setUpLink && hasPages)
    print('             (open this link to create the first owner; it works once, within a day)')
  if (!sdk) print('  recorder   not built: npm run build -w packages/sdk-browser')
  else if (findDemoKey) print(`  demo page  ${address}/demo`)
  if (keys) greetFirstProject(keys, address)
}

interface FirstKeys {
  secretKey: string
  publicKey: string
}

/** Returns undefined if there is already a project. */
async function createFirstProject(db: Db): Promise<FirstKeys | undefined> {
  if ((await listProjects(db.sql)).length > 0) return undefined
  return db.begin((tx) => createProjectWithKeys(tx, 'My first project'))
}

function greetFirstProject({ secretKey, publicKey }: FirstKeys, address: string): void {
  print(`
Created a first project, "My first project". Its keys are shown only once:
  secret key  ${secretKey}   (for your backend, never in a page)
  public key  ${publicKey}   (for the browser SDK)

Try it:
  export KEY=${secretKey}
  curl -s ${address}/v1/persons -H "Authorization: Bearer $KEY" \\
    -H 'Content-Type: application/json' \\
    -d '{"externalId":"ada","properties":{"name":"Ada Lovelace","email":"ada@example.com","plan":"pro"}}'
  curl -s "${address}/v1/persons?search=love" -H "Authorization: Bearer $KEY"
  curl -s -X DELETE ${address}/v1/persons/ada -H "Authorization: Bearer $KEY"
`)
}
