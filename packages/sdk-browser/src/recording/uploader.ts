import type { Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import type { Carrier } from './carrier.ts'
import { keepUnsent, sizeOf, type Target, takeUnsent } from './chunk.ts'
import { createCollector } from './collector.ts'
import { createQueue } from './queue.ts'
import { claimTab, releaseTab, SENT, STARTED } from './tab.ts'

const REFUSALS_MAXIMUM = 3
const CONFIRM_MILLISECONDS = 5_000
/** Browsers accept 64 KB of beacons at a time in total. */
const BEACON_BYTES_MAXIMUM = 60_000

export interface UploaderEvents {
  /** The server has retired this browser, and its waiting chunks were dropped. */
  retired(browser: string): void
  /** The server accepts nothing more from this page. */
  halt(): void
  /** Events are missing: the recording can only continue with a new snapshot. */
  torn(): void
  /** This page cannot be recorded, for this reason. */
  hopeless(reason: string): void
  /** Offline for so long that the buffer is full. `torn` follows when it has room again. */
  full(): void
}

export interface UploaderOptions {
  platform: Platform & Carrier
  server: Server
  /** Chunks that previous pages kept for another generation are dropped. */
  generation: string
}

/** Collects recorded events into chunks and sends them to the server. */
export function createUploader(options: UploaderOptions, on: UploaderEvents) {
  const { platform, server, generation } = options
  let tab = claimTab(platform)
  let chunkBytesMaximum = Number.POSITIVE_INFINITY
  let refusals = 0

  const flush = () => {
    const chunk = collector.cut()
    if (chunk) queue.add(chunk)
    void queue.send()
  }
  const collector = createCollector({
    platform,
    tab: () => tab,
    due: flush,
    tooLong(isSnapshot) {
      collector.lose(1, 'too_big')
      if (isSnapshot) on.hopeless('snapshot_too_big')
      else on.torn()
    },
  })
  const queue = createQueue(platform, server, {
    retired(browser) {
      if (collector.target()?.browser === browser) collector.aim(undefined)
      on.retired(browser)
    },
    stopped() {
      collector.aim(undefined)
      on.halt()
    },
    stored(chunk) {
      refusals = 0
      collector.learn(Math.max(1, chunk.characters / sizeOf(chunk)), chunkBytesMaximum)
    },
    lost(chunk, reason) {
      collector.lose(chunk.events, reason)
      if (reason === 'buffer_full') on.full()
      else if (chunk.session !== collector.target()?.session) return
      else if (reason === 'too_big' && chunk.isSnapshot) on.hopeless('snapshot_too_big')
      else if (++refusals >= REFUSALS_MAXIMUM) on.hopeless(reason)
      else on.torn()
    },
    drained: on.torn,
    chunkBytesMaximum: () => chunkBytesMaximum,
  })
  const unsent = takeUnsent(platform, generation)
  for (const chunk of unsent.chunks) queue.add(chunk)
  if (unsent.lost) collector.lose(unsent.lost, 'buffer_full')

  return {
    ...{ write: collector.write, say: collector.say, count: collector.count, flush },
    /** A page view begins with the next event. */
    routed: () => collector.count('pages'),
    wake: queue.wake,
    /** Sends events to another session from now on; those collected go to the previous one. */
    aim(target: Target | undefined, bytesMaximum = chunkBytesMaximum) {
      chunkBytesMaximum = bytesMaximum
      if (target && target.session === collector.target()?.session) return
      flush()
      collector.aim(target)
    },
    session: () => collector.target()?.session,
    ...whose(collector, queue, flush),
    /** Drops what waits for this browser, or everything. */
    discard(browser?: string) {
      collector.aim(undefined)
      queue.discard(browser)
      for (const name of [STARTED, SENT]) platform.tab.remove(name)
    },
    /** The page may be left; `leaving` if that is almost certain. */
    hide(leaving: boolean) {
      handOver(collector, queue)
      if (leaving) {
        keepUnsent(platform, queue.buffer.all())
        releaseTab(platform, tab)
      } else if (queue.buffer.all().length)
        platform.after(CONFIRM_MILLISECONDS, () => void queue.send())
    },
    /** The page was restored from the bfcache. Another page may have used the tab's numbers. */
    show() {
      tab = claimTab(platform)
      void queue.send()
      queue.wake()
    },
  }
}

/** Sends what fits into beacons, and keeps the rest in chunks. */
function handOver(
  { cut }: ReturnType<typeof createCollector>,
  { add, beacon }: ReturnType<typeof createQueue>,
) {
  const room = beacon(BEACON_BYTES_MAXIMUM)
  const first = cut(room)
  if (first) add(first)
  beacon(room)
  const rest = cut()
  if (rest) add(rest)
}

export type Uploader = ReturnType<typeof createUploader>

/** Handles events whose target is only known later. */
function whose(
  collector: ReturnType<typeof createCollector>,
  { buffer, send }: ReturnType<typeof createQueue>,
  flush: () => void,
) {
  return {
    trim: buffer.trim,
    /** Gives what waits for the IDs of a generation its target, or drops it without one. */
    settle(generation: string, to?: Target) {
      const target = collector.target()
      const isCurrent = target?.browser === '' && target.session === generation
      if (isCurrent) flush()
      buffer.settle(generation, to)
      if (isCurrent && to) collector.turn(to)
      else if (isCurrent) collector.aim(undefined)
      void send()
    },
    /** Holds what is recorded from now on until `release`. */
    hold(by = 1) {
      flush()
      buffer.hold(by)
    },
    /** Sends what was held, or drops it. */
    release(isKept: boolean, by = 1) {
      flush()
      buffer.release(isKept, by)
      void send()
    },
  }
}
