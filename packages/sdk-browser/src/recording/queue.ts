import { backoff } from '../answer.ts'
import type { Body, Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import { createBuffer } from './buffer.ts'
import type { Carrier } from './carrier.ts'
import { bytesOf, type Chunk, pack, queryOf, sizeOf } from './chunk.ts'

export interface QueueEvents {
  /** The server has retired this browser, and its waiting chunks were dropped. */
  retired(browser: string): void
  /** The server accepts nothing more from this page. */
  stopped(): void
  stored(chunk: Chunk): void
  /** A chunk will never be stored: `too_big`, `refused` or `buffer_full`. */
  lost(chunk: Chunk, reason: string): void
  /** The buffer was full and has room again. */
  drained(): void
  chunkBytesMaximum(): number
}

export type Queue = ReturnType<typeof createQueue>

/**
 * Sends chunks to the server, one at a time and in order. Each stays in a bounded buffer until the
 * server has confirmed it.
 */
export function createQueue(platform: Platform & Carrier, server: Server, on: QueueEvents) {
  const buffer = createBuffer(on.drained)
  let sending = false
  let wake = () => {}

  const discard = (browser?: string) => {
    buffer.keep((chunk) => browser !== undefined && chunk.browser !== browser)
    wake()
  }
  const isTaken = (bytes: Body, chunk: Chunk) => {
    try {
      return platform.beacon(server.url('chunks', queryOf(chunk)), bytes)
    } catch {
      return false
    }
  }
  /** Tries to send a chunk. Returns how long to wait before a retry, or 0. */
  const sendOne = async (chunk: Chunk, failures: number) => {
    await pack(chunk, platform.compress)
    if (!buffer.has(chunk)) return 0
    if (sizeOf(chunk) > on.chunkBytesMaximum()) {
      buffer.remove(chunk)
      on.lost(chunk, 'too_big')
      return 0
    }
    const { next, status, retrySeconds } = await server.post(
      'chunks',
      bytesOf(chunk),
      queryOf(chunk),
    )
    if (!buffer.has(chunk)) return 0
    if (next === 'retry') return backoff(failures + 1, retrySeconds, platform.random())
    if (next === 'continue') {
      buffer.remove(chunk)
      if (status < 400) on.stored(chunk)
      else on.lost(chunk, 'refused')
    } else {
      discard(next === 'stop' ? undefined : chunk.browser)
      if (next === 'stop') on.stopped()
      else on.retired(chunk.browser)
    }
    return 0
  }
  const send = async () => {
    if (sending) return
    sending = true
    try {
      let failures = 0
      for (let chunk = buffer.next(); chunk; chunk = buffer.next()) {
        const milliseconds = await sendOne(chunk, failures)
        failures = milliseconds ? failures + 1 : 0
        if (milliseconds) await sleep(platform, milliseconds, (stop) => (wake = stop))
      }
    } catch {}
    sending = false
  }
  return {
    buffer,
    add(chunk: Chunk) {
      if (!buffer.add(chunk)) return on.lost(chunk, 'buffer_full')
      void pack(chunk, platform.compress)
    },
    send,
    discard,
    /** Ends a wait: the network or the page is back. */
    wake: () => wake(),
    /** Sends as beacons what fits into this many bytes, and returns how many are left. */
    beacon(room: number) {
      for (const chunk of buffer.ready()) {
        const bytes = chunk.beaconed ? undefined : bytesOf(chunk)
        if (!bytes || bytes.length > room) continue
        if (!isTaken(bytes, chunk)) continue
        room -= bytes.length
        chunk.beaconed = true
      }
      return room
    },
  }
}

function sleep(platform: Platform, milliseconds: number, onWake: (wake: () => void) => void) {
  return new Promise<void>((resolve) => {
    const cancel = platform.after(milliseconds, resolve)
    onWake(() => {
      cancel()
      resolve()
    })
  })
}
