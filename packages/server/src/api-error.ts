import {
  type ErrorBody,
  type ErrorCode,
  type ErrorDetail,
  errorStatus,
} from '@lethe/contract/errors.ts'

/**
 * A refusal: an error response for the caller. Any other error reaches the caller as internal_error,
 * without its message. Messages and details never repeat what was sent.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ErrorCode
  readonly details: ErrorDetail[] | undefined
  readonly headers: Record<string, string>

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: ErrorDetail[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.details = options.details
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return errorStatus[this.code]
  }

  body(requestId: string): ErrorBody {
    const { code, message, details } = this
    return { error: { code, message, ...(details && { details }), requestId } }
  }
}

/** An invalid_request at `path`, a JSON pointer to a field of the contract. */
export function invalid(path: string, issue: string): ApiError {
  return new ApiError('invalid_request', `${path === '' ? 'The request' : path}: ${issue}.`, {
    details: [{ path, issue }],
  })
}
