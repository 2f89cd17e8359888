import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Cursor, Instant, InstantOrNull, Limit, NextCursor } from './page.ts'

/** Everything a member can do that is written down. */
export const auditActions = [
  'set_up.done',
  'member.signed_in',
  'member.sign_in_failed',
  'member.invited',
  'member.invitation_withdrawn',
  'member.joined',
  'member.changed',
  'member.removed',
  'member.reset_link_made',
  'member.password_reset',
  'member.password_changed',
  'member.second_factor_added',
  'member.second_factor_removed',
  'project.created',
  'project.changed',
  'project.identify_secret_made',
  'project.identify_secret_removed',
  'key.created',
  'key.changed',
  'key.rotated',
  'key.revoked',
  'person.edited',
  'person.deletion_requested',
  'deletions.exported',
  'webhook.created',
  'webhook.changed',
  'webhook.removed',
  'webhook.secret_rotated',
  'webhook.tested',
  'webhook.delivery_resent',
] as const
export type AuditAction = (typeof auditActions)[number]

export const AuditEntry = Type.Object({
  id: Type.String(),
  at: Instant,
  action: Type.Unsafe<AuditAction>(Type.String({ enum: auditActions as unknown as string[] })),
  /** null: nobody signed in, as in a sign-in that failed, or the command line. */
  member: Type.Union([
    Type.Object({
      id: Type.String(),
      /** null where that member was removed since. */
      name: Type.Union([Type.String(), Type.Null()]),
    }),
    Type.Null(),
  ]),
  projectId: Type.Union([Type.String(), Type.Null()]),
  /** What it was done to. A person that was erased since is no longer named: the id is null. */
  subject: Type.Union([
    Type.Object({
      kind: Type.Unsafe<
        'member' | 'invitation' | 'project' | 'key' | 'person' | 'deletion_job' | 'webhook'
      >(Type.String()),
      id: Type.Union([Type.String(), Type.Null()]),
    }),
    Type.Null(),
  ]),
  /** Names of what was changed and plain facts of it; never a property's key or value. */
  details: Type.Record(
    Type.String(),
    Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
  ),
})
export type AuditEntry = Static<typeof AuditEntry>

/** Newest first. */
export const listAuditEntries = {
  method: 'GET',
  url: '/dashboard/v1/audit-log',
  schema: {
    operationId: 'listAuditEntries',
    querystring: Type.Object(
      {
        projectId: Type.Optional(Type.String({ maxLength: 10 })),
        memberId: Type.Optional(Type.String({ maxLength: 36 })),
        action: Type.Optional(
          Type.Unsafe<AuditAction>(Type.String({ enum: auditActions as unknown as string[] })),
        ),
        limit: Limit,
        cursor: Cursor,
      },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({ entries: Type.Array(AuditEntry), nextCursor: NextCursor }),
      ...errors('invalid_request', 'unauthorized', 'forbidden'),
    },
  },
} as const

const Health = Type.Unsafe<'ok' | 'failed' | 'unknown'>(
  Type.String({ enum: ['ok', 'failed', 'unknown'] }),
)

export const getSystem = {
  method: 'GET',
  url: '/dashboard/v1/system',
  schema: {
    operationId: 'getSystem',
    response: {
      200: Type.Object({
        version: Type.String(),
        nodeVersion: Type.String(),
        database: Type.Object({
          version: Type.String(),
          isEmbedded: Type.Boolean(),
          bytes: Type.Integer(),
        }),
        blobs: Type.Object({
          /** Where the blobs are: a folder of this machine, or an S3 bucket. */
          kind: Type.Unsafe<'folder' | 's3' | 'unknown'>(
            Type.String({ enum: ['folder', 's3', 'unknown'] }),
          ),
          state: Health,
          checkedAt: InstantOrNull,
          errorCode: Type.Union([Type.String(), Type.Null()]),
        }),
        /** Whether a worker of erasures was seen in the last minute, on any machine. */
        worker: Type.Object({ state: Health, lastSeenAt: InstantOrNull }),
        deletions: Type.Object({
          pending: Type.Integer(),
          running: Type.Integer(),
          failed: Type.Integer(),
          oldestPendingAt: InstantOrNull,
          oldestPendingJobId: Type.Union([Type.String(), Type.Null()]),
        }),
        webhooks: Type.Object({
          pending: Type.Integer(),
          oldestPendingAt: InstantOrNull,
        }),
        now: Instant,
      }),
      ...errors('unauthorized', 'forbidden'),
    },
  },
} as const
