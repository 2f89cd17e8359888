import type { Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import { keepUnsent, sizeOf, type Target, takeUnsent } from './chunk.ts'
import { createCollector } from './collector.ts'
import { createQueue } from './queue.ts'
import { claimTab, releaseTab } from './tab.ts'

const REFUSALS_MAXIMUM = 3
const CONFIRM_MILLISECONDS = 5_000
/** Browsers take 64 KB of beacons at a time, all of them together. */
const BEACON_BYTES_MAXIMUM = 60_000

export interface UploaderEvents {
  /** The server has retired this browser; whatever was waiting for it is gone. */
  retired(browser: string): void
  /** The server wants nothing more from this page. */
  stopped(): void
  /** Something is missing from the recording: it can only go on with a new snapshot. */
  torn(): void
  /** This page cannot be recorded, and why. */
  hopeless(reason: string): void
  /** Offline for so long that nothing more can be kept; `torn` follows when it can. */
  full(): void
}

/** Where recorded events go: collected into chunks, and brought to the server. */
export function createUploader(platform: Platform, server: Server, on: UploaderEvents) {
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
    },
  })
  const queue = createQueue(platform, server, {
    retired(browser) {
      if (collector.target()?.browser === browser) collector.aim(undefined)
      on.retired(browser)
    },
    stopped() {
      collector.aim(undefined)
      on.stopped()
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
  const unsent = takeUnsent(platform)
  for (const chunk of unsent.chunks) queue.add(chunk)
  if (unsent.lost) collector.lose(unsent.lost, 'buffer_full')

  return {
    write: collector.write,
    say: collector.say,
    enter: collector.enter,
    flush,
    wake: queue.wake,
    /** Events belong to another session from here on; what was collected goes to the one before. */
    aim(target: Target | undefined, bytesMaximum = chunkBytesMaximum) {
      flush()
      chunkBytesMaximum = bytesMaximum
      collector.aim(target)
    },
    session: () => collector.target()?.session,
    /** Forgets what waits for one browser, or everything. */
    discard(browser?: string) {
      collector.aim(undefined)
      queue.discard(browser)
    },
    /** The page may be gone in a moment; `leaving` if that is all but certain. */
    hide(leaving: boolean) {
      const room = queue.beacon(BEACON_BYTES_MAXIMUM)
      const first = collector.cut(room)
      if (first) queue.add(first)
      queue.beacon(room)
      const rest = collector.cut()
      if (rest) queue.add(rest)
      if (leaving) {
        keepUnsent(platform, queue.all())
        releaseTab(platform, tab)
      } else if (!queue.isEmpty()) platform.after(CONFIRM_MILLISECONDS, () => void queue.send())
    },
    /** The page is back from the browser's memory; another may have used the tab's numbers. */
    show() {
      tab = claimTab(platform)
      void queue.send()
      queue.wake()
    },
  }
}
