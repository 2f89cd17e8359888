import type { Platform } from '../platform.ts'
import type { Chunk, Counted, Counts, Target } from './chunk.ts'
import { now } from './clock.ts'
import { createSchedule } from './schedule.ts'
import type { Tab } from './tab.ts'
import { textOf } from './text-of.ts'

const CHUNK_BYTES = 64 * 1024
/** The server takes no more of one chunk. */
const COUNT_MAXIMUM = 1_000
/** The server expands no more than this of one chunk, so no single event may be longer. */
const LINE_CHARACTERS_MAXIMUM = 8_000_000

export interface CollectorOptions {
  platform: Platform
  tab(): Tab
  /** Time to cut: events have waited for long enough, or enough of them has come together. */
  due(): void
  /** An event that cannot be sent at all. */
  tooLong(isSnapshot: boolean): void
}

export type Collector = ReturnType<typeof createCollector>

/** Collects lines of events until they are enough for a chunk. */
export function createCollector({ platform, tab, due, tooLong }: CollectorOptions) {
  let target: Target | undefined
  let lines: string[] = []
  let size = 0
  /** Of the earliest line and the latest. */
  let from = 0
  let to = 0
  let isSnapshot = false
  let counts: Counts = {}
  let limit = CHUNK_BYTES
  const schedule = createSchedule(platform, due)
  const lost = new Map<string, number>()

  const append = (line: string, at: number) => {
    from = lines.length ? Math.min(from, at) : at
    to = lines.length ? Math.max(to, at) : at
    lines.push(line)
    size += line.length + 1
    schedule.start(() => size)
  }
  const clear = () => {
    schedule.clear()
    lines = []
    size = 0
    counts = {}
    isSnapshot = false
  }
  const say = (tag: string, payload: object) => {
    const timestamp = now()
    if (target) append(textOf({ type: 5, data: { tag, payload }, timestamp }), timestamp)
  }
  return {
    target: () => target,
    aim(next: Target | undefined) {
      clear()
      schedule.restart()
      target = next
    },
    /** The same events, and those that follow, go elsewhere. */
    turn(next: Target) {
      target = next
    },
    /** How many characters make a chunk of the right size, as compression turns out here. */
    learn(charactersPerByte: number, chunkBytesMaximum: number) {
      limit = Math.min(CHUNK_BYTES * charactersPerByte, chunkBytesMaximum / 3)
    },
    say,
    /** One more of what the server counts; a page view begins with what is written next. */
    count(what: Counted) {
      counts[what] = Math.min((counts[what] ?? 0) + 1, COUNT_MAXIMUM)
      if (what === 'errors') schedule.hurry()
    },
    write(line: string, snapshot: boolean, at = now()) {
      if (!target) return
      if (line.length > LINE_CHARACTERS_MAXIMUM) return tooLong(snapshot)
      for (const [reason, events] of lost) say('lethe:dropped', { reason, events })
      lost.clear()
      if (lines.length && size + line.length > limit) due()
      append(line, at)
      isSnapshot ||= snapshot
      // A snapshot goes at once: without it the rest is nothing, and a beacon cannot carry it.
      if (snapshot || size > limit || schedule.isTooMuch(size)) due()
    },
    /** Counts what is missing; the recording says so itself as soon as it goes on. */
    lose(events: number, reason: string) {
      lost.set(reason, (lost.get(reason) ?? 0) + events)
    },
    /** Closes what is collected; with a limit in bytes only as much as fits, at least one line. */
    cut(bytesMaximum?: number): Chunk | undefined {
      const rest = lines
      const count = fitting(lines, bytesMaximum)
      if (!target || !count) return undefined
      const text = `${lines.slice(0, count).join('\n')}\n`
      const { id, number } = tab()
      tab().number++
      const place = { ...target, tab: id, number }
      const about = { events: count, characters: text.length, counts, from, to, isSnapshot }
      clear()
      for (const line of rest.slice(count)) append(line, about.to)
      return { ...place, ...about, text, bytes: undefined, beaconed: false }
    },
  }
}

/** How many lines, at least one, stay within so many bytes. */
function fitting(lines: string[], bytesMaximum = Number.POSITIVE_INFINITY) {
  if (bytesMaximum === Number.POSITIVE_INFINITY) return lines.length
  const encoder = new TextEncoder()
  let bytes = 0
  const count = lines.findIndex((line) => {
    bytes += encoder.encode(line).length + 1
    return bytes > bytesMaximum
  })
  return count < 0 ? lines.length : Math.max(1, count)
}
