import { BlobFault, type BlobFaultCode, BlobMissing } from './blobs.ts'

const codes: Record<string, BlobFaultCode> = {
  NoSuchKey: 'blob_missing',
  NoSuchBucket: 'bucket_missing',
  QuotaExceeded: 'store_full',
  XMinioStorageFull: 'store_full',
  CredentialsProviderError: 'access_denied',
  AbortError: 'timed_out',
  TimeoutError: 'timed_out',
  RequestTimeout: 'timed_out',
  ECONNREFUSED: 'unreachable',
  ECONNRESET: 'unreachable',
  EPIPE: 'unreachable',
  ENOTFOUND: 'unreachable',
  EAI_AGAIN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'unreachable',
}

interface SdkError {
  name?: string
  Code?: string
  code?: string
  $metadata?: { httpStatusCode?: number }
}

/**
 * Turns an error of the SDK into a `BlobFault`. An aborted request may end with any error, so the
 * signals tell why: the caller's, or the timeout.
 */
export function s3Fault(error: unknown, signal?: AbortSignal, deadline?: AbortSignal): BlobFault {
  if (error instanceof BlobFault) return error
  if (signal?.aborted) {
    return new BlobFault('aborted', 'The operation on the blob store was aborted.', {
      cause: error,
    })
  }
  if (deadline?.aborted) {
    return new BlobFault('timed_out', 'The S3 server took too long.', { cause: error })
  }
  const code = faultCode(error)
  if (code === 'blob_missing') return new BlobMissing({ cause: error })
  const status = statusOf(error)
  const words = `The S3 server returned ${serverCode(error)}${status ? ` (${status})` : ''}.`
  return new BlobFault(code, words, { cause: error })
}

function faultCode(error: unknown): BlobFaultCode {
  const known = codes[serverCode(error)] ?? codes[(error as SdkError).code ?? '']
  if (known) return known
  const status = statusOf(error)
  if (status === 401 || status === 403) return 'access_denied'
  return status === 507 ? 'store_full' : 'failed'
}

/** The server does not support the request. Some say so only by status. */
export function isNotOffered(error: unknown): boolean {
  const cause = error instanceof BlobFault ? error.cause : error
  const status = statusOf(cause)
  return serverCode(cause) === 'NotImplemented' || status === 501 || status === 405
}

/** The server's error code, safe to print. */
export function serverCode(error: unknown): string {
  const { Code, code, name } = error as SdkError
  const words = Code ?? code ?? name ?? ''
  return /^[A-Za-z0-9._-]{1,64}$/.test(words) ? words : 'an error'
}

const statusOf = (error: unknown) => (error as SdkError | undefined)?.$metadata?.httpStatusCode
