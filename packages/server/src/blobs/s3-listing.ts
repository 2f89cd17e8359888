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
  /** As the bucket has it, base included. */
  prefix: string
  /** Undefined: as many as the server puts on a page, at most 1,000. */
  pageMaximum?: number
  signal?: AbortSignal
}

/*
 * A page may be empty and yet not the last. A server that says there is more, and not where, ends
 * the pages: a deletion lists again from the start, and none is taken for the proof that
 * nothing is left unless it came to its end (`isEmpty` in s3.ts asks for that).
 */

export async function* versionPages(listing: Listing): AsyncGenerator<Stored[], boolean> {
  const { bucket, prefix, pageMaximum, signal } = listing
  let marker: { KeyMarker?: string; VersionIdMarker?: string } = {}
  for (;;) {
    const command = new ListObjectVersionsCommand({
      Bucket: bucket.name,
      Prefix: prefix,
      ...(pageMaximum && { MaxKeys: pageMaximum }),
      ...marker,
    })
    const answer = await request(bucket, signal, (options) => bucket.client.send(command, options))
    yield [
      ...(answer.Versions ?? []).map((version) => storedOf(version, false)),
      ...(answer.DeleteMarkers ?? []).map((markerEntry) => storedOf(markerEntry, true)),
    ]
    if (!answer.IsTruncated) return true
    const { NextKeyMarker, NextVersionIdMarker } = answer
    if (!NextKeyMarker) return false
    marker = {
      KeyMarker: NextKeyMarker,
      ...(NextVersionIdMarker && { VersionIdMarker: NextVersionIdMarker }),
    }
  }
}

export async function* objectPages(listing: Listing): AsyncGenerator<Stored[], boolean> {
  const { bucket, prefix, pageMaximum, signal } = listing
  let token: string | undefined
  for (;;) {
    const command = new ListObjectsV2Command({
      Bucket: bucket.name,
      Prefix: prefix,
      ...(pageMaximum && { MaxKeys: pageMaximum }),
      ...(token && { ContinuationToken: token }),
    })
    const answer = await request(bucket, signal, (options) => bucket.client.send(command, options))
    yield (answer.Contents ?? []).map((entry) => storedOf(entry, false))
    if (!answer.IsTruncated) return true
    token = answer.NextContinuationToken
    if (!token) return false
  }
}

export async function* uploadPages(listing: Listing): AsyncGenerator<Upload[], boolean> {
  const { bucket, prefix, pageMaximum, signal } = listing
  let marker: { KeyMarker?: string; UploadIdMarker?: string } = {}
  for (;;) {
    const command = new ListMultipartUploadsCommand({
      Bucket: bucket.name,
      Prefix: prefix,
      ...(pageMaximum && { MaxUploads: pageMaximum }),
      ...marker,
    })
    const answer = await request(bucket, signal, (options) => bucket.client.send(command, options))
    yield (answer.Uploads ?? []).map(({ Key = '', UploadId = '' }) => ({
      name: Key,
      uploadId: UploadId,
    }))
    if (!answer.IsTruncated) return true
    const { NextKeyMarker, NextUploadIdMarker } = answer
    if (!NextKeyMarker) return false
    marker = {
      KeyMarker: NextKeyMarker,
      ...(NextUploadIdMarker && { UploadIdMarker: NextUploadIdMarker }),
    }
  }
}

function storedOf(
  entry: {
    Key?: string | undefined
    VersionId?: string | undefined
    Size?: number | undefined
  },
  isMarker: boolean,
): Stored {
  return {
    name: entry.Key ?? '',
    versionId: entry.VersionId,
    bytes: entry.Size ?? 0,
    isMarker,
  }
}
