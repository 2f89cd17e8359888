import { BlobFault, type BlobFaultCode } from './blobs.ts'
import { serverCode } from './s3-faults.ts'

/** Where the store is, as the settings say. */
export interface StorePlace {
  /** `s3://bucket/prefix`; empty for a folder. */
  url: string
  /** Empty for AWS. */
  endpoint: string
  folder: string
}

/** What an operator can do about a fault of the store; undefined for other errors. */
export function explainBlobFault(
  error: unknown,
  place: StorePlace,
): { words: string; passes: boolean } | undefined {
  if (!(error instanceof BlobFault)) return undefined
  const words = place.url === '' ? ofFolder(error, place.folder) : ofBucket(error, place)
  return { words, passes: error.code === 'unreachable' || error.code === 'timed_out' }
}

function ofFolder({ code, message }: BlobFault, folder: string): string {
  switch (code) {
    case 'store_full':
      return `The disk of ${folder} (DATA_DIR) is full: make room there.`
    case 'access_denied':
      return `This user cannot read and write ${folder} (DATA_DIR): make it the owner.`
    default:
      return `The blobs in ${folder} (DATA_DIR) cannot be used: ${message}`
  }
}

const ofCode: Partial<Record<BlobFaultCode, string>> = {
  timed_out:
    'does not respond in time: check the address in S3_ENDPOINT, the network and firewalls.',
  store_full: 'is full: raise its quota.',
  versions_hidden:
    'keeps versions of the bucket in BLOBS_URL but does not list them, so nothing could be erased: grant the credentials s3:ListBucketVersions, or use a bucket without versions.',
  bucket_missing: 'does not have the bucket named in BLOBS_URL: create it, or correct the name.',
}

const ofServerCode: Record<string, string> = {
  InvalidAccessKeyId: 'does not know AWS_ACCESS_KEY_ID: correct it.',
  SignatureDoesNotMatch: 'rejects AWS_SECRET_ACCESS_KEY: correct it.',
  AccessDenied:
    'refuses access to the bucket in BLOBS_URL: the credentials need to list, read, write and delete in it (docs/operate.md).',
  ECONNREFUSED: 'cannot be reached: nothing listens at the address in S3_ENDPOINT.',
  ENOTFOUND:
    'has a host name in S3_ENDPOINT that cannot be resolved: correct it, or check the DNS.',
  EAI_AGAIN:
    'has a host name in S3_ENDPOINT that cannot be resolved: correct it, or check the DNS.',
}

function ofBucket(error: BlobFault, { endpoint }: StorePlace): string {
  const given = serverCode(error.cause ?? {})
  const who = endpoint === '' ? 'The S3 server of AWS' : `The S3 server ${endpoint}`
  if (given === 'CredentialsProviderError') {
    return 'There are no credentials for the S3 server: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (docs/operate.md lists other ways).'
  }
  if (given === 'EPROTO' || /^ERR_SSL/.test(given)) {
    return `${who} does not use TLS: start S3_ENDPOINT with http://, or correct its port.`
  }
  if (/CERT|SELF_SIGNED/.test(given)) {
    return `${who} has a certificate from an unknown authority: set NODE_EXTRA_CA_CERTS to its root certificate.`
  }
  const known = ofServerCode[given] ?? ofCode[error.code]
  if (known) return `${who} ${known}`
  // Our own messages can be shown. Of the server's only the code is.
  return error.cause === undefined
    ? `${error.message} (BLOBS_URL, S3_ENDPOINT)`
    : `${who} cannot be used (${given}): check BLOBS_URL and S3_ENDPOINT.`
}
