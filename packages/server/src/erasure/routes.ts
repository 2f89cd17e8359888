import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  type DeletionJob,
  getDeletionJob,
  listDeletionJobs,
  requestDeletions,
} from '@lethe/contract/deletion-job.ts'
import { getPublicKeys, getReceipt } from '@lethe/contract/receipt.ts'
import { ApiError, invalid } from '../api-error.ts'
import type { Cursors } from '../cursor.ts'
import { isStorable } from '../json-body.ts'
import type { Db } from '../sql.ts'
import { isUuid } from '../uuid.ts'
import { findReceipt } from './receipts.ts'
import { requestDeletions as requestMany } from './request.ts'
import { publicKeys } from './signing-keys.ts'
import { findDeletionJob, type JobFilter, listDeletionJobs as listJobs } from './store.ts'

export const deletionJobRoutes: FastifyPluginAsyncTypebox<{ db: Db; cursors: Cursors }> = async (
  app,
  { db, cursors },
) => {
  async function existingJob(projectId: number, id: string): Promise<DeletionJob> {
    const job = isUuid(id) ? await findDeletionJob(db.short, projectId, id) : undefined
    if (!job) throw new ApiError('deletion_job_not_found', 'No deletion job with this id.')
    return job
  }

  app.route({
    ...getDeletionJob,
    handler: async ({ projectId, params }) => ({ job: await existingJob(projectId, params.id) }),
  })

  app.route({
    ...listDeletionJobs,
    handler: async ({ projectId, query }) => {
      const { limit, cursor, externalId, status } = query
      if (!isStorable(externalId ?? '')) throw invalid('/query/externalId', 'has U+0000')
      const list = ['deletion-jobs', projectId, externalId ?? null, status ?? null]
      const filter: JobFilter = {
        ...(externalId !== undefined && { externalId }),
        ...(status !== undefined && { status }),
        ...(cursor !== undefined && { after: placeOf(cursors.decode(list, cursor)) }),
      }
      const rows = await listJobs(db.sql, projectId, filter, limit + 1)
      const jobs = rows.slice(0, limit)
      const last = rows.length > limit ? jobs.at(-1) : undefined
      return { jobs, nextCursor: last ? cursors.encode(list, positionOf(last)) : null }
    },
  })

  app.route({
    ...requestDeletions,
    handler: async ({ projectId, keyId, body }, reply) => {
      const { externalIds, keepRecordings = false } = body
      const requestedBy = `key:${keyId}` as const
      const results = await requestMany(db, { projectId, externalIds, keepRecordings, requestedBy })
      return reply.code(202).send({ results } as never)
    },
  })

  app.route({
    ...getReceipt,
    handler: async ({ projectId, params }) => {
      const { id } = await existingJob(projectId, params.id)
      const receipt = await findReceipt(db.short, projectId, id)
      if (receipt === undefined) {
        throw new ApiError('receipt_not_found', 'A receipt is there once the job is completed.')
      }
      return { receipt }
    },
  })

  app.route({
    ...getPublicKeys,
    handler: async (_request, reply) => {
      reply.header('cache-control', 'public, max-age=300')
      return publicKeys(db.short)
    },
  })
}

const positionOf = ({ createdAt, id }: DeletionJob) => `${createdAt} ${id}`

function placeOf(position: string): { createdAt: string; id: string } {
  const [createdAt = '', id = ''] = position.split(' ')
  return { createdAt, id }
}
