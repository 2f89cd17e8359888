import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import type { Proof } from './access.ts'
import { memberOf } from './authenticate.ts'
import { countTry, isProvenWithin } from './store.ts'
import { bucketOf } from './tries.ts'

/** How long it holds that a member has proved who they are. */
export const proofSeconds = 600

export function isRecentlyProven(sql: Sql, request: FastifyRequest): Promise<boolean> {
  return isProvenWithin(sql, memberOf(request).signInId, proofSeconds)
}

/**
 * Refuses what a stolen sign-in must not be enough for. Of deletions one person may go without a
 * proof; a second one within the same time needs it, however the requests divide them.
 */
export async function refuseUnlessProven(
  sql: Sql,
  request: FastifyRequest,
  proof: Proof,
): Promise<void> {
  if (await isRecentlyProven(sql, request)) return
  if (proof === 'recent for several') {
    const { personIds } = request.body as { personIds: string[] }
    if (new Set(personIds).size <= 1 && (await isFirstDeletion(sql, request))) return
  }
  throw new ApiError(
    'reauthentication_required',
    'Confirm your password first (POST /dashboard/v1/me/proof).',
  )
}

async function isFirstDeletion(sql: Sql, request: FastifyRequest): Promise<boolean> {
  const bucket = bucketOf('deletion without a proof', memberOf(request).signInId)
  return (await countTry(sql, bucket, proofSeconds)).tries === 1
}
