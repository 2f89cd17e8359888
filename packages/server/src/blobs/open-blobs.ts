import type { Blobs } from './blobs.ts'
import { openFolder } from './filesystem.ts'

export interface BlobsOptions {
  /** `s3://bucket` or `s3://bucket/prefix`; without it the folder is used. */
  url?: string
  /** An S3 server other than AWS, `https://host:port`. Buckets are then named in the path. */
  endpoint?: string
  /** Made where it is missing. */
  folder: string
}

/** Opens the store without a request to it; `check()` says whether it works. */
export async function openBlobs(options: BlobsOptions): Promise<Blobs> {
  if (options.url === undefined) return openFolder(options.folder)
  // The SDK of AWS takes its time to load, and most installations never need it.
  const { openBucket } = await import('./s3.ts')
  return openBucket({ url: options.url, ...(options.endpoint && { endpoint: options.endpoint }) })
}
