import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { getDeletionJob } from '@lethe/contract/deletion-job.ts'
import { ApiError } from '../api-error.ts'
import type { Db } from '../sql.ts'
import { findDeletionJob } from './store.ts'

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const deletionJobRoutes: FastifyPluginAsyncTypebox<{ db: Db }> = async (app, { db }) => {
  app.route({
    ...getDeletionJob,
    handler: async ({ projectId, params }) => {
      const job = uuid.test(params.id)
        ? await findDeletionJob(db.short, projectId, params.id)
        : undefined
      if (!job) throw new ApiError('deletion_job_not_found', 'No deletion job with this id.')
      return { job }
    },
  })
}
