import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'

/** Where the service is reached from outside: what is set, or else what the request says. */
export function publicUrlOf(request: FastifyRequest, setting: string): string {
  return setting === '' ? `${request.protocol}://${request.host}` : setting
}

/**
 * Refuses a request that does not come from a page of this origin. SameSite=Strict keeps the cookie
 * away from other sites, this keeps out other hosts and ports of the same site. Of a request that
 * changes something browsers always send the origin. What reads shows nothing to another page, but
 * the audit log would name the member for it; `none` is an address that somebody has typed.
 */
export function refuseForeignOrigin(request: FastifyRequest, setting: string): void {
  const { origin, 'sec-fetch-site': site = 'same-origin' } = request.headers
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const isFromHere =
    isRead ||
    (origin !== undefined &&
      (setting === '' ? hostOf(origin) === request.host : origin === new URL(setting).origin))
  if (isFromHere && (site === 'same-origin' || (isRead && site === 'none'))) return
  throw new ApiError(
    'forbidden',
    setting === ''
      ? 'Only pages of the dashboard can make this request.'
      : 'Only pages of the dashboard at its public address (PUBLIC_URL) can make this request.',
  )
}

/**
 * Of a page behind a proxy that ends TLS the scheme is not known here, and need not be. An origin
 * without a host, as the `null` of a sandboxed frame, is nobody's.
 */
function hostOf(origin: string): string | undefined {
  return (URL.canParse(origin) && new URL(origin).host) || undefined
}
