import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { dashboardRoutes } from './dashboard/mount.ts'
import { isForPage, type Pages, pageRoutes, sendPage } from './dashboard/pages.ts'
import { deletionJobRoutes, publicKeyRoutes } from './erasure/routes.ts'
import { type ArrivalLimits, bodyReader } from './http/arrivals.ts'
import { answerTo, answerToSecretKeys } from './http/callers.ts'
import type { DepartureLimits } from './http/departures.ts'
import { type Held, refuseWhileHeld } from './http/held.ts'
import { docsPolicy, openApiOptions } from './http/openapi.ts'
import { type PaceLimits, pacing } from './http/pace.ts'
import { type Cursors, cursorsSignedWith } from './http/page.ts'
import { httpServer } from './http/server.ts'
import { refuseUnknownBelow } from './http/unknown-paths.ts'
import type { Log } from './log.ts'
import type { DashboardOptions } from './members/context.ts'
import { auditKeys } from './members/key-audit.ts'
import type { Metrics } from './metrics.ts'
import { type HealthOptions, healthRoutes, metricsRoute, readiness } from './operations/health.ts'
import { personRoutes } from './persons/routes.ts'
import { keyFinder, secretKeyAuthentication } from './projects/authenticate.ts'
import { countRefusals, type RateLimit, type Refusals } from './projects/rate-limit.ts'
import { suppressionsWith } from './projects/suppressions.ts'
import type { FindCountry } from './recordings/countries.ts'
import { demoRoutes } from './recordings/demo.ts'
import { browsersPerPersonDefault } from './recordings/identify.ts'
import { ingestErrorHandler } from './recordings/ingest-answers.ts'
import type { IngestLimits } from './recordings/ingest-gate.ts'
import { createIngestMetrics } from './recordings/ingest-metrics.ts'
import { ingestRoutes } from './recordings/ingest-routes.ts'
import { sessionRoutes } from './recordings/routes.ts'
import { type Sdk, sdkRoutes } from './recordings/sdk-files.ts'
import type { Recordings } from './recordings/upload.ts'
import { repeat } from './repeat.ts'
import type { Db } from './sql.ts'

export interface AppOptions {
  db: Db
  log: Log
  metrics: Metrics
  cursorKey: Buffer
  /** Why the process is not ready; if absent, the database and blob store decide. */
  findObstacle?: HealthOptions['findObstacle']
  /** False if metrics are on another port. */
  showsMetrics?: boolean
  rateLimit?: RateLimit
  /** If absent, the service has no recordings. */
  recordings?: Recordings
  ingestLimits?: IngestLimits
  findCountry?: FindCountry | undefined
  /** Requests with unknown keys from one address; 0 or absent: no limit. */
  unknownKeysPerSecond?: number
  arrivalLimits?: ArrivalLimits
  /** If absent, requests without a key are not slowed down. */
  paceLimits?: PaceLimits | undefined
  departureLimits?: DepartureLimits
  /** The files of the browser SDK; undefined if they are not built. */
  sdk?: Sdk | undefined
  /** Finds the public key of the demo page; if absent, there is no such page. */
  findDemoKey?: () => Promise<string | undefined>
  /** If absent, there is only the server API. */
  dashboard?: DashboardOptions
  /** The files of the dashboard; undefined if they are not built. */
  pages?: Pages | undefined
  /** The proxies whose X-Forwarded-For is trusted: their number or their addresses. */
  trustProxy?: number | string[]
  /** The path of the public address, as in `/lethe`. */
  basePath?: string
  /** Requests are refused while the database may have gone back in time. */
  held?: Held
}

/** Mounts every folder's routes on the server. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { db, log, metrics, recordings, dashboard, pages, basePath = '' } = options
  const cursors: Cursors = cursorsSignedWith(options.cursorKey)
  const findKey = keyFinder(db.short, options.unknownKeysPerSecond)
  const refusals = countRefusals(db.sql)
  const authenticate = secretKeyAuthentication(findKey, options.rateLimit, refusals.count)
  const pace = options.paceLimits ? pacing(options.paceLimits) : () => 0
  const readBody = bodyReader(options.arrivalLimits, pace)
  const app = httpServer({
    log,
    metrics,
    readBody,
    pace,
    authenticate,
    handleIngestError: ingestErrorHandler(log),
    sendPage: (request, reply) =>
      dashboard && isForPage(request)
        ? sendPage(request, reply, { ...dashboard, pages })
        : undefined,
    departureLimits: options.departureLimits,
    trustProxy: options.trustProxy,
    basePath,
  })
  if (options.held) refuseWhileHeld(app, options.held)
  if (options.rateLimit) flushRefusals(app, refusals, log)
  await app.register(swagger, openApiOptions(basePath))
  await app.register(async (scope) => {
    answerToSecretKeys(scope, authenticate)
    refuseUnknownBelow(scope, '/v1')
    auditKeys(scope, db)
    await scope.register(personRoutes, { db, cursors })
    const suppressions = recordings && suppressionsWith(recordings.browserKeys.masterKeys)
    await scope.register(deletionJobRoutes, { db, cursors, suppressions })
    if (recordings) await scope.register(sessionRoutes, { recordings, cursors, log })
  })
  await app.register(async (scope) => {
    answerTo(scope, 'anyone')
    await scope.register(swaggerUi, {
      routePrefix: '/docs',
      indexPrefix: basePath,
      staticCSP: docsPolicy,
    })
    await scope.register(healthRoutes, {
      findObstacle: options.findObstacle ?? readiness(db, recordings?.blobs),
    })
    if (options.showsMetrics !== false) metricsRoute(scope, metrics)
    await scope.register(publicKeyRoutes, { db })
    await registerSdk(scope, options)
    if (dashboard) pageRoutes(scope, { ...dashboard, pages })
  })
  if (recordings) {
    const limits = options.ingestLimits ?? { perAddress: 0, perProject: 0 }
    await app.register(ingestRoutes, {
      recordings,
      limits,
      findKey,
      readBody,
      metrics: createIngestMetrics(metrics.registry),
      log,
      findCountry: options.findCountry,
    })
  }
  if (dashboard) {
    await app.register(async (scope) => {
      answerTo(scope, 'member')
      const { browsersPerPerson = browsersPerPersonDefault } = options.ingestLimits ?? {}
      const context = { ...dashboard, db, log, cursors, recordings, browsersPerPerson }
      await scope.register(dashboardRoutes, context)
    })
  }
  return app
}

const refusalsSeconds = 5

function flushRefusals(app: FastifyInstance, refusals: Refusals, log: Log): void {
  const stop = repeat('api.refusals', refusalsSeconds, () => refusals.flush(), log)
  app.addHook('onClose', async () => {
    await stop()
    await refusals.flush().catch((error) => log.fault('api.refusals', error))
  })
}

async function registerSdk(
  scope: FastifyInstance,
  { recordings, sdk, findDemoKey, basePath = '' }: AppOptions,
) {
  if (!recordings || !sdk) return
  await scope.register(sdkRoutes, { blobs: recordings.blobs, sdk })
  if (findDemoKey) await scope.register(demoRoutes, { sdk, findKey: findDemoKey, basePath })
}
