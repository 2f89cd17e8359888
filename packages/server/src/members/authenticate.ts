import type { Role } from '@lethe/contract/dashboard-members.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { addressHeader, addressRangeOf } from '../http/network.ts'
import type { DashboardContext } from './context.ts'
import { cookiesOf, relayCookies } from './cookies.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in member; null if nobody is signed in. */
    signedIn: SignedIn | null
  }
}

/** The member of a request, as the database has them now. */
export interface SignedIn {
  memberId: string
  signInId: string
  role: Role
  mayDeletePersons: boolean
}

/**
 * Finds the member of a request's cookie. Refuses two cookies: another site of the domain could
 * otherwise make a member work in somebody else's sign-in.
 */
export async function signedInOf(
  { signIn, publicUrl }: Pick<DashboardContext, 'signIn' | 'publicUrl'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SignedIn | undefined> {
  if (!request.headers.cookie) return undefined
  if (new Set(cookiesOf(request, publicUrl, 'session_token')).size > 1) {
    throw new ApiError(
      'unauthorized',
      'The browser sent two sign-ins, of which another site of this domain may have set one. Delete the cookies of this site and sign in again.',
    )
  }
  const { api } = await signIn()
  const { headers, response } = await api
    .getSession({ headers: headersOf(request), returnHeaders: true })
    .catch((error: Error) => {
      // better-auth wraps a fault of the database in an error of its own.
      throw error.cause ?? error
    })
  // A sign-in in use is extended, and so is its cookie.
  relayCookies(headers, request, reply)
  if (!response) return undefined
  const { user, session } = response
  return {
    memberId: user.id,
    signInId: session.id,
    role: user.role as Role,
    mayDeletePersons: user.mayDeletePersons,
  }
}

/** The member of a request to a route that requires one. */
export function memberOf({ signedIn }: FastifyRequest): SignedIn {
  if (!signedIn) throw new ApiError('unauthorized', 'Sign in first.')
  return signedIn
}

/** Who did something, and from where, for the audit log. */
export interface Actor {
  memberId: string
  addressRange: string
}

export function actorOf(request: FastifyRequest): Actor {
  return { memberId: memberOf(request).memberId, addressRange: addressRangeOf(request.ip) }
}

/** The headers of a request that better-auth gets. */
export function headersOf(
  { headers, ip }: FastifyRequest,
  cookie: string | undefined = headers.cookie,
): Headers {
  const { 'user-agent': agent } = headers
  return new Headers({
    [addressHeader]: ip,
    ...(cookie !== undefined && { cookie }),
    ...(agent !== undefined && { 'user-agent': agent.slice(0, 500) }),
  })
}
