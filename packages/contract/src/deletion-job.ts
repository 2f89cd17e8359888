import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Cursor, Instant, InstantOrNull, Limit, NextCursor } from './page.ts'

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

export const listDeletionJobs = {
  method: 'GET',
  url: '/v1/deletion-jobs',
  schema: {
    operationId: 'listDeletionJobs',
    summary: 'List deletion jobs, newest created first',
    description: 'Also finds the job of a DELETE whose answer was lost.',
    tags: ['deletion jobs'],
    querystring: Type.Object(
      {
        limit: Limit,
        cursor: Cursor,
        externalId: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 200,
            description: 'Only the jobs of persons with exactly this externalId.',
          }),
        ),
        status: Type.Optional(
          Type.Unsafe<DeletionJob['status']>(
            Type.String({ enum: ['pending', 'running', 'completed', 'failed'] }),
          ),
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({ jobs: Type.Array(DeletionJob), nextCursor: NextCursor }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

const ExternalId = Type.String({ minLength: 1, maxLength: 200 })

const RequestedDeletion = Type.Union([
  Type.Object({ externalId: ExternalId, job: DeletionJob }, { additionalProperties: false }),
  Type.Object(
    {
      externalId: ExternalId,
      error: Type.Object({
        code: Type.Unsafe<'person_not_found' | 'deletion_in_progress'>(
          Type.String({ enum: ['person_not_found', 'deletion_in_progress'] }),
        ),
        message: Type.String(),
      }),
    },
    { additionalProperties: false },
  ),
])

export const requestDeletions = {
  method: 'POST',
  url: '/v1/deletion-jobs',
  schema: {
    operationId: 'requestDeletions',
    summary: 'Request the erasure of many persons',
    description:
      'One job a person, each as DELETE /v1/persons/:externalId makes it; results come in the order of externalIds.',
    tags: ['deletion jobs'],
    body: Type.Object(
      {
        externalIds: Type.Array(ExternalId, { minItems: 1, maxItems: 1000 }),
        keepRecordings: Type.Optional(
          Type.Boolean({ description: 'true keeps the sessions, anonymous.' }),
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      202: Type.Object({ results: Type.Array(RequestedDeletion) }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const
