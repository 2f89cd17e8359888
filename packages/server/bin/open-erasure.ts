import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import type { WorkerOptions } from '../src/erasure/worker.ts'
import { createLog, type Log } from '../src/log.ts'
import { createMetrics, type Metrics } from '../src/metrics.ts'
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
 * Opens everything an erasure needs, such as the blob store, and closes it after `work`. It has its
 * own database connections, so that it never holds up requests.
 */
export async function withErasure(
  opened: Opened,
  work: (erasure: OpenedErasure) => Promise<void>,
  log: Log = createLog('error', process.stderr),
  metrics: Metrics = createMetrics(),
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
