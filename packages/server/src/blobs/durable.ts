import { constants } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

const syncs = new Map<string, { running: Promise<void>; next?: Promise<void> }>()

/**
 * Makes the changed entries of a directory outlive a power cut. Whoever asks while that is under
 * way shares the next time with all others who do.
 */
export function syncDirectory(path: string): Promise<void> {
  const known = syncs.get(path)
  if (!known) return beginSync(path)
  known.next ??= known.running.catch(() => {}).then(() => beginSync(path))
  return known.next
}

function beginSync(path: string): Promise<void> {
  const sync: { running: Promise<void>; next?: Promise<void> } = { running: syncOnce(path) }
  syncs.set(path, sync)
  const forget = () => {
    if (!sync.next) syncs.delete(path)
  }
  sync.running.then(forget, forget)
  return sync.running
}

async function syncOnce(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await directory.sync()
  } finally {
    await directory.close()
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
