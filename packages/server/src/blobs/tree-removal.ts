import { type ThreadMessage, threadOf } from '../thread.ts'
import type { Removed } from './blobs.ts'

export interface RemovalRequest {
  folder: string
  /** One Int32: 1 once the removal is to be given up. */
  isCut: SharedArrayBuffer
}

export interface RemovalMessage extends ThreadMessage, Removed {
  /** Whether the folder is gone; otherwise something came into it meanwhile. */
  isGone: boolean
  /** The system's code for what went wrong. */
  code?: string
}

const thread = threadOf<RemovalRequest, RemovalMessage>(
  new URL('./tree-removal-thread.ts', import.meta.url),
)

/**
 * Removes a folder with all that is in it and enters no symbolic link. A thread of its own does
 * that, call by call, as it takes several times longer by calls that each go through the pool of
 * threads. `onPart` is told what each part removed; what it throws ends the removal. Answers false
 * when something came into the folder meanwhile; rejects with the `code` of the system.
 */
export function removeTree(folder: string, onPart: (removed: Removed) => void): Promise<boolean> {
  const isCut = new SharedArrayBuffer(4)
  return new Promise((resolve, reject) => {
    const heard = ({ blobs, bytes, isOver, isGone, code }: RemovalMessage) => {
      try {
        onPart({ blobs, bytes })
      } catch (error) {
        Atomics.store(new Int32Array(isCut), 0, 1)
        reject(error)
      }
      if (!isOver) return
      if (code === undefined) resolve(isGone)
      else reject(Object.assign(new Error('A file system call failed.'), { code }))
    }
    thread.send({ folder, isCut }, heard, reject)
  })
}
