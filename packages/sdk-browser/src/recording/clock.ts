import { elapsed } from './page-natives.ts'

/** What `elapsed` counts from, in milliseconds since 1970. */
let origin = Number.NEGATIVE_INFINITY

/**
 * Sets the clock of the recording forward: to the time of day, and past what was recorded before.
 * Never back, whatever somebody does to the time of day.
 */
export function setClock(atLeast = 0) {
  origin = Math.max(origin, Date.now() - elapsed(), atLeast - elapsed())
}

/** Milliseconds since 1970 on a clock that only goes on; the times of all events. */
export function now() {
  if (origin < 0) setClock()
  return Math.round(origin + elapsed())
}
