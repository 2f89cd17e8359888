import type { RecordedEvents } from '@lethe/contract/recorded-events.ts'
import { quiet } from '../quiet.ts'
import { listen, together } from '../recording/page-natives.ts'
import { observe } from './observe.ts'
import type { Tell } from './signals.ts'

type Name = RecordedEvents['lethe.vital']['name']

/** Layout shifts this far apart belong to different bursts. */
const SHIFT_GAP_MILLISECONDS = 1_000
const SHIFT_SPAN_MILLISECONDS = 5_000
/** INP ignores one of the slowest interactions for every 50. */
const INTERACTIONS_A_SLOWEST = 50
const SLOWEST_MAXIMUM = 10

interface Shift extends PerformanceEntry {
  value: number
  hadRecentInput: boolean
}

interface Interaction extends PerformanceEntry {
  interactionId?: number
}

/**
 * Reports the web vitals of a page load as web.dev defines them, in milliseconds; CLS has no unit.
 * LCP, CLS and INP are reported when the page is hidden, because they can grow until then.
 */
export function watchVitals(tell: Tell): () => void {
  const reported = new Map<Name, number>()
  const report = (name: Name, value: number) => {
    if (!(value >= 0) || reported.get(name) === value) return
    reported.set(name, value)
    tell('lethe.vital', { name, value: Math.round(value * 10_000) / 10_000 })
  }
  let largest: number | undefined
  const shifts = createShifts()
  const interactions = createInteractions()
  const finish = quiet(() => {
    if (document.visibilityState !== 'hidden') return
    if (largest !== undefined) report('LCP', largest)
    if (shifts.worst() !== undefined) report('CLS', shifts.worst() as number)
    if (interactions.slow() !== undefined) report('INP', interactions.slow() as number)
  })
  const ends = [
    observe('navigation', true, ({ responseStart }: PerformanceNavigationTiming) => {
      if (responseStart > 0) report('TTFB', responseStart)
    }),
    observe('paint', true, ({ name, startTime }) => {
      if (name === 'first-contentful-paint') report('FCP', startTime)
    }),
    observe('largest-contentful-paint', true, ({ startTime }) => {
      largest = startTime
    }),
    observe('layout-shift', true, shifts.add),
    observe('event', true, interactions.add, { durationThreshold: 40 }),
    observe('first-input', true, interactions.add),
    // In the capture phase: the recording is handed over later in the same event.
    listen(window, 'visibilitychange', finish, { capture: true }),
    listen(window, 'pagehide', finish, { capture: true }),
  ]
  return together(ends)
}

/** Finds the burst of layout shifts with the largest sum. */
function createShifts() {
  let burst = { from: 0, to: 0, sum: 0 }
  let worst: number | undefined = PerformanceObserver.supportedEntryTypes?.includes('layout-shift')
    ? 0
    : undefined
  return {
    add({ value, hadRecentInput, startTime }: Shift) {
      if (hadRecentInput) return
      const goesOn =
        startTime - burst.to < SHIFT_GAP_MILLISECONDS &&
        startTime - burst.from < SHIFT_SPAN_MILLISECONDS
      burst = {
        from: goesOn ? burst.from : startTime,
        to: startTime,
        sum: goesOn ? burst.sum + value : value,
      }
      worst = Math.max(worst ?? 0, burst.sum)
    },
    worst: () => worst,
  }
}

/** Finds the slowest interaction, ignoring one in fifty. */
function createInteractions() {
  const slowest = new Map<number, number>()
  const seen = new Set<number>()
  return {
    add({ interactionId, duration }: Interaction) {
      if (!interactionId) return
      if (seen.size < 10_000) seen.add(interactionId)
      slowest.set(interactionId, Math.max(duration, slowest.get(interactionId) ?? 0))
      if (slowest.size <= SLOWEST_MAXIMUM) return
      const [quickest] = [...slowest].sort(([, a], [, b]) => a - b)[0] ?? []
      if (quickest !== undefined) slowest.delete(quickest)
    },
    slow() {
      const durations = [...slowest.values()].sort((a, b) => b - a)
      const left = Math.floor(seen.size / INTERACTIONS_A_SLOWEST)
      return durations[Math.min(left, durations.length - 1)]
    },
  }
}
