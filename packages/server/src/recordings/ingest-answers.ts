import type { ErrorCode } from '@lethe/contract/errors.ts'
import type { IngestErrorBody, Next } from '@lethe/contract/ingest.ts'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { BlobFault } from '../blobs/blobs.ts'
import { refusalOf } from '../http/errors.ts'
import type { Log } from '../log.ts'

/** A refusal that says what the SDK does next; for others the code decides. */
export class IngestRefusal extends ApiError {
  readonly next: Next

  constructor(
    code: ErrorCode,
    message: string,
    options: { next: Next; headers?: Record<string, string> },
  ) {
    super(code, message, { headers: options.headers ?? {} })
    this.next = options.next
  }
}

export function browserRetired(): ApiError {
  return new ApiError('browser_retired', 'Start again, as a new browser.')
}

/** Other codes mean an invalid request, which would be refused again. */
const nextByCode: Partial<Record<ErrorCode, Next>> = {
  unauthorized: 'stop',
  forbidden: 'stop',
  not_found: 'stop',
  method_not_allowed: 'stop',
  browser_retired: 'new_browser',
  chunk_in_flight: 'retry',
  request_timeout: 'retry',
  rate_limited: 'retry',
  internal_error: 'retry',
  unavailable: 'retry',
}

const retrySecondsDefault = 5

/**
 * Lets every page read responses, without credentials. Refusals need this too: otherwise the SDK could
 * not read what to do next.
 */
export const openToPages = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'retry-after, x-request-id',
  'cross-origin-resource-policy': 'cross-origin',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

/** Sends errors in the common shape, with what the SDK does next. */
export function ingestErrorHandler(log: Log) {
  return (error: FastifyError | ApiError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = refusalOfIngest(error)
    if (refusal.status >= 500) {
      log.fault('ingest.fault', refusal.cause ?? error, {
        requestId: request.id,
        route: request.routeOptions.url ?? 'unknown',
        method: request.method,
        ...(request.projectIdIfAny !== undefined && { projectId: request.projectIdIfAny }),
      })
    }
    const next = nextOf(refusal)
    const retryAfterSeconds =
      next === 'retry' ? Number(refusal.headers['retry-after'] ?? retrySecondsDefault) : undefined
    const body: IngestErrorBody = {
      ...refusal.body(request.id),
      next,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    }
    return reply
      .code(refusal.status)
      .headers({
        ...refusal.headers,
        ...openToPages,
        ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
      })
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(body))
  }
}

function nextOf(refusal: ApiError): Next {
  if (refusal instanceof IngestRefusal) return refusal.next
  return nextByCode[refusal.code] ?? 'continue'
}

function refusalOfIngest(error: FastifyError | ApiError): ApiError {
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ApiError('payload_too_large', 'The body is larger than this endpoint accepts.')
  }
  if ((error as Error) instanceof BlobFault) {
    return new ApiError('unavailable', 'Recordings cannot be stored at the moment; try again.', {
      headers: { 'retry-after': '10' },
      cause: error,
    })
  }
  return refusalOf(error)
}
