import { createHash } from 'node:crypto'
import { S3Client } from '@aws-sdk/client-s3'
import { BlobFault, prefixSegments } from './blobs.ts'
import { s3Fault } from './s3-faults.ts'

const attemptsMaximum = 3
const connectSeconds = 5
const socketsMaximum = 64

export interface BucketOptions {
  /** `s3://bucket` or `s3://bucket/prefix`. */
  url: string
  /** An S3 server other than AWS, `https://host:port`. */
  endpoint?: string
  /** The longest a request may take, including retries; default 30. */
  requestSeconds?: number
}

/** A bucket, the prefix of all keys in it (empty or ending with a slash), and what it supports. */
export interface Bucket {
  client: S3Client
  name: string
  base: string
  requestSeconds: number
  /** False once the server has said that it does not support it. */
  offers: { versions: boolean; bulkDelete: boolean; multipart: boolean }
}

/**
 * The SDK finds credentials and region in its usual order: environment, shared configuration, web
 * identity, container, instance. Throws `BlobFault`.
 */
export async function connectBucket(given: BucketOptions): Promise<Bucket> {
  const { url, endpoint, requestSeconds = 30 } = given
  const place = parseUrl(url)
  const options = {
    // A bucket named in the host needs its own DNS entry, which other servers rarely have.
    ...(endpoint && { endpoint, forcePathStyle: true }),
    // Other servers do not support the newer checksums and their trailers. The signature covers
    // uploads, and the seal covers what is read.
    requestChecksumCalculation: 'WHEN_REQUIRED' as const,
    responseChecksumValidation: 'WHEN_REQUIRED' as const,
    followRegionRedirects: true,
    maxAttempts: attemptsMaximum,
    requestHandler: {
      connectionTimeout: connectSeconds * 1_000,
      httpAgent: { maxSockets: socketsMaximum },
      httpsAgent: { maxSockets: socketsMaximum },
    },
  }
  let client = new S3Client(options)
  const region = await client.config.region().catch(() => undefined)
  if (!region) {
    if (!endpoint) throw new BlobFault('failed', 'No AWS region is set for the bucket.')
    // Other servers need it for the signature only and rarely check it.
    client = new S3Client({ ...options, region: 'us-east-1' })
  }
  addContentMd5(client)
  const offers = { versions: true, bulkDelete: true, multipart: true }
  return { client, ...place, requestSeconds, offers }
}

function parseUrl(url: string): Pick<Bucket, 'name' | 'base'> {
  const [, name, rest = ''] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? []
  if (!name) throw new BlobFault('failed', 'The URL of the blobs is not s3://bucket/prefix.')
  const base = rest === '' || rest.endsWith('/') ? rest : `${rest}/`
  if (base !== '') prefixSegments(base)
  return { name, base }
}

/** Some servers reject a bulk delete without Content-MD5, which the SDK no longer sends. */
function addContentMd5(client: S3Client): void {
  client.middlewareStack.add(
    (next, context) => (args) => {
      const request = args.request as { headers: Record<string, string>; body?: unknown }
      const { body } = request
      if (context.commandName === 'DeleteObjectsCommand' && isBytes(body)) {
        request.headers['content-md5'] = createHash('md5').update(body).digest('base64')
      }
      return next(args)
    },
    { step: 'build', name: 'letheContentMd5' },
  )
}

const isBytes = (body: unknown): body is string | Uint8Array =>
  typeof body === 'string' || body instanceof Uint8Array

/** Runs a request with a timeout that includes reading the body. Throws `BlobFault`. */
export async function request<T>(
  { requestSeconds }: Bucket,
  signal: AbortSignal | undefined,
  work: (options: { abortSignal: AbortSignal }) => Promise<T>,
): Promise<T> {
  // Not AbortSignal.timeout: its timer cannot be cleared when the response has come.
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), requestSeconds * 1_000)
  const abortSignal = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal
  try {
    abortSignal.throwIfAborted()
    return await work({ abortSignal })
  } catch (error) {
    throw s3Fault(error, signal, deadline.signal)
  } finally {
    clearTimeout(timer)
  }
}
