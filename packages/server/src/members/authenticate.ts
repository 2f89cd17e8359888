import type { Role } from '@lethe/contract/dashboard-members.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { addressHeader, type SignIn } from './sign-in.ts'

/** The member a request comes from, as the database has them at this moment. */
export interface SignedIn {
  memberId: string
  signInId: string
  role: Role
  mayDeletePersons: boolean
}

/** Who a request's cookie says it is from; undefined for nobody. */
export async function signedInOf(
  signIn: SignIn,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SignedIn | undefined> {
  if (!request.headers.cookie) return undefined
  const { headers, response } = await signIn.api.getSession({
    headers: headersOf(request),
    returnHeaders: true,
  })
  // A sign-in in use is prolonged, its cookie too.
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

/** What better-auth gets to see of a request. */
export function headersOf(request: FastifyRequest): Headers {
  const headers = new Headers({ [addressHeader]: request.ip })
  for (const name of ['cookie', 'user-agent'] as const) {
    const value = request.headers[name]
    if (value !== undefined) headers.set(name, value.slice(0, 4_096))
  }
  return headers
}

export function relayCookies(from: Headers, request: FastifyRequest, reply: FastifyReply): void {
  const isHttps = request.protocol === 'https' || request.headers.origin?.startsWith('https://')
  for (const cookie of from.getSetCookie()) {
    reply.header('set-cookie', isHttps ? `${cookie}; Secure` : cookie)
  }
}
