import { type Static, Type } from 'typebox'
import { ofProject } from './endpoint.ts'
import { projectErrors } from './errors.ts'
import {
  choice,
  Done,
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  NoBody,
  OrNull,
  PageQuery,
  TextOrNull,
} from './schemas.ts'

export const webhookEvents = ['person.deletion.completed', 'person.deletion.failed'] as const
export const WebhookEvent = Type.Unsafe<(typeof webhookEvents)[number]>(
  Type.String({ enum: webhookEvents as unknown as string[] }),
)
export type WebhookEvent = Static<typeof WebhookEvent>

export const Webhook = Type.Object({
  id: Type.String({ format: 'uuid' }),
  url: Type.String(),
  events: Type.Array(WebhookEvent),
  isEnabled: Type.Boolean(),
  createdAt: Instant,
  /** Of its newest delivery. */
  lastDeliveryAt: InstantOrNull,
  lastDeliveryState: OrNull(choice('pending', 'delivered', 'failed')),
})
export type Webhook = Static<typeof Webhook>

export const WebhookDelivery = Type.Object({
  id: Type.String({ format: 'uuid' }),
  event: Type.Unsafe<WebhookEvent | 'webhook.test'>(Type.String()),
  jobId: TextOrNull,
  createdAt: Instant,
  state: choice('pending', 'delivered', 'failed'),
  /** All attempts, including those before it was resent. */
  attempts: Type.Integer(),
  nextAttemptAt: InstantOrNull,
  endedAt: InstantOrNull,
  /** The result of the last attempt: a status, or the reason why there is none. */
  lastStatus: OrNull(Type.Integer()),
  /** timeout, address_refused, connection_failed, name_not_found, tls_failed, bad_status … */
  lastErrorCode: TextOrNull,
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

const WebhookPath = Type.Object({ projectId: Type.String(), webhookId: Type.String() })
const WebhookUrl = Type.String({ minLength: 1, maxLength: 2_000 })
const SecretReply = Type.Object({
  webhook: Webhook,
  /** whsec_…, in the format of the Standard Webhooks libraries; shown only once. */
  secret: Type.String(),
})

export const listWebhooks = ofProject('listWebhooks', 'GET', '/webhooks', {
  response: { 200: Type.Object({ webhooks: Type.Array(Webhook) }), ...projectErrors() },
})

/** The URL is https, or http if private addresses are allowed; it contains no user. */
export const createWebhook = ofProject('createWebhook', 'POST', '/webhooks', {
  body: Exactly({
    url: WebhookUrl,
    events: Type.Array(WebhookEvent, { minItems: 1, maxItems: 2 }),
  }),
  response: { 201: SecretReply, ...projectErrors('invalid_request') },
})

export const updateWebhook = ofProject('updateWebhook', 'PATCH', '/webhooks/:webhookId', {
  params: WebhookPath,
  body: Exactly({
    url: Type.Optional(WebhookUrl),
    events: Type.Optional(Type.Array(WebhookEvent, { minItems: 1, maxItems: 2 })),
    isEnabled: Type.Optional(Type.Boolean()),
  }),
  response: {
    200: Type.Object({ webhook: Webhook }),
    ...projectErrors('invalid_request', 'webhook_not_found'),
  },
})

/** Also deletes its deliveries. */
export const removeWebhook = ofProject('removeWebhook', 'DELETE', '/webhooks/:webhookId', {
  params: WebhookPath,
  response: { 200: Done, ...projectErrors('webhook_not_found') },
})

/** A new secret; for 24 hours deliveries are signed with the old one as well. */
export const rotateWebhookSecret = ofProject(
  'rotateWebhookSecret',
  'POST',
  '/webhooks/:webhookId/rotate-secret',
  {
    params: WebhookPath,
    body: NoBody,
    response: { 201: SecretReply, ...projectErrors('webhook_not_found') },
  },
)

/** Sends an event of the type webhook.test, with no data. */
export const testWebhook = ofProject('testWebhook', 'POST', '/webhooks/:webhookId/test', {
  params: WebhookPath,
  body: NoBody,
  response: {
    202: Type.Object({ delivery: WebhookDelivery }),
    ...projectErrors('webhook_not_found'),
  },
})

/** Newest first. */
export const listDeliveries = ofProject(
  'listDeliveries',
  'GET',
  '/webhooks/:webhookId/deliveries',
  {
    params: WebhookPath,
    querystring: Exactly(PageQuery),
    response: {
      200: Type.Object({ deliveries: Type.Array(WebhookDelivery), nextCursor: NextCursor }),
      ...projectErrors('invalid_request', 'webhook_not_found'),
    },
  },
)

/** Sends a delivery again, whatever its state, under the same id. */
export const resendDelivery = ofProject(
  'resendDelivery',
  'POST',
  '/webhooks/:webhookId/deliveries/:deliveryId/resend',
  {
    params: Type.Object({
      projectId: Type.String(),
      webhookId: Type.String(),
      deliveryId: Type.String(),
    }),
    body: NoBody,
    response: {
      202: Type.Object({ delivery: WebhookDelivery }),
      ...projectErrors('webhook_not_found', 'delivery_not_found'),
    },
  },
)
