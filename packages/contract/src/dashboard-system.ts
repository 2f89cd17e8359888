import { type Static, Type } from 'typebox'
import { ofDashboard } from './endpoint.ts'
import { memberErrors } from './errors.ts'
import {
  choice,
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  OrNull,
  PageQuery,
  TextOrNull,
} from './schemas.ts'

/** Every action of a member that is logged. */
export const auditActions = [
  'set_up.done',
  'member.signed_in',
  'member.sign_in_failed',
  'member.password_failed',
  'member.second_factor_failed',
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
  'member.passkey_added',
  'member.passkey_removed',
  'project.created',
  'project.changed',
  'project.identify_secret_made',
  'project.identify_secret_removed',
  'project.identity_key_added',
  'project.identity_key_removed',
  'key.created',
  'key.changed',
  'key.rotated',
  'key.revoked',
  'person.edited',
  'person.deletion_requested',
  'session.watched',
  'session.note_added',
  'session.note_removed',
  'session.link_created',
  'session.link_withdrawn',
  'receipt.downloaded',
  'deletions.exported',
  'database.restored',
  'audit.exported',
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
  action: choice(...auditActions),
  /** null if nobody was signed in (a failed sign-in), and for the command line. */
  member: OrNull(
    Type.Object({
      id: Type.String(),
      /** null if the member was removed. */
      name: TextOrNull,
    }),
  ),
  /** The API key, if the action was not a member's. */
  key: OrNull(Type.Object({ id: Type.String(), name: TextOrNull })),
  /** As in 203.0.113.0/24; null for the command line and for entries of old versions. */
  addressRange: TextOrNull,
  projectId: TextOrNull,
  /** The internal id of the person it is about; null if there is none or they were erased. */
  personId: TextOrNull,
  /** The subject of the action. The id is null for a person who was erased. */
  subject: OrNull(
    Type.Object({
      kind: Type.Unsafe<
        | 'member'
        | 'invitation'
        | 'project'
        | 'key'
        | 'person'
        | 'session'
        | 'deletion_job'
        | 'webhook'
      >(Type.String()),
      id: TextOrNull,
    }),
  ),
  /** Names of changed settings and plain facts; never personal data. */
  details: Type.Record(
    Type.String(),
    Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]),
  ),
})
export type AuditEntry = Static<typeof AuditEntry>

const AuditFilter = {
  projectId: Type.Optional(Type.String({ maxLength: 10 })),
  memberId: Type.Optional(Type.String({ maxLength: 36 })),
  /** The internal id of a person of `projectId`. */
  personId: Type.Optional(Type.String({ maxLength: 20 })),
  action: Type.Optional(choice(...auditActions)),
  /** Times: at or after `from`, and before `to`. */
  from: Type.Optional(Type.String({ maxLength: 40 })),
  to: Type.Optional(Type.String({ maxLength: 40 })),
}

/** All entries that match a filter, as CSV (RFC 4180), newest first. */
export const exportAuditEntries = ofDashboard('exportAuditEntries', 'GET', '/audit-log/export', {
  querystring: Exactly(AuditFilter),
  response: { 200: Type.String(), ...memberErrors('invalid_request') },
})

/** Newest first. */
export const listAuditEntries = ofDashboard('listAuditEntries', 'GET', '/audit-log', {
  querystring: Exactly({ ...AuditFilter, ...PageQuery }),
  response: {
    200: Type.Object({ entries: Type.Array(AuditEntry), nextCursor: NextCursor }),
    ...memberErrors('invalid_request'),
  },
})

const Health = choice('ok', 'failed', 'unknown')

export const getSystem = ofDashboard('getSystem', 'GET', '/system', {
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
        /** A folder of this machine, or an S3 bucket. */
        kind: choice('folder', 's3', 'unknown'),
        state: Health,
        checkedAt: InstantOrNull,
        errorCode: TextOrNull,
      }),
      /** Whether a worker of erasures was seen in the last minute, on any machine. */
      worker: Type.Object({ state: Health, lastSeenAt: InstantOrNull }),
      deletions: Type.Object({
        pending: Type.Integer(),
        running: Type.Integer(),
        failed: Type.Integer(),
        oldestPendingAt: InstantOrNull,
        oldestPendingJobId: TextOrNull,
      }),
      /** Of the ledger of erasures in the blob store, as the last comparison found it. */
      ledger: Type.Object({
        entries: Type.Integer(),
        /** Entries that are not genuine or in the wrong place. They erase nobody. */
        refused: Type.Integer(),
        missing: Type.Integer(),
        comparedAt: InstantOrNull,
      }),
      webhooks: Type.Object({
        pending: Type.Integer(),
        oldestPendingAt: InstantOrNull,
      }),
      now: Instant,
    }),
    ...memberErrors(),
  },
})
