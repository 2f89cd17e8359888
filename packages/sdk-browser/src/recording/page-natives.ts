import { realm } from '../natives.ts'

// biome-ignore lint/suspicious/noShadowRestrictedNames: they are the same, and only safer
export const { Map, Set, WeakMap, WeakSet, Array, Proxy, Reflect } = realm

/** How long one task may delay the page: people notice tasks over 50 ms. */
export const SLICE_MILLISECONDS = 8

/** Milliseconds on a monotonic clock. */
export function elapsed() {
  try {
    return realm.Performance.prototype.now.call(performance)
  } catch {
    // The page has replaced `performance`.
    return performance.now()
  }
}

/**
 * Adds a listener with the browser's own method, even if the page wraps it. Returns a function that
 * removes it.
 */
export function listen<E extends Event>(
  target: EventTarget,
  type: string,
  run: (event: E) => void,
  options: AddEventListenerOptions = {},
) {
  const { addEventListener, removeEventListener } = realm.EventTarget.prototype
  addEventListener.call(target, type, run as (event: Event) => void, options)
  return () => removeEventListener.call(target, type, run as (event: Event) => void, options)
}

/** Returns a function that calls all of these. */
export const together = (ends: (() => void)[]) => () => {
  for (const end of ends) end()
}
