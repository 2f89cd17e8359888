import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookieOf, setCookie } from './cookies.ts'
import type { SignIn } from './open-sign-in.ts'

/**
 * A browser that a member has signed in with keeps a cookie that says so. It signs nobody in, but its
 * attempts have a limit of their own, so that strangers who try passwords lock no member out.
 */
const days = 180

interface Parts {
  signIn: SignIn
  publicUrl: string
}

/** The id by which attempts of a known browser are counted; undefined for other browsers. */
export async function knownBrowserOf(
  { signIn, publicUrl }: Parts,
  request: FastifyRequest,
  email: string,
): Promise<string | undefined> {
  const value = cookieOf(request, publicUrl, nameFor(email))
  const [nonce = '', mac = ''] = value?.split('.') ?? []
  if (nonce === '') return undefined
  const expected = await macOf(signIn, email, nonce)
  const given = Buffer.from(mac, 'base64url')
  return given.length === expected.length && timingSafeEqual(given, expected) ? nonce : undefined
}

/** Makes the browser known after a completed sign-in. */
export async function knowBrowser(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  email: string,
): Promise<void> {
  if ((await knownBrowserOf(parts, request, email)) !== undefined) return
  const nonce = randomBytes(16).toString('base64url')
  const mac = (await macOf(parts.signIn, email, nonce)).toString('base64url')
  setCookie(request, reply, parts.publicUrl, {
    name: nameFor(email),
    value: `${nonce}.${mac}`,
    seconds: days * 86_400,
  })
}

/** A cookie per member, because several can share a browser. */
function nameFor(email: string): string {
  return `browser_${hash('sha256', email).slice(0, 12)}`
}

async function macOf(signIn: SignIn, email: string, nonce: string): Promise<Buffer> {
  const { secret } = await (await signIn()).$context
  return createHmac('sha256', secret).update(`known browser ${email} ${nonce}`).digest()
}
