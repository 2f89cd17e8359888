import Fastify, { type FastifyInstance } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Blobs } from '../blobs/blobs.ts'
import { blobsHealth } from '../blobs/health.ts'
import { errorHandler } from '../http/errors.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { newestMigration } from '../migrate.ts'
import type { Db } from '../sql.ts'

/**
 * Checks that the database is writable and has all migrations, and that the blob store works. The store
 * is checked at most every 30 seconds, and not waited for if it hangs.
 */
export function readiness(db: Db, blobs?: Blobs): () => Promise<string | undefined> {
  const newest = newestMigration()
  const askStore = blobsHealth(blobs)
  return async () => {
    try {
      const [found] = await db.short<{ isReadOnly: boolean; isMigrated: boolean }>`
        select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on'
            as "isReadOnly",
          exists (select from migrations where name = ${newest}) as "isMigrated"`
      if (found?.isReadOnly) return 'The database is read-only.'
      if (!found?.isMigrated) return 'The database lacks migrations.'
    } catch {
      return 'The database cannot be reached.'
    }
    if (blobs && (await askStore()).state === 'failed') return 'The blob store does not work.'
    return undefined
  }
}

/** Creates a server with health and metrics only, for a port that is not published. */
export async function buildOperations(
  options: HealthOptions & { metrics: Metrics; log: Log },
): Promise<FastifyInstance> {
  const app = Fastify({ logger: false, forceCloseConnections: true })
  app.setErrorHandler(errorHandler(options.log))
  await app.register(healthRoutes, options)
  metricsRoute(app, options.metrics)
  return app
}

export interface HealthOptions {
  /** Returns why this process is not ready; undefined if it is. */
  findObstacle(): Promise<string | undefined>
}

/** For load balancers and monitoring; no key, no data. Not part of the versioned API. */
export async function healthRoutes(
  app: FastifyInstance,
  { findObstacle }: HealthOptions,
): Promise<void> {
  app.get('/health/live', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/health/ready', { schema: { hide: true } }, async () => {
    const obstacle = await findObstacle()
    if (obstacle === undefined) return { status: 'ok' }
    throw new ApiError('unavailable', obstacle, { headers: { 'retry-after': '1' } })
  })
}

export function metricsRoute(app: FastifyInstance, { registry, text }: Metrics): void {
  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await text()),
  )
}
