import { randomUUID } from 'node:crypto'

/**
 * Where sealed chunks and the ledger are kept: a folder or a bucket.
 *
 * A key is `blobs/<projectId>/<browserId>/<sessionId>/<name>` or
 * `ledger/<projectId>/<jobId>.json`: two segments at least, of A-Z a-z 0-9 . _ - and none that
 * begins with a dot. A prefix is the same with a slash at its end. Everything else is refused with
 * `invalid_key` before the store is touched. Keys hold random ids and nothing else, so a fault may
 * name the server's error code, yet it never names a key.
 *
 * Every function throws `BlobFault`.
 */
export interface Blobs {
  /**
   * Makes the place for keys directly under the prefix, durably. `put` never does: so a put that
   * was frozen and lands after its prefix was deleted fails with `prefix_gone` and leaves nothing.
   * Called at the start of a session and before a project's first ledger entry; may be repeated.
   * A bucket has no places, there it does nothing and such a late put succeeds; what it leaves
   * behind is sealed under a key that is gone.
   */
  open(prefix: string): Promise<void>
  /**
   * Durable when it returns; a blob of that key is replaced as a whole. After a fault, `aborted`
   * included, the blob may be there or not: delete it. Of a new one under `blobs/` there may be a part
   * until then; of every other key never.
   */
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  /**
   * Throws `BlobMissing` where there is none, and `foreign_entry` for what is no blob of ours: no
   * file, or larger than `blobBytesMaximum`.
   */
  get(key: string, signal?: AbortSignal): Promise<Uint8Array>
  /** Removes these blobs, all versions of them, durably. A key with no blob is no error. */
  delete(keys: readonly string[], signal?: AbortSignal): Promise<void>
  /**
   * Removes all that is under the prefix until nothing is listed: blobs, their versions, delete
   * markers, open multipart uploads, what a crashed put left. Durable when it returns, also when
   * an earlier call did the work and crashed. Nothing there is no error. The prefix has two
   * segments at least: no mistake in one id empties the store. Memory does not grow with the
   * number of blobs.
   */
  deletePrefix(prefix: string, options?: DeletePrefixOptions): Promise<Removed>
  /**
   * True when nothing is left under the prefix: no blob, version, delete marker, multipart upload
   * or leftover of a put. Looks by itself and shares no code with `deletePrefix`. (An empty
   * directory is nothing.)
   */
  isEmpty(prefix: string, signal?: AbortSignal): Promise<boolean>
  /**
   * Tells the keys of all blobs under the prefix once, some at a time, also of those that only older
   * versions are left of. Throws `symbolic_link` and `foreign_entry` for what leads out of it, or is
   * no blob's file or a folder of ours.
   */
  visit(prefix: string, onKeys: OnKeys, signal?: AbortSignal): Promise<void>
  /** The keys under the prefix, read in pages, in no promised order. */
  list(prefix: string): AsyncIterable<string>
  /**
   * Writes, reads, lists and deletes a blob of its own, so that a missing permission is found
   * before an erasure needs it. Returns what an operator should know about the store.
   */
  check(): Promise<BlobsRemark[]>
  /** Ends idle connections. */
  close(): void
}

/** The next part comes when this has ended. */
export type OnKeys = (keys: string[]) => Promise<void>

export interface DeletePrefixOptions {
  /** Called after each part with what went so far. A call says that the work moves on. */
  onProgress?: (removed: Removed) => void
  signal?: AbortSignal
}

/** What went. In a bucket each version counts; delete markers and leftovers of puts do not. */
export interface Removed {
  blobs: number
  bytes: number
}

/**
 * `versions_not_offered`: the server has no listing of versions and says that it keeps none;
 * `bulk_delete_not_offered`: blobs are deleted one request each;
 * `multipart_not_offered`: the server has no multipart uploads, so none can be left open.
 */
export type BlobsRemark =
  | 'versions_not_offered'
  | 'bulk_delete_not_offered'
  | 'multipart_not_offered'

/**
 * What went wrong. `blob_missing`, `aborted` (by the caller's signal) and `prefix_gone` are
 * expected by callers; `invalid_key` is a mistake of the caller's; the others are the operator's:
 * `not_empty` (something keeps writing under the prefix), `delete_refused` (the store keeps some
 * of the blobs, for instance under an object lock), `versions_hidden` (the bucket keeps versions
 * and does not list them, so nothing can be erased from it), `symbolic_link` (one stands where a
 * directory or blob of ours should be), `foreign_entry` (a mount, a socket or a device does, a file
 * where a folder should be, or a folder among the blobs).
 */
export type BlobFaultCode =
  | 'invalid_key'
  | 'blob_missing'
  | 'prefix_gone'
  | 'aborted'
  | 'timed_out'
  | 'unreachable'
  | 'access_denied'
  | 'bucket_missing'
  | 'store_full'
  | 'not_empty'
  | 'delete_refused'
  | 'versions_hidden'
  | 'symbolic_link'
  | 'foreign_entry'
  | 'failed'

export class BlobFault extends Error {
  override readonly name: string = 'BlobFault'
  readonly code: BlobFaultCode

  constructor(code: BlobFaultCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** What is larger was not written by us: the largest of ours, packs, are some eight megabytes. */
export const blobBytesMaximum = 64 * 1_048_576

export const notABlob = () =>
  new BlobFault('foreign_entry', 'In the place of a blob is something that Lethe did not create.')

export class BlobMissing extends BlobFault {
  override readonly name = 'BlobMissing'

  constructor(options?: ErrorOptions) {
    super('blob_missing', 'There is no blob of this key.', options)
  }
}

/** Whether there is no blob of ours, whatever stands in its place. */
export const isNoBlob = (error: unknown): boolean =>
  error instanceof BlobFault && (error.code === 'blob_missing' || error.code === 'foreign_entry')

export const browserPrefix = (projectId: number, browserId: string) =>
  `blobs/${projectId}/${browserId}/`

export const sessionPrefix = (projectId: number, browserId: string, sessionId: string) =>
  `${browserPrefix(projectId, browserId)}${sessionId}/`

/** Whether an upload would have named a blob of this place so: all of ours end in a random number. */
export const isBlobKey = (key: string): boolean =>
  /^blobs\/\d+\/[\w-]+\/[\w-]+\/[\w.-]*-\d+-[0-9a-f]{24}$/.test(key)

/** How many segments lie between this prefix and the names of its blobs; undefined where any may. */
export const blobLevels = ([top, ...others]: readonly string[]): number | undefined =>
  top === 'blobs' ? 3 - others.length : undefined

// A leading dot is kept for files of the store's own, and rules out `.` and `..` in passing.
const segmentPattern = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/
export const keyLengthMaximum = 512

/** Whether a text that was listed is a key: others may have put there what cannot be one. */
export const isKey = (text: string): boolean =>
  text.length <= keyLengthMaximum &&
  text.split('/').every((segment) => segmentPattern.test(segment))

/** The segments of a key. Throws `invalid_key`. */
export function keySegments(key: string): string[] {
  const segments = segmentsOf(key)
  if (segments.length < 2) throw new BlobFault('invalid_key', 'A key has two segments at least.')
  return segments
}

/** The segments of a prefix, without the slash at its end. Throws `invalid_key`. */
export function prefixSegments(prefix: string, segmentsMinimum = 1): string[] {
  if (!prefix.endsWith('/')) throw new BlobFault('invalid_key', 'A prefix ends with a slash.')
  const segments = segmentsOf(prefix.slice(0, -1))
  if (segments.length < segmentsMinimum) {
    throw new BlobFault('invalid_key', `This takes a prefix of ${segmentsMinimum} segments.`)
  }
  return segments
}

function segmentsOf(path: string): string[] {
  if (isKey(path)) return path.split('/')
  throw new BlobFault('invalid_key', 'A key or prefix is not of the form that is allowed.')
}

/** Does once with a blob of its own whatever ingestion and erasure will do with others. */
export async function probe(blobs: Omit<Blobs, 'check'>): Promise<void> {
  const prefix = `check/${randomUUID()}/`
  const bytes = new TextEncoder().encode(prefix)
  await blobs.open(prefix)
  await blobs.put(`${prefix}deleted`, bytes)
  await blobs.delete([`${prefix}deleted`])
  await blobs.put(`${prefix}read`, bytes)
  const read = await blobs.get(`${prefix}read`)
  await blobs.deletePrefix(prefix)
  if (Buffer.compare(read, bytes) !== 0) {
    throw new BlobFault('failed', 'The blob store returned other bytes than were written.')
  }
  if (!(await blobs.isEmpty(prefix))) {
    throw new BlobFault('not_empty', 'The blob store still lists what it said was deleted.')
  }
}
