import { constants } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { sharing } from './sharing.ts'

/** Makes the changed entries of a directory outlive a power cut. */
export const syncDirectory = sharing(async (path) => {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
})

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
