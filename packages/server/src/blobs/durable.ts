import { closeSync, constants, fsync, open, openSync, write } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'

/*
 * What may wait for the disk runs in a thread. The rest runs synchronously: opening a directory
 * whose entries have just changed, and closing, are faster than a round trip to a thread.
 */
const openFile = promisify(open)
const writeBytes = promisify(write)
const sync = promisify(fsync)

/** Makes changed entries of a directory survive a power failure. */
export const syncDirectory = sharing(async (path) => {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await sync(directory)
  } finally {
    closeSync(directory)
  }
})

/** Writes a new file. It survives a power failure once its directory is synced too. */
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

/** Durably creates a directory and its missing parents, accessible only to the owner. */
export async function makeDirectories(path: string): Promise<void> {
  const wanted = resolve(path)
  const made = await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (made === undefined) return
  // `made` is the topmost new directory: its parent, and each one below, has a new entry.
  for (let place = wanted; place.length >= made.length; place = dirname(place)) {
    await syncDirectory(dirname(place))
  }
}

/** For `.catch`: ignores that a file or directory does not exist. */
export function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/**
 * Shares runs of `work` among callers with the same key. A caller that comes during a run shares
 * the next one with all others who do, so that every result was obtained after the call. `rest`
 * follows from the key.
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
