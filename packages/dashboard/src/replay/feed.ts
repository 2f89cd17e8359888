import type { eventWithTime } from '@rrweb/types'
import { createAssets } from './assets.ts'
import { createBudget } from './budget.ts'
import { createFilter } from './filter.ts'
import { createMedia } from './media.ts'
import { createOutline } from './outline.ts'
import { finite, isRecord, spanMaximum } from './untrusted.ts'

/** Turns the recorded bytes of a tab into events for the player as they arrive. */
export function createFeed() {
  const decoder = new TextDecoder()
  const budget = createBudget()
  const filter = createFilter(budget)
  const outline = createOutline()
  const clock = createClock()
  const media = createMedia()
  const assets = createAssets()
  let rest = ''
  let last = Number.NEGATIVE_INFINITY
  /** Events up to this time are skipped: streams of a live session overlap. */
  let after = Number.NEGATIVE_INFINITY

  return {
    outline,
    isExceeded: budget.isExceeded,
    /** Returns the lines that are complete. */
    take(bytes: ArrayBuffer): string[] {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      return lines
    },
    /** Returns the last line, which has no line end. */
    finish(): string {
      const line = rest + decoder.decode()
      rest = ''
      return line
    },
    /** From now on skips events that are not later than all read so far. */
    mark(): void {
      after = last
      outline.close()
    },
    read(line: string): eventWithTime | undefined {
      const raw = assets.apply(parse(media.apply(line)))
      media.note(raw)
      const recordedAt = isRecord(raw) ? finite(raw.timestamp) : undefined
      if (recordedAt === undefined || recordedAt <= after) return undefined
      const timestamp = clock(recordedAt)
      if (timestamp === undefined) return undefined
      last = Math.max(last, recordedAt)
      const event = filter({ ...(raw as object), timestamp })
      if (event) media.dress(event)
      outline.note(timestamp, raw, event)
      return event
    },
  }
}

function parse(line: string): unknown {
  if (line === '') return undefined
  try {
    return JSON.parse(line)
  } catch {
    // Truncated or forged lines are skipped.
    return undefined
  }
}

/** Events this little out of order do not mean that the clock was changed. */
const disorderMilliseconds = 1_000

/**
 * Maps the visitor's clock, which may be set back, to a monotonic one: the player plays events by
 * time, and the filter must read them in the same order. Returns undefined if an event cannot
 * belong to the session.
 */
function createClock(): (recordedAt: number) => number | undefined {
  let first: number | undefined
  let last = 0
  let shift = 0
  return (recordedAt) => {
    first ??= recordedAt
    if (last === 0) last = first
    if (recordedAt + shift - first > spanMaximum) return undefined
    const back = last - (recordedAt + shift)
    if (back > disorderMilliseconds) shift += back
    last = Math.max(last, recordedAt + shift)
    return last
  }
}
