import { backoff } from '../answer.ts'
import type { Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import { bytesOf, type Chunk, pack, queryOf, sizeOf } from './chunk.ts'

const BUFFER_BYTES_MAXIMUM = 16 * 1024 * 1024

export interface QueueEvents {
  /** The server has retired this browser; whatever was waiting for it is gone. */
  retired(browser: string): void
  /** The server wants nothing more from this page. */
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
 * Brings chunks to the server, one at a time and in order. Each is kept until the server has said
 * that it has it, in a buffer with an end.
 */
export function createQueue(platform: Platform, server: Server, on: QueueEvents) {
  let chunks: Chunk[] = []
  let full = false
  let sending = false
  let wake = () => {}

  const total = () => chunks.reduce((sum, chunk) => sum + sizeOf(chunk), 0)
  const remove = (chunk: Chunk) => {
    chunks = chunks.filter((each) => each !== chunk)
    if (!full || total() > BUFFER_BYTES_MAXIMUM / 2) return
    full = false
    on.drained()
  }
  const discard = (browser?: string) => {
    chunks = chunks.filter((chunk) => browser !== undefined && chunk.browser !== browser)
    wake()
  }
  /** One try with the first chunk; answers how long to wait, where it must be tried again. */
  const sendOne = async (chunk: Chunk, failures: number) => {
    await pack(chunk, platform.compress)
    if (!chunks.includes(chunk)) return 0
    if (sizeOf(chunk) > on.chunkBytesMaximum()) {
      remove(chunk)
      on.lost(chunk, 'too_big')
      return 0
    }
    const { next, status, retryAfterSeconds } = await server.post(
      'chunks',
      bytesOf(chunk),
      queryOf(chunk),
    )
    if (!chunks.includes(chunk)) return 0
    if (next === 'retry') return backoff(failures + 1, retryAfterSeconds, platform.random())
    if (next === 'continue') {
      remove(chunk)
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
      for (let failures = 0; chunks[0]; ) {
        const milliseconds = await sendOne(chunks[0], failures)
        failures = milliseconds ? failures + 1 : 0
        if (milliseconds) await sleep(platform, milliseconds, (stop) => (wake = stop))
      }
    } catch {}
    sending = false
  }
  return {
    add(chunk: Chunk) {
      full ||= total() + sizeOf(chunk) > BUFFER_BYTES_MAXIMUM
      if (full) return on.lost(chunk, 'buffer_full')
      chunks.push(chunk)
      void pack(chunk, platform.compress)
    },
    send,
    discard,
    /** Whether everything is stored or lost. */
    isEmpty: () => !chunks.length,
    all: () => chunks,
    /** Ends a wait: the network is back, or the page is. */
    wake: () => wake(),
    /** Hands over as beacons what fits into so many bytes; answers how many are left. */
    beacon(room: number) {
      for (const chunk of chunks) {
        const bytes = chunk.beaconed ? undefined : bytesOf(chunk)
        if (!bytes || bytes.length > room) continue
        if (!server.beacon('chunks', bytes, queryOf(chunk))) continue
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
