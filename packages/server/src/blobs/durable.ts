import { closeSync, constants, fsync, open, openSync, write } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'

/*
 * What may wait for the disk is done by a thread. What does not is done at once: to open a directory
 * whose entries have just changed, and to close, take less than a trip to a thread and back.
 */
const openFile = promisify(open)
const writeBytes = promisify(write)
const sync = promisify(fsync)

/** Makes the changed entries of a directory outlive a power cut. */
export const syncDirectory = sharing(async (path) => {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await sync(directory)
  } finally {
    closeSync(directory)
  }
})

/** Writes a new file, which outlives a power cut once its directory is synced as well. */
export async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const file = await openFile(path, 'wx', 0o600)
  try {
    for (let at = 0; at < bytes.length; ) {
      at += (await writeBytes(file, bytes, at)).bytesWritten
    }
    await sync(file)
  } finally {
    closeSync(file)
  }
}

/** Makes a directory and what is missing above it, for its owner only, durably. */
export async function makeDirectories(path: string): Promise<void> {
  const wanted = resolve(path)
  const made = await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (made === undefined) return
  // `made` is the topmost one that is new: from its parent on each has a new entry.
  for (let place = wanted; place.length >= made.length; place = dirname(place)) {
    await syncDirectory(dirname(place))
  }
}

/** For `.catch`: lets pass that a file or directory is not there. */
export function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/**
 * Work that many ask for with the same key: a caller that asks while it is under way shares the next time
 * with all others who do, so that what is answered was found out, or done, after it was asked for.
 * What comes after the key follows from it.
 */
export function sharing<T, Rest extends unknown[]>(
  work: (key: string, ...rest: Rest) => Promise<T>,
): (key: string, ...rest: Rest) => Promise<T> {
  const all = new Map<string, { running: Promise<T>; next?: Promise<T> }>()

  function begin(key: string, ...rest: Rest): Promise<T> {
    const one: { running: Promise<T>; next?: Promise<T> } = { running: work(key, ...rest) }
    all.set(key, one)
    const forget = () => {
      if (!one.next) all.delete(key)
    }
    one.running.then(forget, forget)
    return one.running
  }

  return (key, ...rest) => {
    const known = all.get(key)
    if (!known) return begin(key, ...rest)
    const again = () => begin(key, ...rest)
    known.next ??= known.running.then(again, again)
    return known.next
  }
}
