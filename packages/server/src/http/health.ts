import type { FastifyInstance } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Metrics } from '../metrics.ts'

export interface HealthOptions {
  /** Why this process is not ready, in a few words; undefined if it is. */
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
