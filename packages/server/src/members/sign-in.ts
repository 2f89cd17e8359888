import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { writeAudit } from '../dashboard/audit-store.ts'
import type { Db, Sql } from '../sql.ts'
import { headersOf, relayCookies } from './authenticate.ts'
import type { SignIn } from './open-sign-in.ts'
import { findMemberByEmail, noteSignIn } from './store.ts'

/**
 * Signs a member in, or answers that a code is needed too. Refuses with credentials_wrong, in the
 * same words and after the same work whether or not there is such a member.
 */
export async function signInByPassword(
  { db, signIn }: { db: Db; signIn: SignIn },
  request: FastifyRequest,
  reply: FastifyReply,
  credentials: { email: string; password: string },
): Promise<'done' | 'code'> {
  const answer = await (await signIn()).api.signInEmail({
    body: credentials,
    headers: headersOf(request),
    asResponse: true,
  })
  if (!answer.ok) {
    await noteFailure(db.sql, credentials.email)
    throw new ApiError('credentials_wrong', 'The e-mail or the password is wrong.')
  }
  relayCookies(answer.headers, request, reply)
  const { user } = (await answer.json()) as { user?: { id: string } }
  if (user === undefined) return 'code'
  await noteSignedIn(db.sql, user.id)
  return 'done'
}

export async function noteSignedIn(sql: Sql, memberId: string): Promise<void> {
  await noteSignIn(sql, memberId)
  const subject = { kind: 'member', id: memberId } as const
  await writeAudit(sql, { action: 'member.signed_in', memberId, subject })
}

/** Who is no member leaves no entry: anybody could fill the log with those. */
async function noteFailure(sql: Sql, email: string): Promise<void> {
  const member = await findMemberByEmail(sql, email)
  if (!member) return
  const subject = { kind: 'member', id: member.id } as const
  const details = { email: member.email }
  await writeAudit(sql, { action: 'member.sign_in_failed', memberId: null, subject, details })
}
