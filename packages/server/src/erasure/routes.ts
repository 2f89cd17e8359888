import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  type DeletionJob,
  getDeletionJob,
  listDeletionJobs,
  requestDeletions,
} from '@lethe/contract/deletion-job.ts'
import { deletePerson } from '@lethe/contract/person.ts'
import { getPublicKeys, getReceipt } from '@lethe/contract/receipt.ts'
import { liftSuppression } from '@lethe/contract/suppression.ts'
import { ApiError, invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { type Cursors, readPage } from '../http/page.ts'
import { isUuid } from '../http/parameters.ts'
import { externalIdOf } from '../persons/store.ts'
import type { Suppressions } from '../projects/suppressions.ts'
import type { Db } from '../sql.ts'
import { findDeletionJob, type JobFilter, listDeletionJobs as listJobs } from './jobs.ts'
import { findPurgeStatement } from './purge-store.ts'
import { existingReceipt } from './receipts.ts'
import { requestDeletion, requestDeletions as requestMany } from './request.ts'
import { publicKeys } from './signing-keys.ts'

export interface DeletionJobOptions {
  db: Db
  cursors: Cursors
  /** Undefined without recordings: then no identify can create a person. */
  suppressions: Suppressions | undefined
}

export const deletionJobRoutes: FastifyPluginAsyncTypebox<DeletionJobOptions> = async (
  app,
  { db, cursors, suppressions },
) => {
  async function existingJob(projectId: number, id: string): Promise<DeletionJob> {
    const job = isUuid(id) ? await findDeletionJob(db.short, projectId, id) : undefined
    if (!job) throw new ApiError('deletion_job_not_found', 'No deletion job with this id.')
    return job
  }

  app.route({
    ...deletePerson,
    handler: async ({ projectId, keyId, params, query }, reply) => {
      const job = await requestDeletion(db, {
        projectId,
        externalId: externalIdOf(params),
        keepRecordings: query.keepRecordings,
        requestedBy: `key:${keyId}`,
      })
      return reply.code(202).send({ job })
    },
  })

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
      }
      const page = { cursors, list, limit, cursor }
      const { rows, nextCursor } = await readPage(page, ['createdAt', 'id'], (after, count) =>
        listJobs(db.sql, projectId, filter, after, count),
      )
      return { jobs: rows, nextCursor }
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
    ...liftSuppression,
    handler: async ({ projectId, query: { externalId } }) => {
      if (!isStorable(externalId)) throw invalid('/query/externalId', 'has U+0000')
      return { lifted: (await suppressions?.lift(db.sql, projectId, externalId)) ?? false }
    },
  })

  app.route({
    ...getReceipt,
    handler: async ({ projectId, params }) => {
      const job = await existingJob(projectId, params.id)
      const receipt = await existingReceipt(db.short, projectId, job)
      return { receipt, purge: await findPurgeStatement(db.short, projectId, job.id) }
    },
  })
}

/** The public keys for checking receipts. */
export const publicKeyRoutes: FastifyPluginAsyncTypebox<{ db: Db }> = async (app, { db }) => {
  app.route({
    ...getPublicKeys,
    handler: async (_request, reply) => {
      reply.header('cache-control', 'public, max-age=300')
      return publicKeys(db.short)
    },
  })
}
