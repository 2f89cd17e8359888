import {
  createWebhook,
  listDeliveries as listDeliveriesEndpoint,
  listWebhooks as listWebhooksEndpoint,
  removeWebhook,
  resendDelivery as resendEndpoint,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook as updateWebhookEndpoint,
  type Webhook,
} from '@lethe/contract/dashboard-webhooks.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { readPage } from '../http/page.ts'
import { isUuid } from '../http/parameters.ts'
import { type AuditNote, writeAudit } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import type { Sql } from '../sql.ts'
import { webhookSecret } from './secret.ts'
import { isPublicAddress, literalAddress } from './send.ts'
import {
  advanceSecret,
  deleteWebhook,
  findWebhook,
  insertTestDelivery,
  insertWebhook,
  listDeliveries,
  listWebhooks,
  resendDelivery,
  updateWebhook,
} from './store.ts'

/** How long the previous secret signs too. */
const secretOverlapHours = 24

export function webhookRoutes(app: DashboardApp, context: DashboardContext): void {
  endpointRoutes(app, context)
  secretRoutes(app, context)
  deliveryRoutes(app, context)
}

function endpointRoutes(app: DashboardApp, { db, webhooks: settings }: DashboardContext): void {
  app.route({
    ...listWebhooksEndpoint,
    handler: async ({ projectId }) => ({ webhooks: await listWebhooks(db.sql, projectId) }),
  })

  app.route({
    ...createWebhook,
    handler: async (request, reply) => {
      const { projectId, body } = request
      const url = receiverOf(body.url, settings.allowPrivate)
      const webhook = await db.begin(async (tx) => {
        const id = await insertWebhook(tx, projectId, { url, events: [...new Set(body.events)] })
        await writeAudit(tx, noteOf(request, 'webhook.created', id))
        return existingWebhook(tx, projectId, id)
      })
      const secret = webhookSecret(settings.secret, {
        projectId,
        webhookId: webhook.id,
        version: 1,
      })
      return reply.code(201).send({ webhook, secret })
    },
  })

  app.route({
    ...updateWebhookEndpoint,
    handler: async (request) => {
      const { projectId, params, body } = request
      const url = body.url === undefined ? undefined : receiverOf(body.url, settings.allowPrivate)
      const webhook = await db.begin(async (tx) => {
        const before = await existingWebhook(tx, projectId, params.webhookId)
        await updateWebhook(tx, projectId, before.id, {
          ...(url !== undefined && { url }),
          ...(body.events && { events: [...new Set(body.events)] }),
          ...(body.isEnabled !== undefined && { isEnabled: body.isEnabled }),
        })
        await writeAudit(tx, {
          ...noteOf(request, 'webhook.changed', before.id),
          details: {
            ...(url !== undefined && { url: 'changed' }),
            ...(body.events && { events: body.events.join(' ') }),
            ...(body.isEnabled !== undefined && { isEnabled: body.isEnabled }),
          },
        })
        return existingWebhook(tx, projectId, before.id)
      })
      return { webhook }
    },
  })

  app.route({
    ...removeWebhook,
    handler: async (request) => {
      const { projectId, params } = request
      await db.begin(async (tx) => {
        const { id } = await existingWebhook(tx, projectId, params.webhookId)
        await deleteWebhook(tx, projectId, id)
        await writeAudit(tx, noteOf(request, 'webhook.removed', id))
      })
      return {}
    },
  })
}

function secretRoutes(app: DashboardApp, { db, webhooks: settings }: DashboardContext): void {
  app.route({
    ...rotateWebhookSecret,
    handler: async (request, reply) => {
      const { projectId, params } = request
      const made = await db.begin(async (tx) => {
        const { id } = await existingWebhook(tx, projectId, params.webhookId)
        const version = await advanceSecret(tx, projectId, id, secretOverlapHours)
        await writeAudit(tx, noteOf(request, 'webhook.secret_rotated', id))
        const secret = webhookSecret(settings.secret, { projectId, webhookId: id, version })
        return { webhook: await existingWebhook(tx, projectId, id), secret }
      })
      return reply.code(201).send(made)
    },
  })
}

function deliveryRoutes(app: DashboardApp, { db, cursors }: DashboardContext): void {
  app.route({
    ...testWebhook,
    handler: async (request, reply) => {
      const { projectId, params } = request
      const delivery = await db.begin(async (tx) => {
        const { id } = await existingWebhook(tx, projectId, params.webhookId)
        await writeAudit(tx, noteOf(request, 'webhook.tested', id))
        return insertTestDelivery(tx, projectId, id)
      })
      return reply.code(202).send({ delivery })
    },
  })

  app.route({
    ...listDeliveriesEndpoint,
    handler: async ({ projectId, params, query }) => {
      const { id } = await existingWebhook(db.sql, projectId, params.webhookId)
      const page = { cursors, list: ['deliveries', projectId, id], ...query }
      const { rows, nextCursor } = await readPage(page, ['createdAt', 'id'], (after, count) =>
        listDeliveries(db.sql, projectId, id, after, count),
      )
      return { deliveries: rows, nextCursor }
    },
  })

  app.route({
    ...resendEndpoint,
    handler: async (request, reply) => {
      const { projectId, params } = request
      const delivery = await db.begin(async (tx) => {
        const { id } = await existingWebhook(tx, projectId, params.webhookId)
        const { deliveryId } = params
        const resent = isUuid(deliveryId)
          ? await resendDelivery(tx, projectId, id, deliveryId)
          : undefined
        if (!resent) throw new ApiError('delivery_not_found', 'No delivery with this id.')
        const note = noteOf(request, 'webhook.delivery_resent', id)
        await writeAudit(tx, { ...note, details: { deliveryId } })
        return resent
      })
      return reply.code(202).send({ delivery })
    },
  })
}

async function existingWebhook(sql: Sql, projectId: number, id: string): Promise<Webhook> {
  const webhook = isUuid(id) ? await findWebhook(sql, projectId, id) : undefined
  if (!webhook) throw new ApiError('webhook_not_found', 'No webhook with this id.')
  return webhook
}

function noteOf(request: FastifyRequest, action: AuditNote['action'], id: string): AuditNote {
  const { projectId } = request
  return { ...actorOf(request), action, projectId, subject: { kind: 'webhook', id } }
}

/** Checks the URL of a receiver. The addresses of a name are checked at each delivery. */
function receiverOf(text: string, allowPrivate: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) throw invalid('/body/url', 'is not an https URL')
  if (url.protocol === 'http:' && !allowPrivate) throw invalid('/body/url', 'is not an https URL')
  if (url.username !== '' || url.password !== '') {
    throw invalid('/body/url', 'contains a user or a password')
  }
  const address = literalAddress(url)
  if (!allowPrivate && address !== undefined && !isPublicAddress(address)) {
    throw invalid('/body/url', 'leads to an address that is not public')
  }
  url.hash = ''
  return url.href
}
