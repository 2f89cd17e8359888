import { setTimeout as sleep } from 'node:timers/promises'
import { BlobFault, type Blobs } from './blobs.ts'

export interface BlobsHealth {
  state: 'ok' | 'failed' | 'unknown'
  checkedAt: string | null
  errorCode: string | null
}

/** How old a result may be before the store is checked again; failures are rechecked sooner. */
const trustedMilliseconds = { ok: 30_000, unknown: 30_000, failed: 5_000 }

/** How long a page waits for a check. */
const waitMilliseconds = 2_000

/** A store that takes longer for one small blob counts as failed. */
const checkMilliseconds = 10_000

/**
 * Returns whether the blob store works, by writing a test blob. While a check runs, returns the
 * previous result, at first `unknown`, so that a hanging store delays no page.
 */
export function blobsHealth(blobs: Blobs | undefined): () => Promise<BlobsHealth> {
  let known: BlobsHealth = { state: 'unknown', checkedAt: null, errorCode: null }
  let checking: Promise<void> | undefined
  let askedAt = Number.NEGATIVE_INFINITY

  async function check(store: Blobs): Promise<void> {
    const errorCode = await Promise.race([
      store.check().then(() => null, codeOf),
      sleep(checkMilliseconds, 'timed_out', { ref: false }),
    ])
    const state = errorCode === null ? 'ok' : 'failed'
    known = { state, checkedAt: new Date().toISOString(), errorCode }
    checking = undefined
  }

  return async () => {
    if (!blobs) return known
    const now = performance.now()
    if (!checking && now - askedAt > trustedMilliseconds[known.state]) {
      askedAt = now
      checking = check(blobs)
    }
    await Promise.race([checking, sleep(waitMilliseconds, undefined, { ref: false })])
    return known
  }
}

const codeOf = (error: unknown) => (error instanceof BlobFault ? error.code : 'failed')
