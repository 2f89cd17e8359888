import { type AnchorPlaces, anchorChains } from '../src/erasure/anchors.ts'
import { deliveriesChannel } from '../src/erasure/jobs.ts'
import { signLedgerAgain } from '../src/erasure/ledger-rotation.ts'
import { purgeAt } from '../src/erasure/purge.ts'
import { enterWithdrawals } from '../src/erasure/withdrawals.ts'
import { startWorker } from '../src/erasure/worker.ts'
import type { Log } from '../src/log.ts'
import { repeat } from '../src/repeat.ts'
import { startUpkeep } from '../src/retention/upkeep.ts'
import { startDeliveries } from '../src/webhooks/deliver.ts'
import type { Opened } from './open.ts'
import { deliveryOptions } from './open-dashboard.ts'
import type { OpenedErasure } from './open-erasure.ts'
import { minuteOfPurge, purgeOptions } from './purge.ts'

/** How often deliveries are polled if there are notifications too. */
const deliveriesPollSeconds = 15

/** How often it checks whether a purge is due. */
const purgeSeconds = 300

const anchorSeconds = 300

const rotationSeconds = 60

const withdrawalsSeconds = 60

/** Starts the background work: erasures, upkeep of recordings, webhooks, purges and anchors. */
export async function startWork(
  opened: Opened,
  erasure: OpenedErasure,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const { options, storage } = erasure
  const deliveries = startDeliveries({
    ...(await deliveryOptions(opened, storage, log)),
    ...(options.connection && { pollSeconds: deliveriesPollSeconds }),
  })
  const worker = startWorker({ ...options, alsoHeard: { [deliveriesChannel]: deliveries.wake } })
  const { db, blobs, keySql } = options
  const browserKeys = { sql: keySql, masterKeys: storage.masterKeys }
  const stopUpkeep = startUpkeep({ db, blobs, browserKeys }, log)
  const stopPurges = startPurges(opened, erasure, log)
  const stopAnchors = startAnchors(opened, erasure, log)
  const stopRotation = startRotation(erasure, log)
  const enter = () => enterWithdrawals(options)
  const stopWithdrawals = repeat('ledger.withdrawals', withdrawalsSeconds, enter, log)
  return {
    async stop() {
      await Promise.all([
        worker.stop(),
        deliveries.stop(),
        stopUpkeep(),
        stopPurges(),
        stopAnchors(),
        stopRotation(),
        stopWithdrawals(),
      ])
    },
  }
}

function startAnchors(
  { config }: Opened,
  { options }: OpenedErasure,
  log: Log,
): () => Promise<void> {
  const { ANCHOR_FILE: file, ANCHOR_URL: url, ANCHOR_TIMESTAMP_URL: timestampUrl } = config
  const places: AnchorPlaces = {
    ...(file !== '' && { file }),
    ...(url !== '' && { url }),
    ...(timestampUrl !== '' && { timestampUrl }),
  }
  if (file === '' && url === '') return async () => {}
  return repeat('anchors', anchorSeconds, () => anchorChains({ ...options, places }), log)
}

function startRotation({ options }: OpenedErasure, log: Log): () => Promise<void> {
  const { db, blobs, signer } = options
  const work = async () => {
    const count = await signLedgerAgain(db.sql, blobs, signer.ledger)
    if (count > 0) log.event('info', 'ledger.signed_again', { count })
  }
  return repeat('ledger.rotation', rotationSeconds, work, log)
}

function startPurges(opened: Opened, erasure: OpenedErasure, log: Log): () => Promise<void> {
  const minute = minuteOfPurge(opened.config)
  if (minute === undefined) return async () => {}
  const stopping = new AbortController()
  const options = { ...purgeOptions(opened, erasure), signal: stopping.signal }
  const work = async () => {
    const outcome = await purgeAt(minute, options).catch((error) => {
      if (!stopping.signal.aborted) throw error
      return undefined
    })
    if (outcome?.purgedAt) log.event('info', 'purge.done', { count: outcome.jobs })
    for (const { code } of outcome?.left ?? []) log.event('warn', 'purge.part_left', { code })
  }
  const stop = repeat('purge', purgeSeconds, work, log)
  return () => {
    stopping.abort()
    return stop()
  }
}
