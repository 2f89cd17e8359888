import {
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
} from '@aws-sdk/client-s3'
import { type Bucket, request } from './s3-bucket.ts'

/** One entry of a listing: a blob, a version of one, or a delete marker. */
export interface Stored {
  name: string
  versionId?: string | undefined
  bytes: number
  isMarker: boolean
}

export interface Upload {
  name: string
  uploadId: string
}

export interface Listing {
  bucket: Bucket
  /** Including the base of the bucket. */
  prefix: string
  /** If undefined, the server decides; at most 1,000. */
  pageMaximum?: number
  signal?: AbortSignal
}

interface Page<Item, Place> {
  items: Item[]
  isTruncated: boolean | undefined
  /** Where the next page begins. */
  next: Place | undefined
}

/**
 * Yields pages, which may be empty without being the last. If a server says that there is more, but
 * not where, the listing ends and returns false: a deletion then lists again from the start, and
 * `isEmpty` in s3.ts accepts only a complete listing.
 */
async function* pagesOf<Item, Place>(
  read: (from: Place | undefined) => Promise<Page<Item, Place>>,
): AsyncGenerator<Item[], boolean> {
  for (let from: Place | undefined; ; ) {
    const { items, isTruncated, next } = await read(from)
    yield items
    if (!isTruncated) return true
    if (next === undefined) return false
    from = next
  }
}

export function versionPages({ bucket, prefix, pageMaximum, signal }: Listing) {
  type Place = { KeyMarker: string; VersionIdMarker: string | undefined }
  return pagesOf<Stored, Place>(async (from) => {
    const asked = { Bucket: bucket.name, Prefix: prefix, MaxKeys: pageMaximum }
    const command = new ListObjectVersionsCommand({ ...asked, ...from })
    const page = await request(bucket, signal, (options) => bucket.client.send(command, options))
    const { Versions = [], DeleteMarkers = [], IsTruncated, NextKeyMarker: key } = page
    return {
      items: [
        ...Versions.map((version) => storedOf(version, false)),
        ...DeleteMarkers.map((marker) => storedOf(marker, true)),
      ],
      isTruncated: IsTruncated,
      next: key ? { KeyMarker: key, VersionIdMarker: page.NextVersionIdMarker } : undefined,
    }
  })
}

export function objectPages({ bucket, prefix, pageMaximum, signal }: Listing) {
  return pagesOf<Stored, string>(async (ContinuationToken) => {
    const asked = { Bucket: bucket.name, Prefix: prefix, MaxKeys: pageMaximum }
    const command = new ListObjectsV2Command({ ...asked, ContinuationToken })
    const page = await request(bucket, signal, (options) => bucket.client.send(command, options))
    const { Contents = [], IsTruncated, NextContinuationToken } = page
    const items = Contents.map((entry) => storedOf(entry, false))
    return { items, isTruncated: IsTruncated, next: NextContinuationToken || undefined }
  })
}

export function uploadPages({ bucket, prefix, pageMaximum, signal }: Listing) {
  type Place = { KeyMarker: string; UploadIdMarker: string | undefined }
  return pagesOf<Upload, Place>(async (from) => {
    const asked = { Bucket: bucket.name, Prefix: prefix, MaxUploads: pageMaximum }
    const command = new ListMultipartUploadsCommand({ ...asked, ...from })
    const page = await request(bucket, signal, (options) => bucket.client.send(command, options))
    const { Uploads = [], IsTruncated, NextKeyMarker: key } = page
    return {
      items: Uploads.map(({ Key = '', UploadId = '' }) => ({ name: Key, uploadId: UploadId })),
      isTruncated: IsTruncated,
      next: key ? { KeyMarker: key, UploadIdMarker: page.NextUploadIdMarker } : undefined,
    }
  })
}

function storedOf(
  {
    Key = '',
    VersionId,
    Size = 0,
  }: { Key?: string | undefined; VersionId?: string | undefined; Size?: number | undefined },
  isMarker: boolean,
): Stored {
  return { name: Key, versionId: VersionId, bytes: Size, isMarker }
}
