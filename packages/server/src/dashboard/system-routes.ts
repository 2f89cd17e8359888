import { getSystem, listAuditEntries } from '@lethe/contract/dashboard-system.ts'
import { isUuid } from '../uuid.ts'
import { type AuditFilter, listAudit } from './audit-store.ts'
import { blobsHealth } from './blobs-health.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { readSystemFacts } from './system-store.ts'

export function systemRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, cursors } = context
  const health = blobsHealth(context.recordings?.blobs)

  app.route({
    ...getSystem,
    handler: async () => {
      const facts = await readSystemFacts(db.sql)
      return {
        version: context.version,
        nodeVersion: process.versions.node,
        database: { ...context.database, bytes: facts.databaseBytes },
        blobs: { kind: context.blobs.kind, ...(await health()) },
        worker: {
          state: facts.isWorkerThere ? ('ok' as const) : ('failed' as const),
          lastSeenAt: facts.workerSeenAt,
        },
        deletions: {
          pending: facts.pending,
          running: facts.running,
          failed: facts.failed,
          oldestPendingAt: facts.oldestPendingAt,
          oldestPendingJobId: facts.oldestPendingJobId,
        },
        webhooks: {
          pending: facts.pendingDeliveries,
          oldestPendingAt: facts.oldestDeliveryAt,
        },
        now: facts.now,
      }
    },
  })

  app.route({
    ...listAuditEntries,
    handler: async ({ query }) => {
      const { limit, cursor, ...asked } = query
      const filter = filterOf(asked)
      if (filter === undefined) return { entries: [], nextCursor: null }
      const list = ['audit log', ...Object.entries(filter)]
      const beforeId = cursor === undefined ? null : cursors.decode(list, cursor)
      const rows = await listAudit(db.sql, filter, beforeId, limit + 1)
      const entries = rows.slice(0, limit)
      const last = rows.length > limit ? entries.at(-1) : undefined
      return { entries, nextCursor: last ? cursors.encode(list, last.id) : null }
    },
  })
}

/** undefined for a filter that no entry can pass, of an id that is none. */
function filterOf({
  projectId,
  memberId,
  action,
}: {
  projectId?: string
  memberId?: string
  action?: AuditFilter['action']
}): AuditFilter | undefined {
  if (projectId !== undefined && !/^[1-9]\d{0,8}$/.test(projectId)) return undefined
  if (memberId !== undefined && !isUuid(memberId)) return undefined
  return {
    ...(projectId !== undefined && { projectId: Number(projectId) }),
    ...(memberId !== undefined && { memberId }),
    ...(action !== undefined && { action }),
  }
}
