import type { FastifyReply, FastifyRequest } from 'fastify'
import { basePathOf } from '../http/base-path.ts'

/**
 * The prefix of all cookie names. For an https address it makes browsers require Secure, and, unless
 * the service has a path, a cookie for exactly this host.
 */
export function cookiePrefix(publicUrl: string): string {
  if (!isHttpsUrl(publicUrl)) return 'lethe'
  return basePathOf(publicUrl) === '' ? '__Host-lethe' : '__Secure-lethe'
}

export const cookiePath = (publicUrl: string) => basePathOf(publicUrl) || '/'

export function isHttpsUrl(publicUrl: string): boolean {
  return publicUrl.startsWith('https://')
}

export function cookieOf(
  request: FastifyRequest,
  publicUrl: string,
  name: string,
): string | undefined {
  return cookiesOf(request, publicUrl, name)[0]
}

/** More than one if another host of the domain, or a page at another path, has set one too. */
export function cookiesOf(request: FastifyRequest, publicUrl: string, name: string): string[] {
  const start = `${cookiePrefix(publicUrl)}.${name}=`
  const parts = (request.headers.cookie ?? '').split(';').map((part) => part.trim())
  return parts.filter((part) => part.startsWith(start)).map((part) => part.slice(start.length))
}

export function setCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  publicUrl: string,
  { name, value, seconds }: { name: string; value: string; seconds: number },
): void {
  const cookie = `${cookiePrefix(publicUrl)}.${name}=${value}; Max-Age=${seconds}`
  sendCookie(request, reply, `${cookie}; Path=${cookiePath(publicUrl)}; HttpOnly; SameSite=Strict`)
}

/** Passes the cookies of better-auth's response on to the browser. */
export function relayCookies(from: Headers, request: FastifyRequest, reply: FastifyReply): void {
  for (const cookie of from.getSetCookie()) sendCookie(request, reply, cookie)
}

/** Adds Secure if the public address is https, or the request came over https. */
function sendCookie(request: FastifyRequest, reply: FastifyReply, cookie: string): void {
  const { protocol, headers } = request
  // An untrusted proxy's header is fine here: it can only make the cookie stricter.
  const isSecure =
    /^__(?:Host|Secure)-/.test(cookie) ||
    protocol === 'https' ||
    headers.origin?.startsWith('https://') ||
    headers['x-forwarded-proto'] === 'https'
  reply.header('set-cookie', isSecure && !/; *secure/i.test(cookie) ? `${cookie}; Secure` : cookie)
}
