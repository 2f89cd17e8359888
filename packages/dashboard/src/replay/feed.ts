import type { eventWithTime } from '@rrweb/types'
import { createFilter } from './filter.ts'
import type { Outline } from './messages.ts'
import { createOutline } from './outline.ts'

/** Further from the first event than a session can last. */
const spanMaximum = 26 * 3_600_000

/** Makes events for the player out of recorded bytes, as they come. */
export function createFeed() {
  const decoder = new TextDecoder()
  const filter = createFilter()
  const outline = createOutline()
  let rest = ''
  let first: number | undefined
  let last = Number.NEGATIVE_INFINITY
  /** What came before is not given again when the stream of a session that goes on overlaps. */
  let after = Number.NEGATIVE_INFINITY

  function take(bytes: ArrayBuffer): eventWithTime[] {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    return lines.flatMap(read)
  }

  function finish(): eventWithTime[] {
    const lines = rest + decoder.decode()
    rest = ''
    after = last
    return read(lines)
  }

  function read(line: string): eventWithTime[] {
    if (line === '') return []
    const raw = parse(line)
    const event = filter(raw)
    const timestamp = event?.timestamp ?? timestampOf(raw)
    if (timestamp === undefined || timestamp <= after) return []
    first ??= timestamp
    if (timestamp < first || timestamp - first > spanMaximum) return []
    last = Math.max(last, timestamp)
    outline.note(raw, event)
    return event ? [event] : []
  }

  return { take, finish, outline: (isComplete: boolean): Outline => outline.sofar(isComplete) }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // A line that is cut or forged is worth nothing; the others still are.
    return undefined
  }
}

function timestampOf(raw: unknown): number | undefined {
  const timestamp = (raw as { timestamp?: unknown } | undefined)?.timestamp
  return typeof timestamp === 'number' && Number.isFinite(timestamp) ? timestamp : undefined
}
