import { EventType, type eventWithTime, IncrementalSource, MouseInteractions } from '@rrweb/types'
import { type Labels, learnLabels } from './labels.ts'
import type { OutlineEntry, Span } from './messages.ts'
import { describeCustom, isHole } from './recorder-words.ts'
import { isRecord, text } from './untrusted.ts'

/** A longer time without activity counts as idle. */
export const idleMilliseconds = 5_000
const gapMilliseconds = 1_000

/** The resolution of the times at which a tab was used. */
const usedMilliseconds = 250

export type Words = Pick<OutlineEntry, 'what' | 'text' | 'isWrong' | 'note'>

export type TabOutline = ReturnType<typeof createOutline>

/**
 * Collects, event by event, what to list of a tab, and the times without activity. Times are in
 * milliseconds since the tab's first event.
 */
export function createOutline() {
  const wordsOf = createDescription()
  const entries: OutlineEntry[] = []
  const spans: Span[] = []
  /** When the visitor used this tab. */
  const usedAt: number[] = []
  let changed = { from: 0, at: Number.POSITIVE_INFINITY }
  let startedAt: number | undefined
  let activeAt = 0
  let endsAt = 0
  let brokeOffAt: number | undefined

  function list(at: number, words: Words): void {
    const last = entries.at(-1)
    if (last?.what === words.what && last.text === words.text) {
      last.count++
      change(entries.length - 1, last.at)
    } else {
      entries.push({ at, count: 1, ...words })
      change(entries.length - 1, at)
    }
  }

  function change(from: number, at: number): void {
    changed = { from: Math.min(changed.from, from), at: Math.min(changed.at, at) }
  }

  function use(at: number): void {
    if (Math.floor(at / usedMilliseconds) === Math.floor((usedAt.at(-1) ?? -1) / usedMilliseconds))
      return
    usedAt.push(at)
    change(entries.length, at)
  }

  /** `raw` is the event as recorded, `event` what the filter left of it. */
  function note(timestamp: number, raw: unknown, event: eventWithTime | undefined): void {
    startedAt ??= timestamp
    const at = Math.max(0, timestamp - startedAt)
    endsAt = Math.max(endsAt, at)
    if (event && brokeOffAt !== undefined) {
      if (at - brokeOffAt > gapMilliseconds) span('gap', brokeOffAt, at)
      brokeOffAt = undefined
    }
    if (isHole(raw)) brokeOffAt ??= at
    if (usedAt.length === 0 || (event && isUse(event))) use(at)
    const words = wordsOf(raw, event)
    if (words) list(at, words)
    if (event && isActivity(event)) {
      if (at - activeAt > idleMilliseconds) span('idle', activeAt, at)
      activeAt = Math.max(activeAt, at)
    }
  }

  /** A gap does not count as idle time too. */
  function span(kind: Span['kind'], from: number, to: number): void {
    spans.push({ kind, from, to })
    if (kind === 'gap') activeAt = Math.max(activeAt, to)
  }

  return {
    note,
    entries,
    spans,
    usedAt,
    /** By the visitor's clock; undefined before the first event. */
    startedAt: () => startedAt,
    duration: () => endsAt,
    /** The earliest time and entry that changed since the last call. */
    changes() {
      const news = changed
      changed = { from: entries.length, at: Number.POSITIVE_INFINITY }
      return news
    },
    /** Ends the current idle time. */
    close(): void {
      if (endsAt - activeAt > idleMilliseconds) span('idle', activeAt, endsAt)
      activeAt = endsAt
      change(entries.length, endsAt)
    },
  }
}

/** Describes events; undefined for one that is not listed. */
function createDescription(): (
  raw: unknown,
  event: eventWithTime | undefined,
) => Words | undefined {
  const labels: Labels = new Map()
  let lastInput = -1
  return (raw, event) => {
    if (!isRecord(raw) || !isRecord(raw.data)) return undefined
    if (raw.type === EventType.Custom) return describeCustom(raw.data, labels)
    if (raw.type === EventType.Meta) return { what: 'page', text: text(raw.data.href) || 'a page' }
    if (!event) return undefined
    learnLabels(labels, event)
    if (event.type !== EventType.IncrementalSnapshot) return undefined
    const { data } = event
    if (data.source !== IncrementalSource.Input) {
      if (data.source === IncrementalSource.MouseInteraction && isClick(data.type)) {
        lastInput = -1
        return { what: 'click', text: labels.get(data.id) ?? 'the page' }
      }
      if (data.source === IncrementalSource.ViewportResize) {
        return { what: 'other', text: `Resized to ${data.width} × ${data.height}` }
      }
      return undefined
    }
    if (data.id === lastInput) return undefined
    lastInput = data.id
    return { what: 'input', text: labels.get(data.id) ?? 'a field' }
  }
}

function isClick(type: MouseInteractions): boolean {
  return type === MouseInteractions.Click || type === MouseInteractions.DblClick
}

/** Whether the visitor caused the event, and not the page by itself. */
function isActivity(event: eventWithTime): boolean {
  if (event.type !== EventType.IncrementalSnapshot) return event.type === EventType.Meta
  const { source } = event.data
  return (
    source === IncrementalSource.MouseMove ||
    source === IncrementalSource.MouseInteraction ||
    source === IncrementalSource.Scroll ||
    source === IncrementalSource.Input ||
    source === IncrementalSource.TouchMove ||
    source === IncrementalSource.Drag ||
    source === IncrementalSource.Selection
  )
}

/** Whether the event shows that the visitor is using this tab. */
function isUse({ type, data }: eventWithTime): boolean {
  if (type !== EventType.IncrementalSnapshot) return false
  const { source } = data
  return (
    source === IncrementalSource.MouseMove ||
    source === IncrementalSource.TouchMove ||
    source === IncrementalSource.Drag ||
    // An element loses the focus when the visitor leaves the tab.
    (source === IncrementalSource.MouseInteraction && data.type !== MouseInteractions.Blur)
  )
}
