import {
  type AuditEntry,
  exportAuditEntries,
  getSystem,
  listAuditEntries,
} from '@lethe/contract/dashboard-system.ts'
import { blobsHealth } from '../blobs/health.ts'
import { readLedgerHealth } from '../erasure/ledger-store.ts'
import { readPage } from '../http/page.ts'
import { instantOf, isPersonId, isUuid } from '../http/parameters.ts'
import { type AuditFilter, listAudit, writeAudit } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { type CsvColumns, sendCsv } from './csv.ts'
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
        ledger: await readLedgerHealth(db.sql),
        webhooks: {
          pending: facts.pendingDeliveries,
          oldestPendingAt: facts.oldestDeliveryAt,
        },
        now: facts.now,
      }
    },
  })

  app.route({
    ...exportAuditEntries,
    handler: async (request, reply) => {
      const filter = filterOf(request.query)
      const actor = actorOf(request)
      return sendCsv(request, reply, {
        name: 'audit-log',
        columns: auditColumns,
        note: () => writeAudit(db.sql, { ...actor, action: 'audit.exported' }),
        read: async (last, limit) =>
          filter ? listAudit(db.sql, filter, last?.id ?? null, limit) : [],
      })
    },
  })

  app.route({
    ...listAuditEntries,
    handler: async ({ query }) => {
      const { limit, cursor, ...asked } = query
      const filter = filterOf(asked)
      if (filter === undefined) return { entries: [], nextCursor: null }
      const page = { cursors, list: ['audit log', ...Object.entries(filter)], limit, cursor }
      const { rows, nextCursor } = await readPage(page, ['id'], (after, count) =>
        listAudit(db.sql, filter, after?.id ?? null, count),
      )
      return { entries: rows, nextCursor }
    },
  })
}

/** Returns undefined for a filter that nothing can match, such as an invalid id. */
function filterOf(
  asked: Omit<AuditFilter, 'projectId'> & { projectId?: string },
): AuditFilter | undefined {
  const { projectId, memberId, personId, action, from, to } = asked
  if (projectId !== undefined && !/^[1-9]\d{0,8}$/.test(projectId)) return undefined
  if (memberId !== undefined && !isUuid(memberId)) return undefined
  if (personId !== undefined && !isPersonId(personId)) return undefined
  return {
    ...(projectId !== undefined && { projectId: Number(projectId) }),
    ...(memberId !== undefined && { memberId }),
    ...(personId !== undefined && { personId }),
    ...(action !== undefined && { action }),
    ...(from !== undefined && { from: instantOf(from, '/query/from') }),
    ...(to !== undefined && { to: instantOf(to, '/query/to') }),
  }
}

const auditColumns: CsvColumns<AuditEntry> = [
  ['id', ({ id }) => id],
  ['at', ({ at }) => at],
  ['action', ({ action }) => action],
  ['member_id', ({ member }) => member?.id ?? null],
  ['member_name', ({ member }) => member?.name ?? null],
  ['key_id', ({ key }) => key?.id ?? null],
  ['key_name', ({ key }) => key?.name ?? null],
  ['address_range', ({ addressRange }) => addressRange],
  ['project_id', ({ projectId }) => projectId],
  ['person_id', ({ personId }) => personId],
  ['subject_kind', ({ subject }) => subject?.kind ?? null],
  ['subject_id', ({ subject }) => subject?.id ?? null],
  ['details', ({ details }) => JSON.stringify(details)],
]
