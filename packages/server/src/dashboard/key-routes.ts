import {
  createKey as createKeyEndpoint,
  type DashboardKey,
  listKeys,
  revokeKey as revokeKeyEndpoint,
  rotateKey,
  updateKey,
} from '@lethe/contract/dashboard-projects.ts'
import { ApiError, invalid } from '../api-error.ts'
import { isUuid } from '../http/parameters.ts'
import { writeAudit } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import {
  findKeySettings,
  listKeySettings,
  lockKey,
  updateKeySettings,
} from '../projects/settings-store.ts'
import { createKey, originOf, revokeKey } from '../projects/store.ts'
import type { Sql } from '../sql.ts'

export function keyRoutes(app: DashboardApp, context: DashboardContext): void {
  readingRoutes(app, context)
  rotationRoutes(app, context)
}

function readingRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...listKeys,
    handler: async ({ projectId }) => ({ keys: await listKeySettings(db.sql, projectId) }),
  })

  app.route({
    ...createKeyEndpoint,
    handler: async (request, reply) => {
      const { projectId } = request
      const { kind, name } = request.body
      const actor = actorOf(request)
      const made = await db.begin(async (tx) => {
        const { key, text } = await createKey(tx, projectId, kind, name)
        const subject = { kind: 'key', id: key.id } as const
        const details = { kind, name }
        await writeAudit(tx, { action: 'key.created', ...actor, projectId, subject, details })
        return { key: await existingKey(tx, projectId, key.id), text }
      })
      return reply.code(201).send(made)
    },
  })

  app.route({
    ...updateKey,
    handler: async (request) => {
      const { projectId, params, body } = request
      const actor = actorOf(request)
      const origins = body.allowedOrigins?.map(allowedOriginOf) ?? body.allowedOrigins
      const key = await db.begin(async (tx) => {
        const before = await lockedKey(tx, projectId, params.keyId)
        if (origins && before.kind === 'secret') {
          throw invalid('/body/allowedOrigins', 'is for public keys')
        }
        await writeAudit(tx, {
          action: 'key.changed',
          ...actor,
          projectId,
          subject: { kind: 'key', id: before.id },
          details: {
            name: body.name ?? before.name,
            ...(origins !== undefined && { allowedOrigins: origins?.join(' ') ?? null }),
          },
        })
        return updateKeySettings(tx, projectId, before.id, {
          ...(body.name !== undefined && { name: body.name }),
          ...(origins !== undefined && { allowedOrigins: origins }),
        })
      })
      return { key }
    },
  })
}

function rotationRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...rotateKey,
    handler: async (request, reply) => {
      const { projectId, params } = request
      const { overlapSeconds } = request.body
      const actor = actorOf(request)
      const made = await db.begin(async (tx) => {
        const old = await lockedKey(tx, projectId, params.keyId)
        if (old.state === 'ended') throw invalid('/params/keyId', 'is a key that has ended')
        const { key, text } = await createKey(tx, projectId, old.kind, old.name)
        if (old.allowedOrigins) await updateKeySettings(tx, projectId, key.id, old)
        await revokeKey(tx, old.id, overlapSeconds)
        await writeAudit(tx, {
          action: 'key.rotated',
          ...actor,
          projectId,
          subject: { kind: 'key', id: old.id },
          details: { name: old.name, newKeyId: key.id, overlapSeconds },
        })
        return { key: await existingKey(tx, projectId, key.id), text }
      })
      return reply.code(201).send(made)
    },
  })

  app.route({
    ...revokeKeyEndpoint,
    handler: async (request) => {
      const { projectId, params } = request
      const actor = actorOf(request)
      const key = await db.begin(async (tx) => {
        const { id, name } = await lockedKey(tx, projectId, params.keyId)
        await revokeKey(tx, id, 0)
        const subject = { kind: 'key', id } as const
        const details = { name }
        await writeAudit(tx, { action: 'key.revoked', ...actor, projectId, subject, details })
        return existingKey(tx, projectId, id)
      })
      return { key }
    },
  })
}

async function lockedKey(tx: Sql, projectId: number, id: string): Promise<DashboardKey> {
  if (isUuid(id)) await lockKey(tx, projectId, id)
  return existingKey(tx, projectId, id)
}

async function existingKey(sql: Sql, projectId: number, id: string): Promise<DashboardKey> {
  const key = isUuid(id) ? await findKeySettings(sql, projectId, id) : undefined
  if (!key) throw new ApiError('key_not_found', 'No key with this id.')
  return key
}

function allowedOriginOf(text: string): string {
  const origin = originOf(text)
  if (origin === undefined) {
    throw invalid('/body/allowedOrigins', "isn't a valid origin, e.g. https://shop.example")
  }
  return origin
}
