import { randomUUID } from 'node:crypto'

/**
 * Stores sealed chunks and the ledger in a folder or a bucket.
 *
 * A key is `blobs/<projectId>/<browserId>/<sessionId>/<name>` or `ledger/<group>/<name>.jws`:
 * at least two segments of A-Z a-z 0-9 . _ - of which none begins with a dot. A prefix is the same
 * with a slash at the end. Everything else is refused with `invalid_key` before the store is
 * accessed. A fault may contain the server's error code, but never a key.
 *
 * Every function throws `BlobFault`.
 */
export interface Blobs {
  /**
   * Durably creates the place for keys directly under the prefix. `put` never does, so a delayed
   * put after the deletion of its prefix fails with `prefix_gone` and leaves nothing. Called at the
   * start of a session and before a group's first ledger entry; idempotent. A bucket has no
   * places: there this does nothing, and a late put succeeds, but its blob is sealed with a
   * destroyed key.
   */
  open(prefix: string): Promise<void>
  /**
   * Durable when it returns. Replaces a blob of the same key. After a fault, including `aborted`,
   * the blob may exist or not: delete it. Until it returns, a new blob under `blobs/` may be
   * partially written; other blobs never are.
   */
  put(key: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  /**
   * Throws `BlobMissing` if there is none, and `foreign_entry` for what is not a blob of ours: not
   * a file, or larger than `blobBytesMaximum`.
   */
  get(key: string, signal?: AbortSignal): Promise<Uint8Array>
  /** Durably removes all versions of these blobs. A key without a blob is no error. */
  delete(keys: readonly string[], signal?: AbortSignal): Promise<void>
  /**
   * Removes everything under the prefix until nothing is listed: blobs, their versions, delete
   * markers, open multipart uploads, leftovers of a crashed put. Durable when it returns, even if
   * an earlier call did the work and crashed. An empty prefix is no error. The prefix has at least
   * two segments, so that one wrong ID cannot empty the store. Memory use does not grow with the
   * number of blobs.
   */
  deletePrefix(prefix: string, options?: DeletePrefixOptions): Promise<Removed>
  /**
   * Whether nothing is left under the prefix: no blob, version, delete marker, multipart upload or
   * leftover of a put; empty directories do not count. Shares no code with `deletePrefix`.
   */
  isEmpty(prefix: string, signal?: AbortSignal): Promise<boolean>
  /**
   * Calls `onKeys` with the keys of all blobs under the prefix, some at a time, each once,
   * including blobs of which only older versions are left. Throws `symbolic_link` and
   * `foreign_entry` for entries that lead elsewhere or are not ours.
   */
  visit(prefix: string, onKeys: OnKeys, signal?: AbortSignal): Promise<void>
  /** The keys under the prefix, read in pages, in any order. */
  list(prefix: string): AsyncIterable<string>
  /**
   * Writes, reads, lists and deletes a test blob, so that a missing permission is found before an
   * erasure needs it. Returns what an operator should know about the store.
   */
  check(): Promise<BlobsRemark[]>
  /** Ends idle connections. */
  close(): void
}

/** The next part follows when this resolves. */
export type OnKeys = (keys: string[]) => Promise<void>

export interface DeletePrefixOptions {
  /** Called after each part with what was removed so far. A call shows progress. */
  onProgress?: (removed: Removed) => void
  signal?: AbortSignal
}

/**
 * What was removed. Counts each version in a bucket, but no delete markers or leftovers of puts.
 */
export interface Removed {
  blobs: number
  bytes: number
}

/**
 * `versions_not_offered`: the server cannot list versions and says that it keeps none;
 * `bulk_delete_not_offered`: blobs are deleted one request each; `multipart_not_offered`: the
 * server has no multipart uploads, so none can be left open.
 */
export type BlobsRemark =
  | 'versions_not_offered'
  | 'bulk_delete_not_offered'
  | 'multipart_not_offered'

/**
 * What went wrong. Callers expect `blob_missing`, `aborted` (by the caller's signal) and
 * `prefix_gone`; `invalid_key` is a bug of the caller. The operator handles the others, such as
 * `not_empty` (something keeps writing under the prefix), `delete_refused` (the store keeps blobs,
 * for instance under an object lock), `versions_hidden` (the bucket keeps versions and does not
 * list them, so nothing can be erased from it), `symbolic_link` (there is one instead of a
 * directory or blob), `foreign_entry` (there is a mount, socket or device, a file instead of a
 * folder, or a folder among the blobs).
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

/** Larger files are not ours: our largest blobs, packs, have about eight megabytes. */
export const blobBytesMaximum = 64 * 1_048_576

export const notABlob = () =>
  new BlobFault('foreign_entry', 'There is something that Lethe did not create in place of a blob.')

export class BlobMissing extends BlobFault {
  override readonly name = 'BlobMissing'

  constructor(options?: ErrorOptions) {
    super('blob_missing', 'There is no blob of this key.', options)
  }
}

/** Whether there is no blob of ours, even if there is something else in its place. */
export const isNoBlob = (error: unknown): boolean =>
  error instanceof BlobFault && (error.code === 'blob_missing' || error.code === 'foreign_entry')

export const browserPrefix = (projectId: number, browserId: string) =>
  `blobs/${projectId}/${browserId}/`

export const sessionPrefix = (projectId: number, browserId: string, sessionId: string) =>
  `${browserPrefix(projectId, browserId)}${sessionId}/`

/** Whether the key has the form that uploads use: all of ours end in a random number. */
export const isBlobKey = (key: string): boolean =>
  /^blobs\/\d+\/[\w-]+\/[\w-]+\/[\w.-]*-\d+-[0-9a-f]{24}$/.test(key)

/** How many segments follow this prefix before the names of its blobs; undefined for any number. */
export const blobLevels = ([top, ...others]: readonly string[]): number | undefined =>
  top === 'blobs' ? 3 - others.length : undefined

// A leading dot is reserved for the store's own files. This also rules out `.` and `..`.
const segmentPattern = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/
export const keyLengthMaximum = 512

/** Whether a listed name is a valid key: others may have created files there. */
export const isKey = (text: string): boolean =>
  text.length <= keyLengthMaximum &&
  text.split('/').every((segment) => segmentPattern.test(segment))

/** The segments of a key. Throws `invalid_key`. */
export function keySegments(key: string): string[] {
  const segments = segmentsOf(key)
  if (segments.length < 2)
    throw new BlobFault('invalid_key', 'A key must have at least two segments.')
  return segments
}

/** The segments of a prefix, without the slash at its end. Throws `invalid_key`. */
export function prefixSegments(prefix: string, segmentsMinimum = 1): string[] {
  if (!prefix.endsWith('/')) throw new BlobFault('invalid_key', 'A prefix must end with a slash.')
  const segments = segmentsOf(prefix.slice(0, -1))
  if (segments.length < segmentsMinimum) {
    throw new BlobFault('invalid_key', `The prefix must have at least ${segmentsMinimum} segments.`)
  }
  return segments
}

function segmentsOf(path: string): string[] {
  if (isKey(path)) return path.split('/')
  throw new BlobFault('invalid_key', 'The key or prefix has an invalid form.')
}

/** Does with test blobs everything that ingestion and erasure do with real ones. */
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
    throw new BlobFault('failed', 'The blob store returned different bytes than were written.')
  }
  if (!(await blobs.isEmpty(prefix))) {
    throw new BlobFault('not_empty', 'The blob store still lists deleted blobs.')
  }
}
