import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Log } from '../log.ts'
import { DatabaseUnreachable } from '../sql.ts'

/** Turns anything thrown into the common error shape; the message of a fault is not sent. */
export function errorHandler(log: Log) {
  return (error: FastifyError | ApiError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'unavailable') noteOutage(request, error)
    if (refusal.code === 'internal_error') {
      log.fault('request.fault', error, {
        requestId: request.id,
        route: request.routeOptions.url ?? 'unknown',
        method: request.method,
      })
    }
    return sendError(reply, request, refusal)
  }
}

/** The error code of requests that failed because of an outage, for the log. */
const outages = new WeakMap<FastifyRequest, string>()

function noteOutage(request: FastifyRequest, error: Error): void {
  const { code } = (error.cause ?? error) as { code?: unknown }
  outages.set(request, typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'away')
}

export function outageOf(request: FastifyRequest): string | undefined {
  return outages.get(request)
}

export function sendError(reply: FastifyReply, request: FastifyRequest, refusal: ApiError) {
  return reply
    .code(refusal.status)
    .headers({
      'x-request-id': request.id,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...refusal.headers,
    })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(refusal.body(request.id)))
}

/** Refusals by Fastify, with our messages: its own may repeat parts of the request. */
const refusals: Record<string, () => ApiError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new ApiError('payload_too_large', 'The body is larger than 1 MiB.'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new ApiError('unsupported_media_type', 'Send the body as application/json in UTF-8.'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new ApiError('invalid_request', 'The length of the body differs from Content-Length.'),
  FST_ERR_MAX_PARAM_LENGTH: () => new ApiError('uri_too_long', 'The URL is too long.'),
}

export function refusalOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  const known = code === undefined ? undefined : refusals[code]
  if (known) return known()
  // Checked first: a client's aborted body also has a code of the socket.
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new ApiError('invalid_request', 'The request is not valid.', { cause: error })
  }
  if (isUnavailable(error)) {
    return new ApiError('unavailable', 'The database cannot be reached; try again.', {
      headers: { 'retry-after': '1' },
      cause: error,
    })
  }
  return new ApiError('internal_error', 'An internal error occurred.', { cause: error })
}

const unavailableCodes =
  /^(?:08...|25006|57P0[1-5]|57014|53[0-9]..|55P03|40001|40P01|25P03|ECONN\w+|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOTFOUND)$/

/** Whether the database is down or too busy; false for a wrong statement. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnreachable) return true
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (typeof code === 'string') return unavailableCodes.test(code)
  // The driver's own connection errors have no codes.
  return (
    typeof message === 'string' &&
    /^(?:Connection terminated|Client has encountered a connection error|Query read timeout|Client was closed)/.test(
      message,
    )
  )
}
