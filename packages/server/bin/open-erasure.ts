import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import type { WorkerOptions } from '../src/erasure/worker.ts'
import type { Log } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import { connect } from '../src/sql.ts'
import type { Opened } from './open.ts'
import type { Storage } from './open-storage.ts'

/** Longer than a part of any step takes; requests have a shorter limit. */
const statementSeconds = 30

/** What a worker needs, with connections of its own, so that it never holds up requests. */
export async function openErasure(
  { config, connection }: Opened,
  { blobs, keySql, masterKeys }: Storage,
  log: Log,
  metrics: Metrics,
): Promise<{ options: WorkerOptions; close(): Promise<void> }> {
  const jobsAtOnce = config.ERASURE_JOBS_AT_ONCE
  const db = connect({ connection, poolSize: jobsAtOnce + 2, statementSeconds })
  const options: WorkerOptions = {
    db,
    keySql: config.KEY_DATABASE_URL === '' ? db.sql : keySql,
    blobs,
    log,
    metrics: createErasureMetrics(metrics.registry),
    signer: await openSigner(db, masterKeys),
    retryDelaysSeconds: config.ERASURE_RETRY_DELAYS,
    backupRetentionDays: config.BACKUP_RETENTION_DAYS,
    jobsAtOnce,
    connection,
  }
  return { options, close: () => db.end() }
}
