import { Webhook } from 'standardwebhooks'
import type { Log } from '../log.ts'
import { repeat } from '../repeat.ts'
import type { Db } from '../sql.ts'
import { webhookSecret } from './secret.ts'
import { type SendOptions, type SendResult, send } from './send.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  type DeliveryResult,
  deleteOldDeliveries,
  disableWebhook,
  endAttempt,
} from './store.ts'

export interface DeliveryOptions {
  db: Db
  log: Log
  /** What the webhooks' secrets are derived from. */
  secret: Buffer
  allowPrivate: boolean
  version: string
  /** How often it checks for due deliveries whose notification it missed. */
  pollSeconds?: number
  timeoutSeconds?: number
}

/** Between one attempt and the next: eight attempts within 24 hours, as Standard Webhooks advises. */
export const retrySeconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 22_000] as const

const deliveriesAtOnce = 20
/** Per webhook, so that a slow receiver delays only its own events. */
const deliveriesOfWebhookAtOnce = 4

/** Longer than an attempt can take; after this another process repeats it. */
const leaseSeconds = 60

/** How long the delivery log is kept. */
const keptDays = 30
const deletedAPart = 1_000
const pruneSeconds = 3_600

export interface Deliveries {
  /** Checks for due deliveries now. */
  wake(): void
  stop(): Promise<void>
}

/** Delivers events until it is stopped. Any number of processes may do so at once. */
export function startDeliveries(options: DeliveryOptions): Deliveries {
  const { db, log, pollSeconds = 2 } = options
  const running = new Map<Promise<void>, string>()
  let isStopped = false
  let claiming: Promise<void> = Promise.resolve()
  let retry: NodeJS.Timeout | undefined

  function wake(): void {
    if (isStopped) return
    claiming = claiming.then(claimAndStart).catch((error) => log.fault('webhooks.claim', error))
  }

  async function claimAndStart(): Promise<void> {
    for (;;) {
      const free = deliveriesAtOnce - running.size
      if (free === 0 || isStopped) return
      const claimed = await claimDeliveries(db.sql, free, leaseSeconds, {
        ofEach: deliveriesOfWebhookAtOnce,
        running: [...running.values()],
      })
      if (claimed.length === 0) return
      claimed.forEach(start)
    }
  }

  function start(delivery: ClaimedDelivery): void {
    const { projectId, webhookId } = delivery
    const attempt = deliver(options, delivery)
      .catch((error) => log.fault('webhooks.attempt', error, { projectId }))
      .finally(() => {
        running.delete(attempt)
        // More may be waiting, and the first retry is due before the next poll.
        wake()
        clearTimeout(retry)
        retry = setTimeout(wake, retrySeconds[0] * 1_000).unref()
      })
    running.set(attempt, webhookId)
  }

  async function prune(): Promise<void> {
    while ((await deleteOldDeliveries(db.sql, keptDays, deletedAPart)) === deletedAPart);
  }

  const stopClaiming = repeat('webhooks.claim', pollSeconds, claimAndStart, log)
  const stopPruning = repeat('webhooks.prune', pruneSeconds, prune, log)
  return {
    wake,
    async stop() {
      isStopped = true
      clearTimeout(retry)
      await Promise.all([stopClaiming(), stopPruning(), claiming])
      await Promise.all(running.keys())
    },
  }
}

async function deliver(options: DeliveryOptions, delivery: ClaimedDelivery): Promise<void> {
  const { db, log, allowPrivate, timeoutSeconds = 15 } = options
  const { projectId, webhookId, attempts } = delivery
  const sent: SendResult = delivery.isEnabled
    ? await sendDelivery(options, delivery, { allowPrivate, timeoutSeconds })
    : { status: null, errorCode: 'webhook_disabled' }
  const result = resultOf(delivery, sent)
  if (sent.status === 410) await disableWebhook(db.sql, projectId, webhookId)
  await endAttempt(db.sql, delivery, result)
  const { isDelivered, errorCode } = result
  log.event(isDelivered ? 'debug' : 'warn', 'webhooks.attempt', {
    projectId,
    attempt: attempts,
    ...(sent.status !== null && { status: sent.status }),
    ...(errorCode !== null && { code: errorCode }),
  })
}

function sendDelivery(
  { secret, version }: DeliveryOptions,
  delivery: ClaimedDelivery,
  sendOptions: SendOptions,
): Promise<SendResult> {
  const { projectId, webhookId, id, event, createdAt, job } = delivery
  const body = JSON.stringify({
    type: event,
    timestamp: createdAt,
    data: job === null ? {} : { projectId: String(projectId), job },
  })
  const now = new Date()
  const versions = [delivery.secretVersion]
  if (delivery.isOldSecretValid) versions.push(delivery.secretVersion - 1)
  const signatures = versions.map((version) =>
    new Webhook(webhookSecret(secret, { projectId, webhookId, version })).sign(id, now, body),
  )
  const headers = {
    'content-type': 'application/json',
    'user-agent': `Lethe/${version}`,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  }
  return send(new URL(delivery.url), headers, body, sendOptions)
}

function resultOf({ attempts, isEnabled }: ClaimedDelivery, sent: SendResult): DeliveryResult {
  const { status } = sent
  const isDelivered = status !== null && status >= 200 && status < 300
  // 410 means that the receiver is gone.
  const isFinal = isDelivered || status === 410 || !isEnabled
  const pause = retrySeconds[attempts - 1]
  return {
    isDelivered,
    status,
    errorCode: isDelivered ? null : (sent.errorCode ?? 'bad_status'),
    retrySeconds: isFinal || pause === undefined ? null : pause * (0.9 + Math.random() / 10),
  }
}
