import { type Static, Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { apiErrors, errors } from './errors.ts'
import { Done, Exactly, Instant, InstantOrNull, OrNull, TextOrNull } from './schemas.ts'

const RemovedCounts = Type.Object({
  sessions: Type.Integer(),
  chunks: Type.Integer(),
  blobs: Type.Integer(),
  bytes: Type.Integer(),
  browsers: Type.Integer(),
})

/**
 * What a receipt states, as the payload of its JWS. It holds no personal data: only somebody who knows
 * the externalId can check whose erasure it was, with `externalIdHash`.
 */
export const ReceiptStatement = Exactly({
  version: Type.Literal(1),
  jobId: Type.String({ format: 'uuid' }),
  projectId: Type.Integer(),
  /** The receipts of a project are numbered from 1 on, without gaps. */
  number: Type.Integer({ minimum: 1 }),
  /** SHA-256, in hex, of the project's previous receipt as it is served; null in its first. */
  previousReceiptHash: TextOrNull,
  /** SHA-256, in hex, of the bytes of `externalIdSalt` followed by the externalId in UTF-8. */
  externalIdHash: Type.String(),
  /** 16 random bytes in hex. */
  externalIdSalt: Type.String(),
  keepRecordings: Type.Boolean(),
  createdAt: Instant,
  startedAt: Instant,
  completedAt: Instant,
  attempts: Type.Integer({ minimum: 1, maximum: 5 }),
  /**
   * What was removed in all attempts. Sessions, chunks and browsers are counted in the
   * transactions that remove them. `blobs` and `bytes` are minimum values reported by the blob
   * store: an attempt that crashed may have removed more.
   */
  removed: RemovedCounts,
  /**
   * Earlier failed jobs of the same person, oldest first, with what they removed. Recordings that
   * they made unreadable are removed by this job, even if it keeps the others. (Missing in receipts
   * of older versions.)
   */
  earlierJobs: Type.Optional(
    Type.Array(
      Type.Object({
        jobId: Type.String({ format: 'uuid' }),
        keepRecordings: Type.Boolean(),
        removed: RemovedCounts,
      }),
    ),
  ),
  /**
   * When data keys, blobs, chunks and sessions of the browsers were verified to be deleted; null if
   * all recordings were kept. The person and the links to browsers were deleted at `completedAt`,
   * in one transaction.
   */
  recordingsVerifiedAt: InstantOrNull,
  /** How long backups of the database may still hold the person's row, as the operator set it. */
  backupRetentionDays: Type.Integer(),
})
export type ReceiptStatement = Static<typeof ReceiptStatement>

/**
 * Signed when the files of the database, including its log, hold nothing of an erased person any more.
 * Backups may.
 */
export const PurgeStatement = Exactly({
  version: Type.Literal(1),
  jobId: Type.String({ format: 'uuid' }),
  projectId: Type.Integer(),
  /** SHA-256, in hex, of the job's receipt as it is served. */
  receiptHash: Type.String(),
  purgedAt: Instant,
})
export type PurgeStatement = Static<typeof PurgeStatement>

/** States the newest receipt of a project at a time, which covers all earlier ones. */
export const AnchorStatement = Exactly({
  version: Type.Literal(1),
  projectId: Type.Integer(),
  number: Type.Integer({ minimum: 1 }),
  /** SHA-256, in hex, of that receipt as it is served. */
  receiptHash: Type.String(),
  anchoredAt: Instant,
})
export type AnchorStatement = Static<typeof AnchorStatement>

export const getReceipt = endpoint('getReceipt', 'GET', '/v1/deletion-jobs/:id/receipt', {
  summary: 'Read the signed receipt of a completed deletion job',
  description:
    'A compact JWS (EdDSA, Ed25519); its public keys are at /.well-known/jwks.json. `lethe receipt verify` checks it offline.',
  tags: ['deletion jobs'],
  params: Type.Object({ id: Type.String() }),
  querystring: Exactly({}),
  response: {
    200: Type.Object({
      receipt: Type.String({ description: 'A compact JWS.' }),
      purge: OrNull(Type.String(), {
        description:
          'A second compact JWS, issued once the database files hold nothing of the person; null until then.',
      }),
    }),
    ...apiErrors('invalid_request', 'deletion_job_not_found', 'receipt_not_found'),
  },
})

export const PublicKeys = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String(),
      kid: Type.String(),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
    }),
  ),
})
export type PublicKeys = Static<typeof PublicKeys>

export const getPublicKeys = endpoint('getPublicKeys', 'GET', '/.well-known/jwks.json', {
  summary: 'Read the public keys that verify receipts, as a JSON Web Key Set',
  tags: ['deletion jobs'],
  security: [],
  querystring: Done,
  response: { 200: PublicKeys, ...errors('internal_error', 'unavailable') },
})
