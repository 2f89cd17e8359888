import type { Member, PasskeyAnswer } from '@lethe/contract/dashboard-members.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import type { Proof } from './access.ts'
import { headersOf, memberOf } from './authenticate.ts'
import type { DashboardContext } from './context.ts'
import { isProvenByPasskey } from './passkeys.ts'
import { noteFailure } from './sign-in.ts'
import { countTry, findMember, isProvenWithin } from './store.ts'
import { bucketOf, limitProofs } from './tries.ts'

/** Longer than a code is valid, including the previous and the next one. */
const codeSeconds = 300

/**
 * Checks the password of the signed-in member, and a code or passkey if there is a second factor.
 * Refuses with credentials_wrong and logs the failure.
 */
export async function prove(
  context: DashboardContext,
  request: FastifyRequest,
  { password, code, passkey }: { password: string; code?: string; passkey?: PasskeyAnswer },
): Promise<Member> {
  const { db, signIn } = context
  const { memberId, signInId } = memberOf(request)
  const member = await findMember(db.sql, memberId)
  if (!member) throw new ApiError('unauthorized', 'This member was removed.')
  await limitProofs(db.sql, signInId)
  const headers = headersOf(request)
  const response = await (await signIn()).api.verifyPassword({
    body: { password },
    headers,
    asResponse: true,
  })
  if (!(await isAccepted(response))) {
    await noteFailure(db.sql, request, 'member.password_failed', member)
    throw new ApiError('credentials_wrong', 'The password is wrong.')
  }
  if (!member.hasSecondFactor) return member
  const tried = code === undefined ? undefined : await tryCode(context, headers, memberId, code)
  if (tried && (await isAccepted(tried))) return member
  if (passkey && (await isProvenByPasskey(context, request, memberId, passkey))) return member
  await noteFailure(db.sql, request, 'member.second_factor_failed', member)
  throw new ApiError('credentials_wrong', 'The code is wrong, or it was used before.')
}

async function isAccepted(response: Response): Promise<boolean> {
  if (response.ok) return true
  refuseUnread((await response.json()) as { code?: string })
  return false
}

/**
 * Throws `unavailable` if better-auth refused because it found no sign-in. The request was let in by
 * one just before, and better-auth does the same if the database fails while it reads the sign-in.
 */
export function refuseUnread({ code = '' }: { code?: string }): void {
  if (!['UNAUTHORIZED', 'INVALID_TWO_FACTOR_COOKIE'].includes(code)) return
  throw new ApiError('unavailable', 'The sign-in could not be read; try again.', {
    headers: { 'retry-after': '1' },
  })
}

/**
 * Checks a code of the authenticator or a recovery code; returns better-auth's response. Returns
 * undefined for a code of the authenticator that was tried before: each works only once.
 */
export async function tryCode(
  { db, signIn }: DashboardContext,
  headers: Headers,
  memberId: string,
  text: string,
): Promise<Response | undefined> {
  const code = text.replaceAll(/\s/g, '')
  const { api } = await signIn()
  if (!/^\d{6}$/.test(code)) {
    return api.verifyBackupCode({ body: { code }, headers, asResponse: true })
  }
  const bucket = bucketOf('code', `${memberId} ${code}`)
  if ((await countTry(db.sql, bucket, codeSeconds)).tries > 1) return undefined
  return api.verifyTOTP({ body: { code }, headers, asResponse: true })
}

/** How long a proof is valid. */
export const proofSeconds = 600

export function isRecentlyProven(sql: Sql, request: FastifyRequest): Promise<boolean> {
  return isProvenWithin(sql, memberOf(request).signInId, proofSeconds)
}

/**
 * Refuses a request that needs a recent proof. With `recent for several`, one person may be deleted
 * without it; a second one within the same time needs it, also in another request.
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
