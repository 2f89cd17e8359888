import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from './api-error.ts'
import type { Metrics } from './metrics.ts'
import type { Db } from './sql.ts'

/** For load balancers and monitoring; no key, no data. Not part of the versioned API. */
export const healthRoutes: FastifyPluginAsyncTypebox<{ db: Db; metrics: Metrics }> = async (
  app,
  { db, metrics },
) => {
  app.get('/health/live', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/health/ready', { schema: { hide: true } }, async () => {
    try {
      await db.short`select 1`
    } catch (cause) {
      throw new ApiError('unavailable', 'The database cannot be reached.', {
        headers: { 'retry-after': '1' },
        cause,
      })
    }
    return { status: 'ok' }
  })

  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
}
