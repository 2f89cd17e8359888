import type { News, Outline, OutlineEntry, Span, Switch } from './messages.ts'
import { firstAfter, firstFrom } from './order.ts'
import { idleMilliseconds, type TabOutline } from './outline.ts'
import { spanMaximum } from './untrusted.ts'

/** How many entries are sent at once, so that the page stays responsive. */
const handedMaximum = 4_000

/**
 * The tabs of a session on one timeline, which begins with the first event of any tab. Tabs are
 * identified by their index; their events share one clock.
 */
export function createTimeline() {
  const tabs: TabOutline[] = []
  let offsets: number[] = []
  let entries: OutlineEntry[] = []
  let spans: Span[] = []
  let switches: Switch[] = []
  const handed = { entries: 0, spans: 0 }

  /** Merges what has arrived since the last call. */
  function merge(): void {
    const before = offsets
    offsets = offsetsOf(tabs)
    const changes = tabs.map((tab) => tab.changes())
    const [first] = tabs
    if (tabs.length === 1 && first) {
      ;({ entries, spans } = first)
      handed.entries = Math.min(handed.entries, changes[0]?.from ?? 0)
      handed.spans = Math.min(handed.spans, spans.length)
      return
    }
    const isMoved =
      offsets.length !== before.length || offsets.some((at, tab) => at !== before[tab])
    const changedAt = isMoved
      ? Number.NEGATIVE_INFINITY
      : Math.min(...changes.map(({ at }, tab) => at + (offsets[tab] ?? 0)))
    if (changedAt === Number.POSITIVE_INFINITY) return
    switches = switchesOf(tabs, offsets)
    const news: OutlineEntry[] = []
    for (const { at, tab } of switches.slice(1)) {
      if (at >= changedAt) news.push({ at, what: 'tab', text: `Tab ${tab + 1}`, count: 1, tab })
    }
    for (const [place, tab] of tabs.entries()) {
      const offset = offsets[place] ?? 0
      for (let at = firstFrom(tab.entries, changedAt - offset); at < tab.entries.length; at++) {
        const entry = tab.entries[at] as OutlineEntry
        news.push({ ...entry, at: entry.at + offset, tab: place })
      }
    }
    // The lists of the tabs are already sorted, which makes this fast.
    news.sort((one, other) => one.at - other.at)
    const kept = isMoved ? 0 : firstFrom(entries, changedAt)
    entries = isMoved ? news : [...entries.slice(0, kept), ...news]
    handed.entries = Math.min(handed.entries, kept)
    spans = quietOf(tabs, offsets)
    handed.spans = 0
  }

  return {
    /** Adds a tab. */
    add(outline: TabOutline): void {
      tabs.push(outline)
    },
    offset: (tab: number) => offsets[tab] ?? 0,
    /** The tab that the visitor used at this time: the one with the last action. */
    tabAt(at: number): number {
      return switches[firstAfter(switches, at) - 1]?.tab ?? 0
    },
    spans: () => spans,
    hasMore: () => handed.entries < entries.length,
    /** Returns what has arrived since the last call, or a part of it. */
    news(isComplete: boolean): News {
      merge()
      const outline: Outline = {
        duration: Math.max(0, ...tabs.map((tab, index) => tab.duration() + (offsets[index] ?? 0))),
        isComplete,
      }
      const part = {
        from: handed.entries,
        rows: entries.slice(handed.entries).slice(0, handedMaximum),
      }
      handed.entries += part.rows.length
      const newSpans = { from: handed.spans, rows: spans.slice(handed.spans) }
      handed.spans = spans.length
      return { outline, entries: part, spans: newSpans, switches }
    },
  }
}

/**
 * How long after the first tab each began. A tab whose clock differs by days counts as having begun
 * with the first.
 */
function offsetsOf(tabs: readonly TabOutline[]): number[] {
  const base = tabs.find((tab) => tab.startedAt() !== undefined)?.startedAt() ?? 0
  const starts = tabs.map((tab) => (tab.startedAt() ?? base) - base)
  const known = starts.map((start) => (Math.abs(start) > spanMaximum ? 0 : start))
  const first = Math.min(0, ...known)
  return known.map((start) => start - first)
}

/** When the visitor switched from one tab to another. */
function switchesOf(tabs: readonly TabOutline[], offsets: readonly number[]): Switch[] {
  const used = tabs.flatMap(({ usedAt }, tab) =>
    usedAt.map((at) => ({ at: at + (offsets[tab] ?? 0), tab })),
  )
  used.sort((one, other) => one.at - other.at)
  return used.filter(({ tab }, index) => tab !== used[index - 1]?.tab)
}

/** The times without activity in any tab; gaps where one of them was not recorded. */
function quietOf(tabs: readonly TabOutline[], offsets: readonly number[]): Span[] {
  const lists = tabs.map((tab, index) => {
    const offset = offsets[index] ?? 0
    const within = tab.spans.map(({ kind, from, to }) => ({
      kind,
      from: from + offset,
      to: to + offset,
    }))
    const before: Span = { kind: 'idle', from: Number.NEGATIVE_INFINITY, to: offset }
    const after: Span = {
      kind: 'idle',
      from: offset + tab.duration(),
      to: Number.POSITIVE_INFINITY,
    }
    return [before, ...within, after]
  })
  const all = lists.reduce(common)
  return all.filter(
    ({ from, to, kind }) =>
      Number.isFinite(to - from) && (kind === 'gap' || to - from > idleMilliseconds),
  )
}

function common(some: Span[], others: Span[]): Span[] {
  const found: Span[] = []
  for (let one = 0, other = 0; one < some.length && other < others.length; ) {
    const a = some[one] as Span
    const b = others[other] as Span
    const from = Math.max(a.from, b.from)
    const to = Math.min(a.to, b.to)
    if (from < to) found.push({ from, to, kind: a.kind === 'gap' ? 'gap' : b.kind })
    if (a.to < b.to) one++
    else other++
  }
  return found
}
