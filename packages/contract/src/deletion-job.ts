import { type Static, Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { apiErrors, type ErrorCode } from './errors.ts'
import {
  choice,
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  OrNull,
  PageQuery,
} from './schemas.ts'

export const DeletionJob = Exactly({
  id: Type.String({ format: 'uuid' }),
  externalId: Type.String({ description: 'The person being deleted.' }),
  keepRecordings: Type.Boolean(),
  status: choice('pending', 'running', 'completed', 'failed'),
  createdAt: Instant,
  startedAt: InstantOrNull,
  completedAt: OrNull(Instant, {
    description: 'When the job was completed; null unless the status is completed.',
  }),
})
export type DeletionJob = Static<typeof DeletionJob>

export const getDeletionJob = endpoint('getDeletionJob', 'GET', '/v1/deletion-jobs/:id', {
  summary: 'Read a deletion job',
  description: 'The job stays readable after the deletion, as proof.',
  tags: ['deletion jobs'],
  params: Type.Object({ id: Type.String() }),
  querystring: Exactly({}),
  response: {
    200: Type.Object({ job: DeletionJob }),
    ...apiErrors('invalid_request', 'deletion_job_not_found'),
  },
})

export const listDeletionJobs = endpoint('listDeletionJobs', 'GET', '/v1/deletion-jobs', {
  summary: 'List deletion jobs, newest first',
  description: 'Also finds the job of a DELETE whose response was lost.',
  tags: ['deletion jobs'],
  querystring: Exactly({
    ...PageQuery,
    externalId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'Only the jobs of persons with exactly this externalId. Write a plus as %2B and a space as %20: a raw + is refused.',
      }),
    ),
    status: Type.Optional(
      Type.Unsafe<DeletionJob['status']>(
        Type.String({ enum: ['pending', 'running', 'completed', 'failed'] }),
      ),
    ),
  }),
  response: {
    200: Type.Object({ jobs: Type.Array(DeletionJob), nextCursor: NextCursor }),
    ...apiErrors('invalid_request'),
  },
})

const ExternalId = Type.String({ minLength: 1, maxLength: 200 })

const requestErrors = [
  'invalid_request',
  'person_not_found',
  'deletion_in_progress',
  'internal_error',
  'unavailable',
] as const satisfies ErrorCode[]

const RequestedDeletion = Type.Union([
  Exactly({ externalId: ExternalId, job: DeletionJob }),
  Exactly({
    externalId: Type.String({ description: 'As it was sent.' }),
    error: Type.Object({
      code: Type.Unsafe<(typeof requestErrors)[number]>(Type.String({ enum: requestErrors })),
      message: Type.String(),
    }),
  }),
])

export const requestDeletions = endpoint('requestDeletions', 'POST', '/v1/deletion-jobs', {
  summary: 'Request the erasure of several persons',
  description:
    'Creates one job per person, as DELETE /v1/persons/:externalId does. Results are in the order of externalIds.',
  tags: ['deletion jobs'],
  body: Exactly({
    externalIds: Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 1000,
      description: 'An invalid externalId gets an error in its own result.',
    }),
    keepRecordings: Type.Optional(
      Type.Boolean({ description: 'true keeps the recordings and makes them anonymous.' }),
    ),
  }),
  response: {
    202: Type.Object({ results: Type.Array(RequestedDeletion) }),
    ...apiErrors('invalid_request', 'payload_too_large', 'unsupported_media_type'),
  },
})
