import { type Static, type TObject, Type } from 'typebox'
import { DeletionJob } from './deletion-job.ts'
import { ofProject } from './endpoint.ts'
import { type ErrorCode, projectErrors } from './errors.ts'
import {
  choice,
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  PageQuery,
  TextOrNull,
} from './schemas.ts'

const Removed = Type.Object({
  /** Data keys of browsers: without them no copy of their recordings can be opened. */
  keys: Type.Integer(),
  sessions: Type.Integer(),
  chunks: Type.Integer(),
  blobs: Type.Integer(),
  bytes: Type.Integer(),
  browsers: Type.Integer(),
})

/** A deletion job with the details that the dashboard shows. */
export const Deletion = Type.Object({
  job: DeletionJob,
  /** The internal id of the person; null once the person is gone. */
  personId: TextOrNull,
  /**
   * Who requested it: a member, a secret key (server API), the command line, or the ledger, which
   * erases people again whom a restored backup brought back.
   */
  requestedBy: Type.Object({
    kind: choice('member', 'key', 'command', 'ledger'),
    /** Of the member or key. */
    id: TextOrNull,
    /** null if that member or key no longer exists. */
    name: TextOrNull,
  }),
  attempts: Type.Integer(),
  attemptsMaximum: Type.Integer(),
  /** The step of the current attempt, or the one in which the last attempt ended. */
  step: TextOrNull,
  /** When the next attempt starts; null while one runs, and after the last one. */
  nextAttemptAt: InstantOrNull,
  lastErrorCode: TextOrNull,
  /** When the job ended as failed; null otherwise. */
  failedAt: InstantOrNull,
  /** What was removed so far, also by attempts that failed. */
  removed: Removed,
  hasReceipt: Type.Boolean(),
  /** The time from which the database files hold nothing of the person. */
  purgedAt: InstantOrNull,
})
export type Deletion = Static<typeof Deletion>

export const DeletionAttempt = Type.Object({
  number: Type.Integer(),
  startedAt: Instant,
  endedAt: InstantOrNull,
  /** lost: the worker disappeared and its lease ended. */
  outcome: choice('running', 'completed', 'failed', 'lost'),
  step: TextOrNull,
  errorCode: TextOrNull,
  removed: Removed,
})
export type DeletionAttempt = Static<typeof DeletionAttempt>

const PersonIds = Type.Array(Type.String({ minLength: 1, maxLength: 20 }), {
  minItems: 1,
  maxItems: 100,
})

/** Exact counts of what would be deleted with these persons. */
export const previewDeletion = ofProject('previewDeletion', 'POST', '/deletion-preview', {
  body: Exactly({ personIds: PersonIds }),
  response: {
    200: Type.Object({
      persons: Type.Integer(),
      browsers: Type.Integer(),
      sessions: Type.Integer(),
      sessionsBeforeIdentification: Type.Integer(),
      bytes: Type.Integer(),
    }),
    ...projectErrors('invalid_request'),
  },
})

/**
 * Requests the erasure of persons, like DELETE /v1/persons/:externalId for each. Each person has a
 * result: a job, or the error of that endpoint (person_not_found, deletion_in_progress).
 */
export const requestDeletions = ofProject('requestDeletions', 'POST', '/deletions', {
  body: Exactly({ personIds: PersonIds, keepRecordings: Type.Boolean() }),
  response: {
    202: Type.Object({
      results: Type.Array(
        Type.Union([
          Type.Object({ personId: Type.String(), job: DeletionJob }),
          Type.Object({
            personId: Type.String(),
            error: Type.Object({
              code: Type.Unsafe<ErrorCode>(Type.String()),
              message: Type.String(),
            }),
          }),
        ]),
      ),
    }),
    ...projectErrors('invalid_request'),
  },
})

/** `open` is pending or running. `externalId` is exact. */
export const deletionFilters = {
  status: Type.Optional(choice('open', 'pending', 'running', 'completed', 'failed')),
  externalId: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  keepRecordings: Type.Optional(Type.Boolean()),
  from: Type.Optional(
    Type.String({ maxLength: 30, description: 'Requested at this instant or later, ISO 8601.' }),
  ),
  to: Type.Optional(Type.String({ maxLength: 30, description: 'Requested before this instant.' })),
}

export type DeletionFilter = Static<TObject<typeof deletionFilters>>

export const listDeletions = ofProject('listDeletions', 'GET', '/deletions', {
  querystring: Exactly({ ...deletionFilters, ...PageQuery }),
  response: {
    200: Type.Object({ deletions: Type.Array(Deletion), nextCursor: NextCursor }),
    ...projectErrors('invalid_request'),
  },
})

/** All deletions that match the filters, as text/csv, for a link with `download`. */
export const exportDeletions = ofProject('exportDeletions', 'GET', '/deletions.csv', {
  querystring: Exactly(deletionFilters),
  response: { 200: Type.String(), ...projectErrors('invalid_request') },
})

const DeletionPath = Type.Object({ projectId: Type.String(), jobId: Type.String() })

export const getDeletion = ofProject('getDeletion', 'GET', '/deletions/:jobId', {
  params: DeletionPath,
  response: {
    200: Type.Object({
      deletion: Deletion,
      /** Oldest first. */
      attempts: Type.Array(DeletionAttempt),
    }),
    ...projectErrors('deletion_job_not_found'),
  },
})

/** The receipt as the server API returns it, with its claims decoded and verified again. */
export const getReceipt = ofProject('getReceipt', 'GET', '/deletions/:jobId/receipt', {
  params: DeletionPath,
  response: {
    200: Type.Object({
      /** The signed statement (compact JWS), as downloaded. */
      receipt: Type.String(),
      claims: Type.Record(Type.String(), Type.Unknown()),
      /** Whether the signature is one of this installation's keys. */
      isValid: Type.Boolean(),
    }),
    ...projectErrors('deletion_job_not_found', 'receipt_not_found'),
  },
})
