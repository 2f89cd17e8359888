import { createHash, type KeyObject, randomBytes } from 'node:crypto'
import type { ReceiptStatement } from '@lethe/contract/receipt.ts'
import { CompactSign, compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import type { Sql } from '../sql.ts'
import type { CompletedJob } from './attempts.ts'

/** Signs with the instance's key; the public one is in the set of `publicKeys`. */
export interface Signer {
  keyId: string
  key: KeyObject
}

const algorithm = 'EdDSA'
const mediaType = 'lethe-receipt+jws'

/**
 * Writes the receipt of a job that this transaction completes. The row of the project's chain is
 * locked from here to the commit, so that each receipt has exactly one successor.
 */
export async function issueReceipt(
  tx: Sql,
  { externalId, ...job }: CompletedJob,
  issued: { signer: Signer; verifiedAt: string | null; backupRetentionDays: number },
): Promise<void> {
  const { length, head } = await extendChain(tx, job.projectId)
  const salt = randomBytes(16).toString('hex')
  const statement: ReceiptStatement = {
    version: 1,
    jobId: job.id,
    projectId: job.projectId,
    number: length,
    previousReceiptHash: head,
    externalIdHash: hashOfExternalId(salt, externalId),
    externalIdSalt: salt,
    keepRecordings: job.keepRecordings,
    createdAt: job.createdAt,
    startedAt: job.startedAt,
    completedAt: job.completedAt,
    attempts: job.attempts,
    removed: job.removed,
    recordingsVerifiedAt: issued.verifiedAt,
    backupRetentionDays: issued.backupRetentionDays,
  }
  const jws = await sign(issued.signer, statement)
  await tx`
    with receipt as (
      insert into receipts (project_id, job_id, number, jws)
      values (${job.projectId}, ${job.id}, ${length}, ${jws})
    )
    update receipt_chains set head = decode(${hashOfReceipt(jws)}, 'hex')
    where project_id = ${job.projectId}`
}

async function extendChain(tx: Sql, projectId: number) {
  const [chain] = await tx<{ length: number; head: string | null }>`
    insert into receipt_chains as chain (project_id, length)
    values (${projectId}, 1)
    on conflict (project_id) do update set length = chain.length + 1
    returning length::integer, encode(head, 'hex') as head`
  return chain as NonNullable<typeof chain>
}

function sign({ key, keyId }: Signer, statement: ReceiptStatement): Promise<string> {
  return new CompactSign(new TextEncoder().encode(JSON.stringify(statement)))
    .setProtectedHeader({ alg: algorithm, typ: mediaType, kid: keyId })
    .sign(key)
}

/** SHA-256, in hex, of a receipt as it is served: what the next one of its project names. */
export function hashOfReceipt(jws: string): string {
  return createHash('sha256').update(jws).digest('hex')
}

export function hashOfExternalId(salt: string, externalId: string): string {
  return createHash('sha256').update(Buffer.from(salt, 'hex')).update(externalId).digest('hex')
}

/** Why a receipt is none, in words for whoever checks it. */
export class ReceiptRefused extends Error {
  override readonly name = 'ReceiptRefused'
}

/** What a receipt states, if it was signed by one of these keys. Throws ReceiptRefused. */
export async function verifyReceipt(jws: string, keys: JSONWebKeySet): Promise<ReceiptStatement> {
  try {
    const { payload } = await compactVerify(jws, createLocalJWKSet(keys), {
      algorithms: [algorithm],
    })
    return JSON.parse(new TextDecoder().decode(payload)) as ReceiptStatement
  } catch (cause) {
    throw new ReceiptRefused(reasonOf(cause), { cause })
  }
}

function reasonOf(error: unknown): string {
  switch ((error as { code?: string }).code) {
    case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
      return 'The receipt was changed: its signature does not fit.'
    case 'ERR_JWKS_NO_MATCHING_KEY':
      return 'The receipt was signed by a key that is not in the key set.'
    default:
      return 'This is no receipt.'
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
