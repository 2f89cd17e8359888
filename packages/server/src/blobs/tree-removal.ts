import type { Dirent } from 'node:fs'
import { lstat, opendir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { inLanes } from '../lanes.ts'
import { inParts } from '../parts.ts'
import { BlobFault, type Removed } from './blobs.ts'
import { unlessMissing } from './durable.ts'

const unlinksAtOnce = 8
const entriesAPart = 256

/**
 * Removes a folder and its content. Calls `onPart` with what each part removed; if it throws, the
 * removal ends. Returns false if something was added meanwhile. `levels` is the number of folder
 * levels above the blobs; undefined if any number.
 *
 * Keeps what is neither a file nor a directory of this file system, and what is on the wrong level:
 * a file in place of a session's folder means that the folder was moved. After removing the rest,
 * throws a fault for it.
 */
export async function removeTree(
  folder: string,
  levels: number | undefined,
  onPart: (removed: Removed) => void,
): Promise<boolean> {
  let foreign: BlobFault | undefined
  const device = await deviceOf(folder)
  for await (const part of entriesOf(folder)) {
    const removed = { blobs: 0, bytes: 0 }
    const files = part.filter((entry) => isBlobFile(entry, levels))
    await inLanes(files, unlinksAtOnce, ({ name }) => removeFile(folder, name, removed))
    onPart(removed)
    for (const entry of part.filter((one) => !isBlobFile(one, levels))) {
      const fault = await faultOf(folder, entry, { device, levels })
      foreign ??= fault
      if (!fault) await removeTree(join(folder, entry.name), below(levels), onPart)
    }
  }
  if (foreign) throw foreign
  return removeFolder(folder)
}

/**
 * Lists the blobs under a folder, some at a time, by their relative paths. Throws for foreign
 * entries as `removeTree` does.
 */
export async function* filesUnder(
  folder: string,
  levels: number | undefined,
): AsyncGenerator<string[]> {
  const device = await deviceOf(folder)
  for await (const part of entriesOf(folder)) {
    const files = part.filter((entry) => isBlobFile(entry, levels) && !entry.name.startsWith('.'))
    if (files.length > 0) yield files.map(({ name }) => name)
    for (const entry of part.filter((one) => !isBlobFile(one, levels))) {
      const fault = await faultOf(folder, entry, { device, levels })
      if (fault) throw fault
      for await (const paths of filesUnder(join(folder, entry.name), below(levels))) {
        yield paths.map((path) => `${entry.name}/${path}`)
      }
    }
  }
}

const below = (levels: number | undefined) => (levels === undefined ? undefined : levels - 1)

/** A file on the level of the blobs, or one of the store's own files on any level. */
function isBlobFile(entry: Dirent, levels: number | undefined): boolean {
  return entry.isFile() && (levels === undefined || levels === 0 || entry.name.startsWith('.'))
}

async function deviceOf(folder: string): Promise<number | undefined> {
  return (await lstat(folder).catch(unlessMissing))?.dev
}

async function faultOf(
  folder: string,
  entry: Dirent,
  { device, levels }: { device: number | undefined; levels: number | undefined },
): Promise<BlobFault | undefined> {
  if (entry.isSymbolicLink()) {
    return new BlobFault('symbolic_link', 'There is a symbolic link in the folder of the blobs.')
  }
  const stats = await lstat(join(folder, entry.name)).catch(unlessMissing)
  const isOnLevel = levels === undefined || levels > 0
  if (!stats || (isOnLevel && stats.isDirectory() && stats.dev === device)) return undefined
  return new BlobFault(
    'foreign_entry',
    'The folder of the blobs contains something that Lethe did not create.',
  )
}

async function removeFolder(folder: string): Promise<boolean> {
  try {
    await rmdir(folder)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return true
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false
    throw error
  }
}

async function removeFile(folder: string, name: string, removed: Removed): Promise<void> {
  const path = join(folder, name)
  const stats = await lstat(path).catch(unlessMissing)
  await unlink(path).catch(unlessMissing)
  if (!stats?.isFile() || name.startsWith('.')) return
  removed.blobs += 1
  removed.bytes += stats.size
}

/** Lists the entries of a directory, some at a time; none if it does not exist. */
export async function* entriesOf(folder: string): AsyncGenerator<Dirent[]> {
  const directory = await opendir(folder, { bufferSize: entriesAPart }).catch(unlessMissing)
  if (directory) yield* inParts(directory, entriesAPart)
}
