import { startWorker } from '../src/erasure/worker.ts'
import type { Log } from '../src/log.ts'
import { startUpkeep } from '../src/recordings/upkeep.ts'
import { startDeliveries } from '../src/webhooks/deliver.ts'
import type { Opened } from './open.ts'
import { deliveryOptions } from './open-dashboard.ts'
import type { OpenedErasure } from './open-erasure.ts'

/**
 * Starts what works in the background for all processes: erasures, the upkeep of recordings, and
 * events for webhooks.
 */
export async function startWork(
  opened: Opened,
  { options, storage }: OpenedErasure,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const deliveries = startDeliveries(await deliveryOptions(opened, storage, log))
  const worker = startWorker(options)
  const { db, blobs, keySql } = options
  const browserKeys = { sql: keySql, masterKeys: storage.masterKeys }
  const stopUpkeep = startUpkeep({ db, blobs, browserKeys }, log)
  return {
    async stop() {
      await Promise.all([worker.stop(), deliveries.stop(), stopUpkeep()])
    },
  }
}
