import { setTimeout as sleep } from 'node:timers/promises'
import { BlobFault, type Blobs } from './blobs.ts'

export interface BlobsHealth {
  state: 'ok' | 'failed' | 'unknown'
  checkedAt: string | null
  errorCode: string | null
}

/** How old a result may be before the store is checked again; a failure is over sooner. */
const trustedMilliseconds = { ok: 30_000, unknown: 30_000, failed: 5_000 }

/** How long a page waits for a check. */
const waitMilliseconds = 2_000

/** A store that needs longer for one small blob does not work. */
const checkMilliseconds = 10_000

/**
 * Whether the blob store works, by what it did with a blob of its own. While a check runs, the result
 * is that of the one before, and at first `unknown`: a store that hangs holds up no page.
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
