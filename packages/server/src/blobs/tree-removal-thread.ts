import { type Dir, type Dirent, lstatSync, opendirSync, rmdirSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import type { RemovalMessage, RemovalRequest } from './tree-removal.ts'

const entriesAPart = 256

const directoriesAPart = 64

interface Removal {
  steps: Generator<void, boolean>
  /** What was removed since it was last told. */
  fresh: { blobs: number; bytes: number }
  isCut: Int32Array
}

const removals = new Map<number, Removal>()

parentPort?.on('message', ({ number, folder, isCut }: RemovalRequest & { number: number }) => {
  const fresh = { blobs: 0, bytes: 0 }
  if (removals.size === 0) setImmediate(turn)
  removals.set(number, { steps: removeTree(folder, fresh), fresh, isCut: new Int32Array(isCut) })
})

/** One part of each removal, so that a small one does not wait for a large one. */
function turn(): void {
  for (const [number, removal] of removals) {
    const answer = nextPart(removal)
    if (answer.isOver) removals.delete(number)
    parentPort?.postMessage({ number, ...answer, ...removal.fresh } satisfies RemovalMessage)
    Object.assign(removal.fresh, { blobs: 0, bytes: 0 })
  }
  if (removals.size > 0) setImmediate(turn)
}

/** A part is as many entries as are read at once: of one directory, or of many small ones. */
function nextPart({ steps, fresh, isCut }: Removal) {
  if (Atomics.load(isCut, 0) === 1) return { isOver: true, isGone: false }
  try {
    for (let directories = 0; directories < directoriesAPart; directories++) {
      const { done = false, value } = steps.next()
      if (done) return { isOver: true, isGone: value === true }
      if (fresh.blobs >= entriesAPart) break
    }
    return { isOver: false, isGone: false }
  } catch (error) {
    return { isOver: true, isGone: false, code: String(codeOf(error) ?? 'unknown') }
  }
}

/** Answers false when something came into the directory after it was read: look again. */
function* removeTree(folder: string, fresh: Removal['fresh']): Generator<void, boolean> {
  const directory = unlessMissing(() => opendirSync(folder, { bufferSize: entriesAPart }))
  try {
    for (let part = readPart(directory); part.length > 0; part = readPart(directory)) {
      // A symbolic link is none of its target's kind here, so it is unlinked and never entered.
      for (const entry of part) if (!entry.isDirectory()) remove(folder, entry.name, fresh)
      yield
      for (const entry of part) {
        if (entry.isDirectory()) yield* removeTree(join(folder, entry.name), fresh)
      }
    }
  } finally {
    directory?.closeSync()
  }
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true
    if (codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST') return false
    throw error
  }
}

function readPart(directory: Dir | undefined): Dirent[] {
  const part: Dirent[] = []
  while (directory && part.length < entriesAPart) {
    const entry = directory.readSync()
    if (!entry) break
    part.push(entry)
  }
  return part
}

function remove(folder: string, name: string, fresh: Removal['fresh']): void {
  const path = join(folder, name)
  const stats = lstatSync(path, { throwIfNoEntry: false })
  unlessMissing(() => unlinkSync(path))
  if (!stats?.isFile() || name.startsWith('.')) return
  fresh.blobs += 1
  fresh.bytes += stats.size
}

function unlessMissing<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code
}
