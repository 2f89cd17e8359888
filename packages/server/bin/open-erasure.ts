import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import type { WorkerOptions } from '../src/erasure/worker.ts'
import type { Log } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import { suppressionsWith } from '../src/projects/suppressions.ts'
import { connect } from '../src/sql.ts'
import type { Opened } from './open.ts'
import { openStorage, type Storage } from './open-storage.ts'

/** Longer than a part of any step takes; requests have a shorter limit. */
export const statementSeconds = 30

export interface OpenedErasure {
  storage: Storage
  options: WorkerOptions
}

/**
 * Opens the blob store and all else an erasure needs, and closes it after `work`. It has database
 * connections of its own, so that it never holds up requests.
 */
export async function withErasure(
  opened: Opened,
  log: Log,
  metrics: Metrics,
  work: (erasure: OpenedErasure) => Promise<void>,
): Promise<void> {
  const { config, connection, unless } = opened
  const jobsAtOnce = config.ERASURE_JOBS_AT_ONCE
  const storage = await unless(openStorage(opened, metrics.observeBlobFault))
  const db = connect({ connection, poolSize: jobsAtOnce + 1, statementSeconds })
  try {
    const options: WorkerOptions = {
      db,
      keySql: config.KEY_DATABASE_URL === '' ? db.sql : storage.keySql,
      blobs: storage.blobs,
      log,
      metrics: createErasureMetrics(metrics.registry),
      signer: await unless(openSigner(db, storage.masterKeys)),
      suppressions: suppressionsWith(storage.masterKeys),
      retryDelaysSeconds: config.ERASURE_RETRY_DELAYS,
      backupRetentionDays: config.BACKUP_RETENTION_DAYS,
      jobsAtOnce,
      // Through a pooler there are no notifications; jobs are found by polling.
      ...(!connection.pooler && { connection }),
    }
    await work({ storage, options })
  } finally {
    await db.end()
    await storage.close()
  }
}
