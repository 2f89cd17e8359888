import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Instant, InstantOrNull } from './page.ts'

export const DeletionJob = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    externalId: Type.String({ description: 'The person being deleted.' }),
    keepRecordings: Type.Boolean(),
    status: Type.Unsafe<'pending' | 'running' | 'completed' | 'failed'>(
      Type.String({ enum: ['pending', 'running', 'completed', 'failed'] }),
    ),
    createdAt: Instant,
    startedAt: InstantOrNull,
    completedAt: Type.Union([Instant, Type.Null()], {
      description: 'The instant of the end; set exactly when the status is completed.',
    }),
  },
  { additionalProperties: false },
)
export type DeletionJob = Static<typeof DeletionJob>

export const getDeletionJob = {
  method: 'GET',
  url: '/v1/deletion-jobs/:id',
  schema: {
    operationId: 'getDeletionJob',
    summary: 'Read a deletion job',
    description: 'The job stays readable after the deletion, as proof.',
    tags: ['deletion jobs'],
    params: Type.Object({ id: Type.String() }),
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: Type.Object({ job: DeletionJob }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'deletion_job_not_found',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const
