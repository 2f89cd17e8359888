import type { Log } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import { addFactMetrics } from '../src/operations/facts.ts'
import { buildOperations, readiness } from '../src/operations/health.ts'
import type { Opened } from './open.ts'
import type { Storage } from './open-storage.ts'
import { isSupervised } from './processes.ts'

export interface Operations {
  findObstacle: () => Promise<string | undefined>
  /** The address of health and metrics, if they have a port of their own. */
  address: string | undefined
  close(): Promise<void>
}

/** Opens health checks and metrics. */
export async function openOperations(
  { config, db }: Opened,
  { blobs }: Storage,
  log: Log,
  metrics: Metrics,
): Promise<Operations> {
  const findObstacle = readiness(db, blobs)
  // The supervisor has the port and the metrics from the database.
  if (!isSupervised) addFactMetrics(metrics.registry, db)
  if (config.OPERATIONS_PORT === undefined || isSupervised) {
    return { findObstacle, address: undefined, close: async () => {} }
  }
  const app = await buildOperations({ findObstacle, log, metrics })
  const address = await app.listen({ host: config.HOST, port: config.OPERATIONS_PORT })
  return { findObstacle, address, close: () => app.close() }
}
