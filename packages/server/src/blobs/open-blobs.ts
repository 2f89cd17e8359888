import { BlobFault, type Blobs } from './blobs.ts'
import { openFolder } from './filesystem.ts'

export interface BlobsOptions {
  /** `s3://bucket` or `s3://bucket/prefix`. The folder is used if it is not set. */
  url?: string
  /** An S3 server other than AWS, `https://host:port`. The path then contains the bucket's name. */
  endpoint?: string
  /** Created if it is missing. */
  folder: string
}

/** Opens the store without sending a request; `check()` tests it. */
export async function openBlobs(options: BlobsOptions): Promise<Blobs> {
  if (options.url === undefined) return openFolder(options.folder)
  // The AWS SDK is slow to load, and most installations never need it.
  const { openBucket } = await import('./s3.ts')
  return openBucket({ url: options.url, ...(options.endpoint && { endpoint: options.endpoint }) })
}

/** Expected by callers, and no faults of the store. */
const expected = new Set(['blob_missing', 'prefix_gone', 'aborted', 'invalid_key'])

/** Returns the same store, which calls `onFault` with the code of each fault. */
export function observed(blobs: Blobs, onFault: (code: string) => void): Blobs {
  const note = (error: unknown): never => {
    const code = error instanceof BlobFault ? error.code : 'failed'
    if (!expected.has(code)) onFault(code)
    throw error
  }
  return {
    open: (prefix) => blobs.open(prefix).catch(note),
    put: (key, bytes, signal) => blobs.put(key, bytes, signal).catch(note),
    get: (key, signal) => blobs.get(key, signal).catch(note),
    delete: (keys, signal) => blobs.delete(keys, signal).catch(note),
    deletePrefix: (prefix, options) => blobs.deletePrefix(prefix, options).catch(note),
    visit: (prefix, onKeys, signal) => blobs.visit(prefix, onKeys, signal).catch(note),
    isEmpty: (prefix, signal) => blobs.isEmpty(prefix, signal).catch(note),
    async *list(prefix) {
      try {
        yield* blobs.list(prefix)
      } catch (error) {
        note(error)
      }
    },
    check: () => blobs.check().catch(note),
    close: () => blobs.close(),
  }
}
