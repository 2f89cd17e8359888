import { closeSync, constants, fsync, open, openSync, write } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { sharing } from './sharing.ts'

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
