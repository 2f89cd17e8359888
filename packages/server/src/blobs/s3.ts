import type { Readable } from 'node:stream'
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { inLanes } from '../lanes.ts'
import {
  BlobFault,
  type Blobs,
  type BlobsRemark,
  blobBytesMaximum,
  keySegments,
  notABlob,
  type OnKeys,
  prefixSegments,
  probe,
} from './blobs.ts'
import { type Bucket, type BucketOptions, connectBucket, request } from './s3-bucket.ts'
import { isNotOffered } from './s3-faults.ts'
import { type Listing, objectPages, type Stored, uploadPages, versionPages } from './s3-listing.ts'
import { assertUnversioned, removeAll, requestsAtOnce } from './s3-removal.ts'

/**
 * Stores blobs in a bucket of S3 or of a compatible server. Required permissions: PutObject,
 * GetObject, DeleteObject, DeleteObjectVersion, AbortMultipartUpload on the objects; ListBucket,
 * ListBucketVersions, ListBucketMultipartUploads on the bucket (GetBucketVersioning where versions
 * cannot be listed).
 *
 * What a server does not support is found at the first use and replaced: bulk deletes by single
 * ones, the listing of versions by the plain one, if the bucket says that it keeps no versions.
 */
export async function openBucket(options: BucketOptions): Promise<Blobs> {
  const bucket = await connectBucket(options)
  const named = (key: string) => `${bucket.base}${keySegments(key).join('/')}`
  const under = (prefix: string, segmentsMinimum?: number) =>
    `${bucket.base}${prefixSegments(prefix, segmentsMinimum).join('/')}/`
  const store: Omit<Blobs, 'check'> = {
    async open(prefix) {
      under(prefix)
    },
    put: async (key, bytes, signal) => put(bucket, named(key), bytes, signal),
    get: async (key, signal) => get(bucket, named(key), signal),
    async delete(keys, signal) {
      await inLanes(keys.map(named), requestsAtOnce, async (name) => {
        await removeAll(bucket, { prefix: name, only: name }, signal && { signal })
      })
    },
    deletePrefix: async (prefix, given) => removeAll(bucket, { prefix: under(prefix, 2) }, given),
    visit: async (prefix, onKeys, signal) =>
      visit({ bucket, prefix: under(prefix), ...(signal && { signal }) }, onKeys),
    isEmpty: async (prefix, signal) =>
      isEmpty({ bucket, prefix: under(prefix), pageMaximum: 1, ...(signal && { signal }) }),
    list: (prefix) => list(bucket, prefix, under),
    close: () => bucket.client.destroy(),
  }
  const check = async () => {
    await probe(store)
    return remarks(bucket)
  }
  return { ...store, check }
}

async function put(bucket: Bucket, name: string, bytes: Uint8Array, signal?: AbortSignal) {
  const command = new PutObjectCommand({
    Bucket: bucket.name,
    Key: name,
    Body: bytes,
    ContentType: 'application/octet-stream',
  })
  await request(bucket, signal, (options) => bucket.client.send(command, options))
}

async function get(bucket: Bucket, name: string, signal?: AbortSignal): Promise<Uint8Array> {
  const command = new GetObjectCommand({ Bucket: bucket.name, Key: name })
  return request(bucket, signal, async (options) => {
    const { Body, ContentLength = 0 } = await bucket.client.send(command, options)
    if (!Body) throw new BlobFault('failed', 'The S3 server responded without a body.')
    if (ContentLength > blobBytesMaximum) {
      ;(Body as Readable).destroy()
      throw notABlob()
    }
    return Body.transformToByteArray()
  })
}

/** Each listing must be complete and empty. */
async function isEmpty(listing: Listing): Promise<boolean> {
  if (!(await showsNothing(objectPages(listing)))) return false
  try {
    if (!(await showsNothing(versionPages(listing)))) return false
  } catch (error) {
    if (!isNotOffered(error)) throw error
    await assertUnversioned(listing.bucket, listing.signal)
  }
  try {
    return await showsNothing(uploadPages(listing))
  } catch (error) {
    if (!isNotOffered(error)) throw error
    return true
  }
}

/** Includes blobs under a delete marker: their versions are still stored. */
async function visit(listing: Listing, onKeys: OnKeys): Promise<void> {
  const { base } = listing.bucket
  let last: string | undefined
  const tell = async (page: Stored[]) => {
    const names: string[] = []
    // The versions of a name are adjacent.
    for (const { name, isMarker } of page) {
      if (isMarker || name === last) continue
      names.push(name.slice(base.length))
      last = name
    }
    if (names.length > 0) await onKeys(names)
  }
  for await (const page of versionPagesIfOffered(listing)) await tell(page)
  // A server without versions may list nothing there.
  if (last === undefined) for await (const page of objectPages(listing)) await tell(page)
}

async function* versionPagesIfOffered(listing: Listing): AsyncGenerator<Stored[]> {
  try {
    yield* versionPages(listing)
  } catch (error) {
    if (!isNotOffered(error)) throw error
  }
}

async function showsNothing(pages: AsyncGenerator<unknown[], boolean>): Promise<boolean> {
  for (;;) {
    const { value, done } = await pages.next()
    if (done) return value
    if (value.length > 0) return false
  }
}

async function* list(
  bucket: Bucket,
  prefix: string,
  under: (prefix: string) => string,
): AsyncGenerator<string> {
  for await (const page of objectPages({ bucket, prefix: under(prefix) })) {
    for (const { name } of page) yield name.slice(bucket.base.length)
  }
}

function remarks({ offers }: Bucket): BlobsRemark[] {
  return [
    ...(offers.versions ? [] : (['versions_not_offered'] as const)),
    ...(offers.bulkDelete ? [] : (['bulk_delete_not_offered'] as const)),
    ...(offers.multipart ? [] : (['multipart_not_offered'] as const)),
  ]
}
