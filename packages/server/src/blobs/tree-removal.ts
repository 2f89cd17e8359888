import { Worker } from 'node:worker_threads'
import type { Removed } from './blobs.ts'

export interface RemovalRequest {
  number: number
  folder: string
  /** One Int32: 1 once the removal is to be given up. */
  isCut: SharedArrayBuffer
}

export interface RemovalMessage extends Removed {
  number: number
  isOver: boolean
  /** Whether the folder is gone; otherwise something came into it meanwhile. */
  isGone: boolean
  /** The system's code for what went wrong. */
  code?: string
}

interface Waiting {
  onPart: (removed: Removed) => void
  resolve: (isGone: boolean) => void
  reject: (error: unknown) => void
}

let thread: Worker | undefined
let count = 0
const waiting = new Map<number, Waiting>()

/**
 * Removes a folder with all that is in it and enters no symbolic link. A thread of its own does
 * that, call by call, as it takes several times longer by calls that each go through the pool of
 * threads. `onPart` is told what each part removed; what it throws ends the removal. Answers false
 * when something came into the folder meanwhile; rejects with the `code` of the system.
 */
export function removeTree(folder: string, onPart: (removed: Removed) => void): Promise<boolean> {
  const worker = startThread()
  const number = count++
  const isCut = new SharedArrayBuffer(4)
  return new Promise((resolve, reject) => {
    const cut = (error: unknown) => {
      Atomics.store(new Int32Array(isCut), 0, 1)
      reject(error)
    }
    const tell = (removed: Removed) => {
      try {
        onPart(removed)
      } catch (error) {
        cut(error)
      }
    }
    waiting.set(number, { onPart: tell, resolve, reject })
    worker.ref()
    worker.postMessage({ number, folder, isCut } satisfies RemovalRequest)
  })
}

function startThread(): Worker {
  if (thread) return thread
  // With no options of the process, some of which are for its first module alone.
  const worker = new Worker(new URL('./tree-removal-thread.ts', import.meta.url), { execArgv: [] })
  thread = worker
  worker.on('message', ({ number, blobs, bytes, isOver, isGone, code }: RemovalMessage) => {
    const one = waiting.get(number)
    one?.onPart({ blobs, bytes })
    if (!isOver) return
    waiting.delete(number)
    if (waiting.size === 0) worker.unref()
    if (code === undefined) one?.resolve(isGone)
    else one?.reject(Object.assign(new Error('A file system call failed.'), { code }))
  })
  const fail = (error: Error) => {
    if (thread === worker) thread = undefined
    for (const one of waiting.values()) one.reject(error)
    waiting.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('The thread that removes blobs ended.')))
  return worker
}
