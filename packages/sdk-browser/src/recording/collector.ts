import type { Platform } from '../platform.ts'
import type { Chunk, Counted, Counts, Target } from './chunk.ts'
import { now } from './clock.ts'
import { createSchedule } from './schedule.ts'
import type { Tab } from './tab.ts'
import { textOf } from './text-of.ts'

const CHUNK_BYTES = 64 * 1024
/** The server accepts no more per chunk. */
const COUNT_MAXIMUM = 1_000
/** The server decompresses no more than this per chunk, so no event may be longer. */
const LINE_CHARACTERS_MAXIMUM = 8_000_000

export interface CollectorOptions {
  platform: Platform
  tab(): Tab
  /** Time to cut a chunk: events have waited long enough, or there are enough of them. */
  due(): void
  /** An event that cannot be sent at all. */
  tooLong(isSnapshot: boolean): void
}

export type Collector = ReturnType<typeof createCollector>

/** Collects lines of events until there are enough for a chunk. */
export function createCollector({ platform, tab, due, tooLong }: CollectorOptions) {
  let target: Target | undefined
  let lines: string[] = []
  let size = 0
  /** The times of the earliest and the latest line. */
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
    /** Changes the target of the collected events and of those that follow. */
    turn(next: Target) {
      target = next
    },
    /** Adjusts the number of characters per chunk to how well they compress. */
    learn(charactersPerByte: number, chunkBytesMaximum: number) {
      limit = Math.min(CHUNK_BYTES * charactersPerByte, chunkBytesMaximum / 3)
    },
    say,
    /** Counts something for the server. A page view begins with the next event. */
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
      // A snapshot is sent at once: the rest is useless without it, and it is too big for a beacon.
      if (snapshot || size > limit || schedule.isTooMuch(size)) due()
    },
    /** Counts lost events. The recording reports them as soon as it continues. */
    lose(events: number, reason: string) {
      lost.set(reason, (lost.get(reason) ?? 0) + events)
    },
    /** Makes a chunk of all lines, or of those that fit into `bytesMaximum`, at least one. */
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

/** Returns how many lines fit into this many bytes, at least one. */
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
