import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Instant, InstantOrNull } from './page.ts'

/**
 * What a receipt states, as the payload of its JWS. It holds no personal data: whose erasure it was
 * can only be checked by somebody who knows the externalId, with `externalIdHash`.
 */
export const ReceiptStatement = Type.Object(
  {
    version: Type.Literal(1),
    jobId: Type.String({ format: 'uuid' }),
    projectId: Type.Integer(),
    /** The receipts of a project are numbered from 1 on, without gaps. */
    number: Type.Integer({ minimum: 1 }),
    /** SHA-256, in hex, of the project's previous receipt as it is served; null in its first. */
    previousReceiptHash: Type.Union([Type.String(), Type.Null()]),
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
     * transactions that remove them. `blobs` and `bytes` are what the blob store reported: at
     * least so many, as an attempt that died may have removed some without noting them.
     */
    removed: Type.Object({
      sessions: Type.Integer(),
      chunks: Type.Integer(),
      blobs: Type.Integer(),
      bytes: Type.Integer(),
      browsers: Type.Integer(),
    }),
    /**
     * When the browsers' data keys, blobs, chunks and sessions were looked for and none was left;
     * null where the recordings are kept. The person and its links to browsers are gone since
     * `completedAt`, in one transaction.
     */
    recordingsVerifiedAt: InstantOrNull,
    /** How long backups of the database may still hold the person's row, as the operator set it. */
    backupRetentionDays: Type.Integer(),
  },
  { additionalProperties: false },
)
export type ReceiptStatement = Static<typeof ReceiptStatement>

export const getReceipt = {
  method: 'GET',
  url: '/v1/deletion-jobs/:id/receipt',
  schema: {
    operationId: 'getReceipt',
    summary: 'Read the signed receipt of a completed deletion job',
    description:
      'A compact JWS (EdDSA, Ed25519); its public keys are at /.well-known/jwks.json. `lethe receipt verify` checks it offline.',
    tags: ['deletion jobs'],
    params: Type.Object({ id: Type.String() }),
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: Type.Object({ receipt: Type.String({ description: 'A compact JWS.' }) }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'deletion_job_not_found',
        'receipt_not_found',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

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

export const getPublicKeys = {
  method: 'GET',
  url: '/.well-known/jwks.json',
  schema: {
    operationId: 'getPublicKeys',
    summary: 'Read the public keys of the receipts, as a JSON Web Key Set',
    tags: ['deletion jobs'],
    security: [],
    querystring: Type.Object({}),
    response: { 200: PublicKeys, ...errors('internal_error', 'unavailable') },
  },
} as const
