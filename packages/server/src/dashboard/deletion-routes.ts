import {
  type Deletion,
  type DeletionFilter,
  exportDeletions,
  getDeletion,
  getReceipt,
  listDeletions as listDeletionsEndpoint,
  previewDeletion as previewEndpoint,
  requestDeletions,
} from '@lethe/contract/dashboard-deletions.ts'
import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { ApiError, invalid } from '../api-error.ts'
import { existingReceipt, ReceiptRefused, verifyReceipt } from '../erasure/receipts.ts'
import { requestDeletion } from '../erasure/request.ts'
import { publicKeys } from '../erasure/signing-keys.ts'
import { isStorable } from '../http/body.ts'
import { readPage } from '../http/page.ts'
import { instantOf, isPersonId, isUuid } from '../http/parameters.ts'
import { writeAudit, writeAuditOfDeletions } from '../members/audit-store.ts'
import { type Actor, actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import type { Db, Sql } from '../sql.ts'
import { type CsvColumns, sendCsv } from './csv.ts'
import { findDeletion, listAttempts, listDeletions, previewDeletion } from './deletion-store.ts'

export function deletionRoutes(app: DashboardApp, context: DashboardContext): void {
  requestRoutes(app, context)
  listRoutes(app, context)
  jobRoutes(app, context)
}

function requestRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...previewEndpoint,
    handler: async ({ projectId, body }) =>
      previewDeletion(db.sql, projectId, body.personIds.filter(isPersonId)),
  })

  app.route({
    ...requestDeletions,
    handler: async (request, reply) => {
      const { projectId, body } = request
      const actor = actorOf(request)
      const results: RequestedDeletion[] = []
      // One after the other, because each may wait for locks of the ingestion.
      for (const personId of new Set(body.personIds)) {
        const { keepRecordings } = body
        const asked = { projectId, personId, keepRecordings, actor }
        results.push(await requestOne(db, asked))
      }
      return reply.code(202).send({ results })
    },
  })
}

type RequestedDeletion =
  | { personId: string; job: DeletionJob }
  | { personId: string; error: { code: ApiError['code']; message: string } }

async function requestOne(
  db: Db,
  asked: { projectId: number; personId: string; keepRecordings: boolean; actor: Actor },
): Promise<RequestedDeletion> {
  const { projectId, personId, keepRecordings, actor } = asked
  try {
    if (!isPersonId(personId)) throw new ApiError('person_not_found', 'No person with this id.')
    const requestedBy = `member:${actor.memberId}` as const
    const job = await requestDeletion(db, { projectId, personId, keepRecordings, requestedBy })
    await writeAuditOfDeletions(db.sql, [job.id], {
      ...actor,
      action: 'person.deletion_requested',
      projectId,
      details: { keepRecordings },
    })
    return { personId, job }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { personId, error: { code: error.code, message: error.message } }
  }
}

function listRoutes(app: DashboardApp, { db, cursors }: DashboardContext): void {
  app.route({
    ...listDeletionsEndpoint,
    handler: async ({ projectId, query }) => {
      const { limit, cursor, ...asked } = query
      const filter = filterOf(asked)
      const list = ['deletions of the dashboard', projectId, ...Object.entries(filter)]
      const page = { cursors, list, limit, cursor }
      const { rows, nextCursor } = await readPage(page, ['createdAt', 'id'], async (after, count) =>
        (await listDeletions(db.sql, projectId, filter, after, count)).map((deletion) => ({
          ...deletion.job,
          deletion,
        })),
      )
      return { deletions: rows.map(({ deletion }) => deletion), nextCursor }
    },
  })

  app.route({
    ...exportDeletions,
    handler: async (request, reply) => {
      const { projectId, query } = request
      const filter = filterOf(query)
      const actor = actorOf(request)
      return sendCsv(request, reply, {
        name: 'deletions',
        columns: deletionColumns,
        note: () => writeAudit(db.sql, { ...actor, action: 'deletions.exported', projectId }),
        read: (last, limit) => listDeletions(db.sql, projectId, filter, last?.job ?? null, limit),
      })
    },
  })
}

function jobRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...getDeletion,
    handler: async ({ projectId, params }) => ({
      deletion: await existingDeletion(db.sql, projectId, params.jobId),
      attempts: await listAttempts(db.sql, projectId, params.jobId),
    }),
  })

  app.route({
    ...getReceipt,
    handler: async (request) => {
      const { projectId, params } = request
      const { job } = await existingDeletion(db.sql, projectId, params.jobId)
      const receipt = await existingReceipt(db.sql, projectId, job)
      const subject = { kind: 'deletion_job', id: job.id } as const
      const actor = actorOf(request)
      await writeAudit(db.sql, { ...actor, action: 'receipt.downloaded', projectId, subject })
      const keys = await publicKeys(db.sql)
      try {
        return { receipt, claims: { ...(await verifyReceipt(receipt, keys)) }, isValid: true }
      } catch (error) {
        if (!(error instanceof ReceiptRefused)) throw error
        return { receipt, claims: {}, isValid: false }
      }
    },
  })
}

async function existingDeletion(sql: Sql, projectId: number, id: string): Promise<Deletion> {
  const deletion = isUuid(id) ? await findDeletion(sql, projectId, id) : undefined
  if (!deletion) throw new ApiError('deletion_job_not_found', 'No deletion job with this id.')
  return deletion
}

function filterOf({ from, to, externalId, ...rest }: DeletionFilter): DeletionFilter {
  if (!isStorable(externalId ?? '')) throw invalid('/query/externalId', 'has U+0000')
  return {
    ...rest,
    ...(externalId !== undefined && { externalId }),
    ...(from !== undefined && { from: instantOf(from, '/query/from') }),
    ...(to !== undefined && { to: instantOf(to, '/query/to') }),
  }
}

const deletionColumns: CsvColumns<Deletion> = [
  ['job_id', ({ job }) => job.id],
  ['external_id', ({ job }) => job.externalId],
  ['status', ({ job }) => job.status],
  ['keep_recordings', ({ job }) => job.keepRecordings],
  ['requested_by', ({ requestedBy: { kind, name } }) => (name ? `${kind}: ${name}` : kind)],
  ['requested_by_id', ({ requestedBy }) => requestedBy.id],
  ['requested_at', ({ job }) => job.createdAt],
  ['started_at', ({ job }) => job.startedAt],
  ['completed_at', ({ job }) => job.completedAt],
  ['failed_at', ({ failedAt }) => failedAt],
  ['attempts', ({ attempts }) => attempts],
  ['last_error_code', ({ lastErrorCode }) => lastErrorCode],
  ['removed_sessions', ({ removed }) => removed.sessions],
  ['removed_chunks', ({ removed }) => removed.chunks],
  ['removed_blobs', ({ removed }) => removed.blobs],
  ['removed_bytes', ({ removed }) => removed.bytes],
  ['removed_browsers', ({ removed }) => removed.browsers],
]
