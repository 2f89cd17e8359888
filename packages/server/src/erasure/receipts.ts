import { createHash, type KeyObject, randomBytes } from 'node:crypto'
import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import type { PurgeStatement, ReceiptStatement } from '@lethe/contract/receipt.ts'
import { CompactSign, compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import type { CompletedJob } from './job-leases.ts'
import type { LedgerKeys } from './ledger.ts'

/** The signing key of the installation. `publicKeys` contains its public key. */
export interface Signer {
  keyId: string
  key: KeyObject
  /** The MAC keys of the ledger's entries. */
  ledger: LedgerKeys
}

/** What the receipts of one transaction have in common. */
export interface Issued {
  projectId: number
  signer: Signer
  verifiedAt: string | null
  backupRetentionDays: number
}

const algorithm = 'EdDSA'
const mediaType = 'lethe-receipt+jws'
export const purgeMediaType = 'lethe-purge+jws'
export const anchorMediaType = 'lethe-anchor+jws'

/**
 * Writes the receipts of the jobs that this transaction completes. Locks the project's chain until
 * the commit, so that each receipt has exactly one successor.
 */
export async function issueReceipts(
  tx: Sql,
  completed: readonly CompletedJob[],
  issued: Issued,
): Promise<void> {
  const { projectId } = issued
  const chain = await extendChain(tx, projectId, completed.length)
  let { head } = chain
  let number = chain.length - completed.length
  const receipts: { jobId: string; number: number; jws: string }[] = []
  for (const { externalId, ...job } of completed) {
    number += 1
    const salt = randomBytes(16).toString('hex')
    const statement: ReceiptStatement = {
      version: 1,
      jobId: job.id,
      projectId,
      number,
      previousReceiptHash: head,
      externalIdHash: hashOfExternalId(salt, externalId),
      externalIdSalt: salt,
      keepRecordings: job.keepRecordings,
      createdAt: job.createdAt,
      startedAt: job.startedAt,
      completedAt: job.completedAt,
      attempts: job.attempts,
      removed: job.removed,
      earlierJobs: job.earlierJobs,
      recordingsVerifiedAt: issued.verifiedAt,
      backupRetentionDays: issued.backupRetentionDays,
    }
    const jws = await signStatement(issued.signer, statement, mediaType)
    head = hashOfReceipt(jws)
    receipts.push({ jobId: job.id, number, jws })
  }
  await tx`
    with receipt as (
      insert into receipts (project_id, job_id, number, jws)
      select ${projectId}, job_id, number, jws
      from unnest(
        ${receipts.map(({ jobId }) => jobId)}::uuid[],
        ${receipts.map(({ number }) => number)}::bigint[],
        ${receipts.map(({ jws }) => jws)}::text[]) as one (job_id, number, jws)
    )
    update receipt_chains set head = decode(${head}, 'hex') -- fault: receipt-chain
    where project_id = ${projectId}`
}

async function extendChain(tx: Sql, projectId: number, by: number) {
  const [chain] = await tx<{ length: number; head: string | null }>`
    insert into receipt_chains as chain (project_id, length)
    values (${projectId}, ${by})
    on conflict (project_id) do update set length = chain.length + excluded.length
    returning length::integer, encode(head, 'hex') as head`
  return chain as NonNullable<typeof chain>
}

export function signStatement(
  { key, keyId }: Signer,
  statement: object,
  typ: string,
): Promise<string> {
  return new CompactSign(new TextEncoder().encode(JSON.stringify(statement)))
    .setProtectedHeader({ alg: algorithm, typ, kid: keyId })
    .sign(key)
}

/** SHA-256, in hex, of a receipt as served. The next receipt of the project contains it. */
export function hashOfReceipt(jws: string): string {
  return createHash('sha256').update(jws).digest('hex')
}

export function hashOfExternalId(salt: string, externalId: string): string {
  return createHash('sha256').update(Buffer.from(salt, 'hex')).update(externalId).digest('hex')
}

/** A receipt is not genuine. The message says why, for the person who checks it. */
export class ReceiptRefused extends Error {
  override readonly name = 'ReceiptRefused'
}

/** Returns what a receipt signed by one of these keys states. Throws ReceiptRefused. */
export async function verifyReceipt(jws: string, keys: JSONWebKeySet): Promise<ReceiptStatement> {
  return (await verifyStatement(jws, keys, mediaType)) as ReceiptStatement
}

/** Returns the statement that no file contains the person, which must be for this receipt. */
export async function verifyPurge(
  jws: string,
  keys: JSONWebKeySet,
  receipt: string,
): Promise<PurgeStatement> {
  const statement = (await verifyStatement(jws, keys, purgeMediaType)) as PurgeStatement
  if (statement.receiptHash !== hashOfReceipt(receipt)) {
    throw new ReceiptRefused('The purge statement belongs to another receipt.')
  }
  return statement
}

/** Returns a statement of this type signed by one of these keys. Throws ReceiptRefused. */
export async function verifyStatement(
  jws: string,
  keys: JSONWebKeySet,
  typ: string,
): Promise<unknown> {
  // Some bits of the last character mean nothing. A statement must have one text, and so one hash.
  const signature = jws.slice(jws.lastIndexOf('.') + 1)
  if (Buffer.from(signature, 'base64url').toString('base64url') !== signature) {
    throw new ReceiptRefused('The receipt was changed: its signature is not in canonical form.')
  }
  try {
    const { payload, protectedHeader } = await compactVerify(jws, createLocalJWKSet(keys), {
      algorithms: [algorithm],
    })
    if (protectedHeader.typ !== typ) throw new Error('It states something else.')
    return JSON.parse(new TextDecoder().decode(payload))
  } catch (cause) {
    throw new ReceiptRefused(reasonOf(cause), { cause })
  }
}

function reasonOf(error: unknown): string {
  switch ((error as { code?: string }).code) {
    case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
      return 'The receipt was changed: its signature does not match.'
    case 'ERR_JWKS_NO_MATCHING_KEY':
      return 'The receipt was signed with a key that is not in the key set.'
    default:
      return 'This is not a receipt.'
  }
}

export async function findReceipt(
  sql: Sql,
  projectId: number,
  jobId: string,
): Promise<string | undefined> {
  const [receipt] = await sql<{ jws: string }>`
    select jws from receipts where project_id = ${projectId} and job_id = ${jobId}`
  return receipt?.jws
}

export async function existingReceipt(
  sql: Sql,
  projectId: number,
  { id, status }: Pick<DeletionJob, 'id' | 'status'>,
): Promise<string> {
  const receipt = await findReceipt(sql, projectId, id)
  if (receipt !== undefined) return receipt
  throw new ApiError(
    'receipt_not_found',
    status === 'failed'
      ? 'There is no receipt, because the job failed: request the deletion again.'
      : 'There is no receipt yet: it is issued when the job is completed.',
  )
}
