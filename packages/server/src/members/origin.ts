import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'

/** The public address of the service: the setting or, if empty, from the request. */
export function publicUrlOf(request: FastifyRequest, setting: string): string {
  return setting === '' ? `${request.protocol}://${request.host}` : setting
}

/**
 * Refuses requests from pages of other origins. SameSite=Strict keeps out other sites; this also keeps
 * out other hosts and ports of the same site. Browsers always send the origin of a request that changes
 * something. Reads are refused too, because the audit log would name the member; `none` means that the
 * address was typed.
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
 * Only the host is compared: behind a proxy that ends TLS the scheme is unknown. Undefined for an
 * origin without a host, such as the `null` of a sandboxed frame.
 */
function hostOf(origin: string): string | undefined {
  return (URL.canParse(origin) && new URL(origin).host) || undefined
}
