import { type Static, Type } from 'typebox'
import { ProjectPath } from './dashboard-projects.ts'
import { projectErrors } from './errors.ts'
import { Exactly } from './exactly.ts'
import { Cursor, Instant, InstantOrNull, Limit, NextCursor } from './page.ts'

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
  lastDeliveryState: Type.Union([
    Type.Unsafe<'pending' | 'delivered' | 'failed'>(
      Type.String({ enum: ['pending', 'delivered', 'failed'] }),
    ),
    Type.Null(),
  ]),
})
export type Webhook = Static<typeof Webhook>

export const WebhookDelivery = Type.Object({
  id: Type.String({ format: 'uuid' }),
  event: Type.Unsafe<WebhookEvent | 'webhook.test'>(Type.String()),
  jobId: Type.Union([Type.String(), Type.Null()]),
  createdAt: Instant,
  state: Type.Unsafe<'pending' | 'delivered' | 'failed'>(
    Type.String({ enum: ['pending', 'delivered', 'failed'] }),
  ),
  /** All attempts, including those before it was resent. */
  attempts: Type.Integer(),
  nextAttemptAt: InstantOrNull,
  endedAt: InstantOrNull,
  /** The result of the last attempt: a status, or the reason why there is none. */
  lastStatus: Type.Union([Type.Integer(), Type.Null()]),
  /** timeout, address_refused, connection_failed, name_not_found, tls_failed, bad_status … */
  lastErrorCode: Type.Union([Type.String(), Type.Null()]),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

const WebhookPath = Type.Object({ projectId: Type.String(), webhookId: Type.String() })
const WebhookUrl = Type.String({ minLength: 1, maxLength: 2_000 })
const NoBody = Exactly({})
const Done = Type.Object({})
const SecretReply = Type.Object({
  webhook: Webhook,
  /** whsec_…, as the Standard Webhooks libraries take it; shown this once. */
  secret: Type.String(),
})

export const listWebhooks = {
  method: 'GET',
  url: '/dashboard/v1/projects/:projectId/webhooks',
  schema: {
    operationId: 'listWebhooks',
    params: ProjectPath,
    response: {
      200: Type.Object({ webhooks: Type.Array(Webhook) }),
      ...projectErrors(),
    },
  },
} as const

/** The URL is https, or http where the installation allows private addresses; it names no user. */
export const createWebhook = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/webhooks',
  schema: {
    operationId: 'createWebhook',
    params: ProjectPath,
    body: Exactly({
      url: WebhookUrl,
      events: Type.Array(WebhookEvent, { minItems: 1, maxItems: 2 }),
    }),
    response: {
      201: SecretReply,
      ...projectErrors('invalid_request'),
    },
  },
} as const

export const updateWebhook = {
  method: 'PATCH',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId',
  schema: {
    operationId: 'updateWebhook',
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
  },
} as const

/** Its deliveries go with it. */
export const removeWebhook = {
  method: 'DELETE',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId',
  schema: {
    operationId: 'removeWebhook',
    params: WebhookPath,
    response: {
      200: Done,
      ...projectErrors('webhook_not_found'),
    },
  },
} as const

/** A new secret; for 24 hours deliveries are signed with the old one as well. */
export const rotateWebhookSecret = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId/rotate-secret',
  schema: {
    operationId: 'rotateWebhookSecret',
    params: WebhookPath,
    body: NoBody,
    response: {
      201: SecretReply,
      ...projectErrors('webhook_not_found'),
    },
  },
} as const

/** Sends an event of the type webhook.test, with no data. */
export const testWebhook = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId/test',
  schema: {
    operationId: 'testWebhook',
    params: WebhookPath,
    body: NoBody,
    response: {
      202: Type.Object({ delivery: WebhookDelivery }),
      ...projectErrors('webhook_not_found'),
    },
  },
} as const

/** Newest first. */
export const listDeliveries = {
  method: 'GET',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId/deliveries',
  schema: {
    operationId: 'listDeliveries',
    params: WebhookPath,
    querystring: Exactly({ limit: Limit, cursor: Cursor }),
    response: {
      200: Type.Object({ deliveries: Type.Array(WebhookDelivery), nextCursor: NextCursor }),
      ...projectErrors('invalid_request', 'webhook_not_found'),
    },
  },
} as const

/** Sends a delivery again, whatever its state, under the same id (receivers know it by that). */
export const resendDelivery = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/webhooks/:webhookId/deliveries/:deliveryId/resend',
  schema: {
    operationId: 'resendDelivery',
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
} as const
