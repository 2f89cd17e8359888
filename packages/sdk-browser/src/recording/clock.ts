import { elapsed } from './page-natives.ts'

/** The origin of `elapsed`, in milliseconds since 1970. */
let origin = Number.NEGATIVE_INFINITY

/**
 * Sets the clock of the recording forward to the system time, and past what was recorded before.
 * Never back, even if the system time is changed.
 */
export function setClock(atLeast = 0) {
  origin = Math.max(origin, Date.now() - elapsed(), atLeast - elapsed())
}

/** Milliseconds since 1970 on a monotonic clock. All events use it. */
export function now() {
  if (origin < 0) setClock()
  return Math.round(origin + elapsed())
}
