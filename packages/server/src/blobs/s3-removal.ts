import { setTimeout as sleep } from 'node:timers/promises'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketVersioningCommand,
} from '@aws-sdk/client-s3'
import { inLanes } from '../lanes.ts'
import { BlobFault, type DeletePrefixOptions, type Removed } from './blobs.ts'
import { type Bucket, request } from './s3-bucket.ts'
import { isNotOffered, serverCode } from './s3-faults.ts'
import { objectPages, type Stored, uploadPages, versionPages } from './s3-listing.ts'

/** Few enough that no request takes long, so that progress shows. A page takes four requests. */
const deletesARequest = 250
export const requestsAtOnce = 8
/** Passes without progress: the first entry listed is the same as before. */
const stalledPassesMaximum = 6
/** After this many passes something must still be writing. */
const passesMaximum = 10_000
const pauseMaximumMilliseconds = 2_000

/** Error codes of single blobs in a bulk delete that may succeed the next time. */
const passing = new Set(['InternalError', 'SlowDown', 'ServiceUnavailable', 'OperationAborted'])
const goneAlready = new Set(['NoSuchKey', 'NoSuchVersion', 'NoSuchUpload'])

interface Removal extends Pick<DeletePrefixOptions, 'signal'> {
  bucket: Bucket
  /** Including the base of the bucket. */
  prefix: string
  /** Only blobs with exactly this name; if undefined, all under the prefix. */
  only?: string
  removed: Removed
  report(): void
  /** The first entry of this pass, and the error code of one that the server did not delete. */
  first: string | undefined
  refusal: string | undefined
}

/**
 * Removes what is listed until nothing is. Each pass reads all listings from the start: blobs may
 * have been added to pages already read, a bulk delete may have failed for some, a server may list
 * late or skip pages (Swift 2.30 returns a wrong marker for versions, so it shows one page per
 * pass).
 */
export async function removeAll(
  bucket: Bucket,
  place: { prefix: string; only?: string },
  { onProgress, signal }: DeletePrefixOptions = {},
): Promise<Removed> {
  const removed = { blobs: 0, bytes: 0 }
  const report = () => onProgress?.({ ...removed })
  const whole = { bucket, ...place, removed, report, ...(signal && { signal }) }
  let before: string | undefined
  let stalled = 0
  for (let pass = 1; pass <= passesMaximum && stalled < stalledPassesMaximum; pass++) {
    const removal: Removal = { ...whole, first: undefined, refusal: undefined }
    await removeListed(removal)
    const { first, refusal } = removal
    if (first === undefined) return removed
    stalled = first === before ? stalled + 1 : 0
    if (refusal && (!passing.has(refusal) || stalled === stalledPassesMaximum)) {
      throw new BlobFault('delete_refused', `The S3 server keeps blobs: ${refusal}.`)
    }
    if (stalled > 0 || refusal) await pause(stalled, signal)
    before = first
  }
  throw new BlobFault('not_empty', 'The S3 server still lists blobs after each deletion of them.')
}

async function pause(stalled: number, signal?: AbortSignal): Promise<void> {
  const milliseconds = Math.min(pauseMaximumMilliseconds, 100 * 2 ** stalled)
  // If it is aborted, the next request says so.
  await sleep(milliseconds, undefined, signal && { signal }).catch(() => {})
}

async function removeListed(removal: Removal): Promise<void> {
  const { bucket } = removal
  if (bucket.offers.versions) await removeVersions(removal)
  // Only if the listing of versions showed nothing: on a versioned bucket, a delete without a
  // version leaves a marker. So this finds blobs only if the server does not support that listing,
  // or treats it as a plain one.
  if (removal.first === undefined) {
    for await (const page of objectPages(removal)) await removePage(removal, page)
  }
  if (bucket.offers.multipart) await removeUploads(removal)
}

async function removeVersions(removal: Removal): Promise<void> {
  try {
    for await (const page of versionPages(removal)) await removePage(removal, page)
  } catch (error) {
    if (!isNotOffered(error)) throw error
    await assertUnversioned(removal.bucket, removal.signal)
    removal.bucket.offers.versions = false
  }
}

/** Without a listing of versions an erasure is complete only if the bucket keeps none. */
export async function assertUnversioned(bucket: Bucket, signal?: AbortSignal): Promise<void> {
  try {
    const { Status } = await request(bucket, signal, (options) =>
      bucket.client.send(new GetBucketVersioningCommand({ Bucket: bucket.name }), options),
    )
    if (!Status) return
  } catch (error) {
    if (isNotOffered(error)) return
    throw error
  }
  throw new BlobFault('versions_hidden', 'The bucket keeps versions but does not list them.')
}

async function removePage(removal: Removal, page: Stored[]): Promise<void> {
  const chosen = removal.only ? page.filter((stored) => stored.name === removal.only) : page
  removal.first ??= chosen[0] && nameOf(chosen[0])
  const parts: Stored[][] = []
  for (let start = 0; start < chosen.length; start += deletesARequest) {
    parts.push(chosen.slice(start, start + deletesARequest))
  }
  await Promise.all(parts.map((part) => removePart(removal, part)))
}

async function removePart(removal: Removal, part: Stored[]): Promise<void> {
  const failed = removal.bucket.offers.bulkDelete
    ? await deleteInBulk(removal, part)
    : await deleteEach(removal, part)
  for (const stored of part) {
    if (stored.isMarker || failed.has(nameOf(stored))) continue
    removal.removed.blobs += 1
    removal.removed.bytes += stored.bytes
  }
  removal.report()
}

const nameOf = ({ name, versionId }: Pick<Stored, 'name' | 'versionId'>) =>
  `${name}\n${versionId ?? ''}`

/** Returns those that still exist. The response is 200 even if some failed. */
async function deleteInBulk(removal: Removal, part: Stored[]): Promise<Set<string>> {
  const { bucket, signal } = removal
  const Objects = part.map(({ name, versionId }) => ({
    Key: name,
    ...(versionId && { VersionId: versionId }),
  }))
  const command = new DeleteObjectsCommand({
    Bucket: bucket.name,
    Delete: { Objects, Quiet: true },
  })
  const failed = new Set<string>()
  try {
    const { Errors = [] } = await request(bucket, signal, (options) =>
      bucket.client.send(command, options),
    )
    for (const { Key = '', VersionId, Code = 'Unknown' } of Errors) {
      if (goneAlready.has(Code)) continue
      refuse(removal, serverCode({ Code }))
      failed.add(nameOf({ name: Key, versionId: VersionId }))
    }
  } catch (error) {
    if (!isNotOffered(error)) throw error
    bucket.offers.bulkDelete = false
    return deleteEach(removal, part)
  }
  return failed
}

/** Prefers a permanent error code to a temporary one. */
function refuse(removal: Removal, code: string): void {
  if (removal.refusal === undefined || passing.has(removal.refusal)) removal.refusal = code
}

async function deleteEach(removal: Removal, part: Stored[]): Promise<Set<string>> {
  const { bucket, signal } = removal
  const failed = new Set<string>()
  await inLanes(part, requestsAtOnce, async (stored) => {
    const command = new DeleteObjectCommand({
      Bucket: bucket.name,
      Key: stored.name,
      ...(stored.versionId && { VersionId: stored.versionId }),
    })
    try {
      await request(bucket, signal, (options) => bucket.client.send(command, options))
    } catch (error) {
      const code = refusalOf(error)
      if (goneAlready.has(code)) return
      if (!(error instanceof BlobFault) || error.code !== 'access_denied') throw error
      // One blob that cannot be deleted does not stop the others.
      refuse(removal, code)
      failed.add(nameOf(stored))
    }
  })
  return failed
}

async function removeUploads(removal: Removal): Promise<void> {
  const { bucket, signal, only } = removal
  try {
    for await (const page of uploadPages(removal)) {
      const chosen = only ? page.filter(({ name }) => name === only) : page
      removal.first ??= chosen[0]?.uploadId
      await inLanes(chosen, requestsAtOnce, async ({ name, uploadId }) => {
        const command = new AbortMultipartUploadCommand({
          Bucket: bucket.name,
          Key: name,
          UploadId: uploadId,
        })
        await request(bucket, signal, (options) => bucket.client.send(command, options)).catch(
          unlessGone,
        )
      })
      if (chosen.length > 0) removal.report()
    }
  } catch (error) {
    if (!isNotOffered(error)) throw error
    bucket.offers.multipart = false
  }
}

function unlessGone(error: unknown): void {
  if (!goneAlready.has(refusalOf(error))) throw error
}

const refusalOf = (error: unknown) => serverCode((error as Error).cause ?? error)
