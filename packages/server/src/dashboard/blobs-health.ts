import { setTimeout as sleep } from 'node:timers/promises'
import { BlobFault, type Blobs } from '../blobs/blobs.ts'

export interface BlobsHealth {
  state: 'ok' | 'failed' | 'unknown'
  checkedAt: string | null
  errorCode: string | null
}

/** How old an answer may be before the store is asked again, and how long a page waits for one. */
const trustedMilliseconds = 30_000
const waitMilliseconds = 2_000

/**
 * Whether the blob store works, by what it did with a blob of its own. A store that hangs is
 * `unknown` for who looks first, and then what it last was: it holds up no page.
 */
export function blobsHealth(blobs: Blobs | undefined): () => Promise<BlobsHealth> {
  let known: BlobsHealth = { state: 'unknown', checkedAt: null, errorCode: null }
  let checking: Promise<void> | undefined
  let askedAt = Number.NEGATIVE_INFINITY

  async function check(store: Blobs): Promise<void> {
    let errorCode: string | null = null
    try {
      await store.check()
    } catch (error) {
      errorCode = error instanceof BlobFault ? error.code : 'failed'
    }
    const state = errorCode === null ? 'ok' : 'failed'
    known = { state, checkedAt: new Date().toISOString(), errorCode }
    checking = undefined
  }

  return async () => {
    if (!blobs) return known
    const now = performance.now()
    if (!checking && now - askedAt > trustedMilliseconds) {
      askedAt = now
      checking = check(blobs)
    }
    await Promise.race([checking, sleep(waitMilliseconds, undefined, { ref: false })])
    return known
  }
}
