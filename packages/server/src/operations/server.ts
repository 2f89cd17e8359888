import Fastify, { type FastifyInstance } from 'fastify'
import { errorHandler } from '../http/errors.ts'
import { type HealthOptions, healthRoutes, metricsRoute } from '../http/health.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'

/** Health and metrics on a port of their own, which is not published; workers have them too. */
export async function buildOperations(
  options: HealthOptions & { metrics: Metrics; log: Log },
): Promise<FastifyInstance> {
  const app = Fastify({ logger: false, forceCloseConnections: true })
  app.setErrorHandler(errorHandler(options.log))
  await app.register(healthRoutes, options)
  metricsRoute(app, options.metrics)
  return app
}
