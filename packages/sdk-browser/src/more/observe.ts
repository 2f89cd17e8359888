import { quiet } from '../quiet.ts'

/**
 * Observes entries of the browser's performance timeline, with `isBuffered` also earlier ones. Does
 * nothing if the browser doesn't support the type.
 */
export function observe<E extends PerformanceEntry>(
  type: string,
  isBuffered: boolean,
  run: (entry: E) => void,
  more: object = {},
): () => void {
  try {
    const observer = new PerformanceObserver(
      quiet((list: PerformanceObserverEntryList) => {
        for (const entry of list.getEntries()) run(entry as E)
      }),
    )
    observer.observe({ type, buffered: isBuffered, ...more })
    return () => observer.disconnect()
  } catch {
    return () => {}
  }
}
