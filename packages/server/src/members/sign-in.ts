import type { AuditAction } from '@lethe/contract/dashboard-system.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { addressRangeOf, networkOf } from '../http/network.ts'
import type { Db, Sql } from '../sql.ts'
import { takingTurns } from '../turns.ts'
import { writeAudit } from './audit-store.ts'
import { headersOf } from './authenticate.ts'
import { cookieOf, cookiePrefix, relayCookies } from './cookies.ts'
import { knowBrowser } from './known-browser.ts'
import type { SignIn } from './open-sign-in.ts'
import {
  findMember,
  findMemberByEmail,
  findWaitingMember,
  keepSignIn,
  noteProof,
  noteSignIn,
  readPasswordHash,
} from './store.ts'

interface Parts {
  db: Db
  signIn: SignIn
  publicUrl: string
}

/** Checking a password takes 100 ms of processor time, and anybody can send one. */
const passwordInTurn = takingTurns(1)

/**
 * Signs a member in; returns `code` if a code is needed too. Refuses with credentials_wrong, with the
 * same message and the same work whether or not the member exists.
 */
export async function signInByPassword(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  credentials: { email: string; password: string },
): Promise<'done' | 'code'> {
  const { email } = credentials
  const { api } = await parts.signIn()
  const passwordHash = await readPasswordHash(parts.db.sql, email)
  const response = await passwordInTurn(networkOf(request.ip), () =>
    api.signInEmail({ body: credentials, headers: headersOf(request), asResponse: true }),
  ).catch(unlessRemoved)
  if (!response?.ok) {
    const member = await findMemberByEmail(parts.db.sql, email)
    // Unknown emails are not logged: anybody could fill the log with them.
    if (member) await noteFailure(parts.db.sql, request, 'member.sign_in_failed', member)
    throw wrongPassword()
  }
  const { user, token } = (await response.json()) as { user?: { id: string }; token?: string }
  await refuseUnlessCurrent(parts, { email, passwordHash, token }, wrongPassword)
  relayCookies(response.headers, request, reply)
  if (user === undefined || token === undefined) return 'code'
  await completeSignIn(parts, request, reply, { memberId: user.id, token })
  return 'done'
}

function wrongPassword(): ApiError {
  return new ApiError('credentials_wrong', 'The email or the password is wrong.')
}

/** For `.catch`: returns undefined if the member was removed during the sign-in. */
export function unlessRemoved(error: unknown): undefined {
  if ((error as { code?: string }).code !== foreignKeyViolation) throw error
}

const foreignKeyViolation = '23503'

/** Refuses a sign-in during which the password was changed. Its cookie was not sent yet. */
export async function refuseUnlessCurrent(
  { db }: Pick<Parts, 'db'>,
  begun: { email: string; passwordHash: string | undefined; token: string | undefined },
  refusal: () => ApiError,
): Promise<void> {
  const { email, passwordHash = '', token = '' } = begun
  if (!(await keepSignIn(db.sql, { email, passwordHash, token }))) throw refusal()
}

/** What follows after a sign-in with all factors. */
export async function completeSignIn(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  { memberId, token }: { memberId: string; token: string },
): Promise<void> {
  const { sql } = parts.db
  await noteProof(sql, { token })
  await noteSignIn(sql, memberId)
  const member = await findMember(sql, memberId)
  if (member) await knowBrowser(parts, request, reply, member.email)
  const subject = { kind: 'member', id: memberId } as const
  const addressRange = addressRangeOf(request.ip)
  await writeAudit(sql, { action: 'member.signed_in', memberId, addressRange, subject })
}

/** The name that better-auth gives to the cookie of a sign-in that waits for its code. */
const waitingCookie = 'two_factor'

/** The member whose sign-in waits for a code in this browser, and the cookie of that sign-in. */
export async function waitingSignInOf({ db, publicUrl }: Parts, request: FastifyRequest) {
  const value = cookieOf(request, publicUrl, waitingCookie)
  if (value === undefined) return undefined
  // Only letters and digits, so not encoded; better-auth checks the signature that follows.
  const [identifier = ''] = value.split('.')
  const member = await findWaitingMember(db.sql, identifier)
  return member && { member, cookie: `${cookiePrefix(publicUrl)}.${waitingCookie}=${value}` }
}

type Failure = Extract<AuditAction, `member.${string}_failed`>

/** Logs a failed attempt. The entry names no actor, because the identity was not proved. */
export async function noteFailure(
  sql: Sql,
  request: FastifyRequest,
  action: Failure,
  { id, email }: { id: string; email: string },
): Promise<void> {
  await writeAudit(sql, {
    action,
    memberId: null,
    addressRange: addressRangeOf(request.ip),
    subject: { kind: 'member', id },
    details: { email },
  })
}
