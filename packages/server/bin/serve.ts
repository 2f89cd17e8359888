import { defineCommand } from 'citty'
import { type AppOptions, buildApp } from '../src/app.ts'
import { claimService } from '../src/embedded/embedded.ts'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { createLog, type Log } from '../src/log.ts'
import { makeSetUpLink } from '../src/members/links.ts'
import { deleteEnded } from '../src/members/store.ts'
import { createMetrics, type Metrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import { tokenBuckets } from '../src/projects/rate-limit.ts'
import { createProjectWithKeys, listProjects } from '../src/projects/store.ts'
import { demoKey } from '../src/recordings/demo.ts'
import type { Recordings } from '../src/recordings/upload.ts'
import { repeat } from '../src/repeat.ts'
import { print, signalled, withDatabase } from './command.ts'
import type { Opened } from './open.ts'
import { withDashboard } from './open-dashboard.ts'
import { type OpenedErasure, withErasure } from './open-erasure.ts'
import { openSdk } from './open-sdk.ts'
import { demoKeyFile, type Storage } from './open-storage.ts'
import { startWork } from './work.ts'

/** How often rows that the search still scans are given to its index. */
const searchIndexSeconds = 0.5

/** How often sign-ins, links and limits that have ended are deleted. */
const membersUpkeepSeconds = 600

/** How long requests in flight may take to end after a signal. */
const stopSeconds = 25

export const serve = defineCommand({
  meta: { name: 'serve', description: 'Run the service.' },
  args: {
    worker: {
      type: 'boolean',
      default: true,
      negativeDescription: 'Leave erasures to `lethe worker`.',
      description: 'Run erasures too.',
    },
  },
  run: ({ args }) => {
    // Listened for from the beginning: a start that is interrupted puts away what it opened.
    const stopped = signalled()
    return withDatabase(async (opened) => {
      const service = opened.isEmbedded ? await claimService(opened.connection) : undefined
      const log = createLog(opened.config.LOG_LEVEL)
      const metrics = createMetrics()
      try {
        await withErasure(opened, log, metrics, async (erasure) => {
          // Nobody whom a restored backup brought back is ever served.
          await reapplyLedger(erasure.options)
          await serveUntil(stopped, opened, erasure, log, metrics, args.worker)
        })
      } finally {
        await service?.release()
      }
      log.event('info', 'service.stopped')
    })
  },
})

async function serveUntil(
  stopped: Promise<void>,
  opened: Opened,
  erasure: OpenedErasure,
  log: Log,
  metrics: Metrics,
  withWorker: boolean,
): Promise<void> {
  const { config } = opened
  await withDashboard(opened, erasure.storage, async (dashboard, pages) => {
    const recordings = recordingsOf(opened, erasure.storage)
    const options = await appOptions(opened, recordings, log, metrics)
    const app = await buildApp({ ...options, dashboard, pages })
    const address = await app.listen({ host: config.HOST, port: config.PORT })
    const stopUpkeep = repeatUpkeep(opened, log)
    const work = withWorker ? await startWork(opened, erasure, log) : undefined
    await greet(opened, address, options)

    await stopped
    log.event('info', 'service.stopping')
    // Whatever still runs after the time for it is cut off; the database loses nothing by that.
    setTimeout(() => process.exit(1), stopSeconds * 1_000).unref()
    await Promise.all([app.close(), work?.stop(), stopUpkeep()])
  })
}

function recordingsOf({ db }: Opened, storage: Storage): Recordings {
  const { blobs, keySql, keyShort, masterKeys } = storage
  return { db, blobs, browserKeys: { sql: keySql, short: keyShort, masterKeys } }
}

async function appOptions(
  { config, db, connection, isEmbedded }: Opened,
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
    ...(isEmbedded && { findDemoKey: () => demoKey(db.sql, demoKeyFile(config)) }),
    trustProxy: config.TRUST_PROXY,
    ingestLimits: {
      perAddress: config.INGEST_LIMIT_PER_ADDRESS,
      perProject: config.INGEST_LIMIT_PER_PROJECT,
    },
    ...(config.RATE_LIMIT_PER_SECOND > 0 && {
      rateLimit: tokenBuckets(config.RATE_LIMIT_PER_SECOND, config.RATE_LIMIT_BURST),
    }),
  }
}

/** What every process that serves does in the background. */
function repeatUpkeep({ db }: Opened, log: Log): () => Promise<unknown> {
  const stops = [
    repeat('search.index', searchIndexSeconds, () => indexSearchTail(db), log),
    repeat('members.upkeep', membersUpkeepSeconds, () => deleteEnded(db.sql), log),
  ]
  return () => Promise.all(stops.map((stop) => stop()))
}

async function greet(
  opened: Opened,
  address: string,
  { sdk, findDemoKey }: AppOptions,
): Promise<void> {
  const { db, facts, isEmbedded, config } = opened
  const { encoding, locale } = facts
  const embedded = isEmbedded ? ', embedded' : ''
  const publicUrl = config.PUBLIC_URL || address
  const setUpLink = await makeSetUpLink(db, publicUrl)
  print(`Lethe listens on ${address}`)
  print(`  database   PostgreSQL ${facts.version}${embedded} (${encoding}, ${locale})`)
  print(`  API page   ${address}/docs`)
  print(`  dashboard  ${setUpLink ?? publicUrl}`)
  if (setUpLink) print('             (this link makes its first owner; it works once, for a day)')
  if (!sdk) print('  recorder   not built: npm run build -w packages/sdk-browser')
  else if (findDemoKey) print(`  demo page  ${address}/demo`)
  if (isEmbedded) await greetFirstProject(opened, address)
}

async function greetFirstProject({ db }: Opened, address: string): Promise<void> {
  if ((await listProjects(db.sql)).length > 0) return
  const { secretKey, publicKey } = await db.begin((tx) =>
    createProjectWithKeys(tx, 'My first project'),
  )
  print(`
There was no project yet, so here is one, "My first project". Its keys are shown this once:
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
