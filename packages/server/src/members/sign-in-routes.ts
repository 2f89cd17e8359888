import {
  getMe,
  type PasskeyAnswer,
  signIn as signInEndpoint,
  signInWithCode,
  signOut,
} from '@lethe/contract/dashboard-members.ts'
import { replayUrlFor } from '@lethe/contract/dashboard-replay.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { permissionsOf } from './access.ts'
import { headersOf } from './authenticate.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { relayCookies } from './cookies.ts'
import { knownBrowserOf } from './known-browser.ts'
import { publicUrlOf } from './origin.ts'
import { isProvenByPasskey } from './passkeys.ts'
import { tryCode } from './proofs.ts'
import {
  completeSignIn,
  noteFailure,
  refuseUnlessCurrent,
  signInByPassword,
  unlessRemoved,
  waitingSignInOf,
} from './sign-in.ts'
import { findMember, hasOwner, readPasswordHash } from './store.ts'
import { limitCodes, limitSignIns } from './tries.ts'

export function signInRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, signIn } = context

  app.route({
    ...getMe,
    handler: async (request) => {
      const { signedIn } = request
      const member = signedIn ? await findMember(db.short, signedIn.memberId) : undefined
      return {
        member: member ?? null,
        permissions: member ? permissionsOf(member) : [],
        isSetUpNeeded: !member && !(await hasOwner(db.short)),
        publicUrl: publicUrlOf(request, context.publicUrl),
        replayUrl: replayUrlFor(context.replayUrl, request.protocol, request.host),
        version: member ? context.version : '',
      }
    },
  })

  app.route({
    ...signInEndpoint,
    handler: async (request, reply) => {
      const { password } = request.body
      const email = request.body.email.toLowerCase()
      const browser = await knownBrowserOf(context, request, email)
      await limitSignIns(db.sql, { address: request.ip, email, browser })
      return { next: await signInByPassword(context, request, reply, { email, password }) }
    },
  })

  app.route({
    ...signInWithCode,
    handler: async (request, reply) => {
      const waiting = await waitingSignInOf(context, request)
      if (!waiting) throw wrongCode()
      const { member, cookie } = waiting
      const { email } = member
      const passwordHash = await readPasswordHash(db.sql, email)
      const browser = await knownBrowserOf(context, request, email)
      await limitCodes(db.sql, { memberId: member.id, browser })
      // Only the cookie of the waiting sign-in, not that of an existing one.
      const given = { ...request.body, cookie, memberId: member.id }
      const response = await tryFactor(context, request, given).catch(unlessRemoved)
      if (!response?.ok) {
        if (response) relayCookies(response.headers, request, reply)
        await noteFailure(db.sql, request, 'member.second_factor_failed', member)
        throw wrongCode()
      }
      const { token } = (await response.json()) as { token: string }
      await refuseUnlessCurrent(context, { email, passwordHash, token }, wrongCode)
      relayCookies(response.headers, request, reply)
      await completeSignIn(context, request, reply, { memberId: member.id, token })
      return {}
    },
  })

  app.route({
    ...signOut,
    handler: async (request, reply) => {
      const response = await (await signIn()).api.signOut({
        headers: headersOf(request),
        asResponse: true,
      })
      relayCookies(response.headers, request, reply)
      return {}
    },
  })
}

interface Given {
  code?: string
  passkey?: PasskeyAnswer
  cookie: string
  memberId: string
}

/** Completes the sign-in with a code or a passkey; returns better-auth's response. */
async function tryFactor(
  context: DashboardContext,
  request: FastifyRequest,
  { code, passkey, cookie, memberId }: Given,
): Promise<Response | undefined> {
  const headers = headersOf(request, cookie)
  if (code !== undefined) return tryCode(context, headers, memberId, code)
  if (!passkey || !(await isProvenByPasskey(context, request, memberId, passkey))) {
    return undefined
  }
  return (await context.signIn()).api.completeSignIn({ headers, asResponse: true })
}

function wrongCode(): ApiError {
  return new ApiError(
    'credentials_wrong',
    'The code is wrong or was used before, or the sign-in took too long: sign in again.',
  )
}
