import type { eventWithTime } from '@rrweb/types'
import { createAssets } from './assets.ts'
import { createBudget } from './budget.ts'
import { createFilter } from './filter.ts'
import { createMedia } from './media.ts'
import { createOutline } from './outline.ts'
import { finite, isRecord, spanMaximum } from './untrusted.ts'

/** Makes events for the player out of the recorded bytes of a tab, as they come. */
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
  /** What came before is not given again when the stream of a session that goes on overlaps. */
  let after = Number.NEGATIVE_INFINITY

  return {
    outline,
    isExceeded: budget.isExceeded,
    /** The lines that are whole by now. */
    take(bytes: ArrayBuffer): string[] {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      return lines
    },
    /** The last line, which nothing ends. */
    finish(): string {
      const line = rest + decoder.decode()
      rest = ''
      return line
    },
    /** From now on only what is later than all that was read. */
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
    // A line that is cut or forged is worth nothing; the others still are.
    return undefined
  }
}

/** Events that are a little out of order are no change of the clock. */
const disorderMilliseconds = 1_000

/**
 * The time of an event on a clock that only goes on, whatever that of the visitor did: the player
 * plays events by their times, and the filter has to read them in the same order. Undefined where
 * it cannot belong to the session.
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
