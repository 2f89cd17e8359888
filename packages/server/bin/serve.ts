import { defineCommand } from 'citty'
import { buildApp } from '../src/app.ts'
import { claimService } from '../src/embedded/embedded.ts'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { startWorker } from '../src/erasure/worker.ts'
import { createLog, type Log } from '../src/log.ts'
import { createMetrics, type Metrics } from '../src/metrics.ts'
import { readCursorKey } from '../src/migrate.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import { tokenBuckets } from '../src/projects/rate-limit.ts'
import { createKey, createProject, listProjects } from '../src/projects/store.ts'
import { repeat } from '../src/repeat.ts'
import { print, signalled, withDatabase } from './command.ts'
import type { Opened } from './open.ts'
import { type OpenedErasure, withErasure } from './open-erasure.ts'

/** How often rows that the search still scans are given to its index. */
const searchIndexSeconds = 2

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
  const { config, db, connection } = opened
  const app = await buildApp({
    db,
    log,
    metrics,
    cursorKey: await readCursorKey(connection),
    ...(config.RATE_LIMIT_PER_SECOND > 0 && {
      rateLimit: tokenBuckets(config.RATE_LIMIT_PER_SECOND, config.RATE_LIMIT_BURST),
    }),
  })
  const address = await app.listen({ host: config.HOST, port: config.PORT })
  const stopIndexing = repeat('search.index', searchIndexSeconds, () => indexSearchTail(db), log)
  const worker = withWorker ? startWorker(erasure.options) : undefined
  await greet(opened, address)

  await stopped
  log.event('info', 'service.stopping')
  // Whatever still runs after the time for it is cut off; the database loses nothing by that.
  setTimeout(() => process.exit(1), stopSeconds * 1_000).unref()
  await Promise.all([app.close(), worker?.stop(), stopIndexing()])
}

async function greet({ db, facts, isEmbedded }: Opened, address: string): Promise<void> {
  print(`Lethe listens on ${address}`)
  print(
    `  database   PostgreSQL ${facts.version}${isEmbedded ? ', embedded' : ''} (${facts.encoding}, ${facts.locale})`,
  )
  print(`  API page   ${address}/docs`)
  if (!isEmbedded || (await listProjects(db.sql)).length > 0) return

  const { secretKey, publicKey } = await db.begin(async (tx) => {
    const project = await createProject(tx, 'My first project')
    const secret = await createKey(tx, project.id, 'secret', 'first secret key')
    const publicKey = await createKey(tx, project.id, 'public', 'first public key')
    return { secretKey: secret.text, publicKey: publicKey.text }
  })
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
