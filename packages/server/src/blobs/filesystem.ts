import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, opendir, realpath, rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { inLanes } from '../lanes.ts'
import {
  BlobFault,
  type BlobFaultCode,
  BlobMissing,
  type Blobs,
  blobBytesMaximum,
  blobLevels,
  type DeletePrefixOptions,
  keyLengthMaximum,
  keySegments,
  notABlob,
  type OnKeys,
  prefixSegments,
  probe,
  type Removed,
} from './blobs.ts'
import { makeDirectories, sharing, syncDirectory, unlessMissing, writeDurably } from './durable.ts'
import { entriesOf, filesUnder, removeTree } from './tree-removal.ts'

const unlinksAtOnce = 8
const passesMaximum = 10

/**
 * Stores blobs as files in a folder. They survive a power failure thanks to fsync: of a file before
 * its rename, and of the directory whose entries changed.
 *
 * No symbolic link under the folder is followed. (The folder itself may be one.)
 */
export async function openFolder(folder: string): Promise<Blobs> {
  const root = await faults('failed', () => realRoot(folder))
  const store: Omit<Blobs, 'check'> = {
    open: async (prefix) => makePlace(root, prefixSegments(prefix)),
    put: async (key, bytes, signal) => put(root, keySegments(key), bytes, signal),
    get: async (key, signal) => get(root, keySegments(key), signal),
    delete: async (keys, signal) => deleteKeys(root, keys.map(keySegments), signal),
    deletePrefix: async (prefix, options) => deletePrefix(root, prefixSegments(prefix, 2), options),
    visit: async (prefix, onKeys) => visit(root, prefixSegments(prefix), onKeys),
    isEmpty: async (prefix, signal) => isEmpty(root, prefixSegments(prefix), signal),
    list: (prefix) => list(root, prefix),
    close() {},
  }
  const check = async () => {
    await probe(store)
    return []
  }
  return { ...store, check }
}

async function realRoot(folder: string): Promise<string> {
  await makeDirectories(folder)
  return realpath(folder)
}

function makePlace(root: string, segments: string[]): Promise<void> {
  return faults('prefix_gone', async () => {
    let place = root
    for (const segment of segments) {
      const parent = place
      place = join(parent, segment)
      try {
        await mkdir(place, { mode: 0o700 })
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error
        await assertDirectory(place, segments)
      }
      // Even if it existed: the process that created it may not have reached this line yet.
      await syncDirectory(parent)
    }
  })
}

function put(root: string, segments: string[], bytes: Uint8Array, signal?: AbortSignal) {
  return faults('prefix_gone', async () => {
    throwIfAborted(signal)
    const place = await realPlace(root, segments.slice(0, -1))
    const path = join(place, segments.at(-1) as string)
    const isCreated = segments[0] === 'blobs' && (await create(path, bytes, signal))
    if (!isCreated) await replace(place, path, bytes, signal)
    await syncDirectory(place)
  })
}

/**
 * Writes a recording's blob directly under its name, with one commit of the file system instead of
 * two: nobody reads it before `put` returns, and what a crash leaves is removed with its intent.
 * Returns false if the name exists.
 */
async function create(path: string, bytes: Uint8Array, signal?: AbortSignal): Promise<boolean> {
  try {
    await writeDurably(path, bytes)
    throwIfAborted(signal)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    // If this fails too, the first fault says why, and the caller of the put deletes the file.
    await rm(path, { force: true }).catch(() => {})
    throw error
  }
}

async function replace(place: string, path: string, bytes: Uint8Array, signal?: AbortSignal) {
  const temporary = join(place, `.put-${randomUUID()}`)
  try {
    await writeDurably(temporary, bytes)
    throwIfAborted(signal)
    await rename(temporary, path)
  } catch (error) {
    // If this fails too, the first fault says why, and deletePrefix removes the leftover.
    await rm(temporary, { force: true }).catch(() => {})
    throw error
  }
}

/** Without O_NONBLOCK, opening a pipe would block one of the few threads. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

function get(root: string, segments: string[], signal?: AbortSignal): Promise<Uint8Array> {
  return faults('blob_missing', async () => {
    throwIfAborted(signal)
    const place = await realPlace(root, segments.slice(0, -1))
    const path = join(place, segments.at(-1) as string)
    const file = await open(path, readFlags)
    try {
      const stats = await file.stat()
      if (!stats.isFile() || stats.size > blobBytesMaximum) throw notABlob()
      return await file.readFile()
    } finally {
      await file.close()
    }
  })
}

function deleteKeys(root: string, keys: string[][], signal?: AbortSignal): Promise<void> {
  return faults('failed', async () => {
    const places = new Map<string, string[]>()
    for (const segments of keys) places.set(segments.slice(0, -1).join('/'), segments.slice(0, -1))
    for (const segments of places.values()) await nearestPlace(root, segments)
    await inLanes(keys, unlinksAtOnce, async (segments) => {
      throwIfAborted(signal)
      await unlink(join(root, ...segments)).catch(unlessMissing)
    })
    for (const segments of places.values()) await syncDirectory(await nearestPlace(root, segments))
  })
}

function deletePrefix(
  root: string,
  segments: string[],
  { onProgress, signal }: DeletePrefixOptions = {},
): Promise<Removed> {
  return faults('failed', async () => {
    const removed = { blobs: 0, bytes: 0 }
    const note = ({ blobs, bytes }: Removed) => {
      removed.blobs += blobs
      removed.bytes += bytes
      throwIfAborted(signal)
      onProgress?.({ ...removed })
    }
    const folder = join(root, ...segments)
    throwIfAborted(signal)
    // Throws if anything on the way to the prefix is not a directory of ours.
    await nearestPlace(root, segments)
    for (let pass = 1; !(await removeTree(folder, blobLevels(segments), note)); pass++) {
      if (pass === passesMaximum) {
        throw new BlobFault('not_empty', 'Something keeps writing under a prefix being deleted.')
      }
    }
    // Even if nothing existed: an earlier call may have crashed between its rmdir and this.
    await syncDirectory(await nearestPlace(root, segments.slice(0, -1)))
    return removed
  })
}

function visit(root: string, segments: string[], onKeys: OnKeys): Promise<void> {
  return faults('failed', async () => {
    const place = await nearestPlace(root, segments)
    if (place !== join(root, ...segments)) return
    for await (const paths of filesUnder(place, blobLevels(segments))) {
      await onKeys(paths.map((path) => [...segments, path].join('/')))
    }
  })
}

function isEmpty(root: string, segments: string[], signal?: AbortSignal): Promise<boolean> {
  return faults('failed', async () => {
    throwIfAborted(signal)
    const place = await nearestPlace(root, segments)
    if (place !== join(root, ...segments)) return true
    for await (const entry of await opendir(place, { recursive: true })) {
      throwIfAborted(signal)
      if (!entry.isDirectory()) return false
    }
    return true
  })
}

async function* list(root: string, prefix: string): AsyncGenerator<string> {
  const segments = prefixSegments(prefix)
  const place = await faults('failed', () => nearestPlace(root, segments))
  if (place === join(root, ...segments)) yield* keysUnder(place, prefix)
}

async function* keysUnder(folder: string, prefix: string): AsyncGenerator<string> {
  try {
    for await (const entries of entriesOf(folder)) {
      for (const entry of entries) {
        const path = `${prefix}${entry.name}`
        if (entry.isDirectory()) {
          // No key is longer, and the system limits the length of paths.
          if (path.length < keyLengthMaximum) yield* keysUnder(join(folder, entry.name), `${path}/`)
        } else if (entry.isFile() && !entry.name.startsWith('.')) {
          yield path
        }
      }
    }
  } catch (error) {
    throw asFault(error, 'failed')
  }
}

const realPathOf = sharing((place) => realpath(place))

/** Returns the directory of these segments. Throws if it is missing (ENOENT) or has links. */
async function realPlace(root: string, segments: string[]): Promise<string> {
  const place = join(root, ...segments)
  if ((await realPathOf(place)) !== place) throw symbolicLink(segments)
  return place
}

/** Returns the deepest existing directory on the way from the root to these segments. */
function nearestPlace(root: string, segments: string[]): Promise<string> {
  return nearest(join(root, ...segments), root, segments)
}

const nearest = sharing(async (place, root: string, segments: string[]): Promise<string> => {
  if (segments.length === 0) return realPlace(root, segments)
  // The parents are checked in shared runs, so that only the place itself is left.
  const above = await nearestPlace(root, segments.slice(0, -1))
  if (above !== join(place, '..')) return above
  const stats = await lstat(place).catch(unlessMissing)
  if (!stats) return above
  if (stats.isSymbolicLink()) throw symbolicLink(segments)
  if (!stats.isDirectory()) throw notADirectory()
  return place
})

async function assertDirectory(path: string, segments: string[]): Promise<void> {
  const stats = await lstat(path).catch(unlessMissing)
  if (stats?.isSymbolicLink()) throw symbolicLink(segments)
  if (stats && !stats.isDirectory()) throw notADirectory()
}

const notADirectory = () =>
  new BlobFault('failed', 'There is a file where a directory of the blob store should be.')

/** Names the top folder, such as `ledger`, which an operator may have linked: IDs do not help. */
const symbolicLink = ([top = '']: string[]) =>
  new BlobFault(
    'symbolic_link',
    `There is a symbolic link at or below "${top}", and symbolic links are not followed: replace it by the folder itself, or mount the whole folder of the blobs.`,
  )

function throwIfAborted(signal?: AbortSignal): void {
  if (signal?.aborted) {
    throw new BlobFault('aborted', 'The operation on the blob store was aborted.', {
      cause: signal.reason,
    })
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Runs `work` and turns system errors into a `BlobFault`. */
async function faults<T>(ofMissing: BlobFaultCode, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asFault(error, ofMissing)
  }
}

const codes: Record<string, BlobFaultCode> = {
  ENOSPC: 'store_full',
  EDQUOT: 'store_full',
  EACCES: 'access_denied',
  EPERM: 'access_denied',
  EROFS: 'access_denied',
  ELOOP: 'symbolic_link',
}

function asFault(error: unknown, ofMissing: BlobFaultCode): BlobFault {
  if (error instanceof BlobFault) return error
  const system = String(codeOf(error) ?? 'unknown')
  const code = system === 'ENOENT' ? ofMissing : (codes[system] ?? 'failed')
  if (code === 'blob_missing') return new BlobMissing()
  // The system's message contains the path, so only the code is used.
  return new BlobFault(code, `The folder of the blobs returned ${system}.`)
}
