import { realm } from '../natives.ts'

// biome-ignore lint/suspicious/noShadowRestrictedNames: they are the same, and only safer
export const { Map, Set, WeakMap, WeakSet, Array, Proxy, Reflect } = realm

/** Milliseconds on a clock that only goes on. */
export function elapsed() {
  try {
    return realm.Performance.prototype.now.call(performance)
  } catch {
    // The page has an object of its own there.
    return performance.now()
  }
}

/** Listens past what the page has put around its listeners; returns how to end that. */
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
