import { quiet } from '../quiet.ts'

/** Entries of the browser's timeline; `isBuffered`: also those of before. Nothing where there are none. */
export function observe<E extends PerformanceEntry>(
  type: string,
  isBuffered: boolean,
  told: (entry: E) => void,
  more: object = {},
): () => void {
  try {
    const observer = new PerformanceObserver(
      quiet((list: PerformanceObserverEntryList) => {
        for (const entry of list.getEntries()) told(entry as E)
      }),
    )
    observer.observe({ type, buffered: isBuffered, ...more })
    return () => observer.disconnect()
  } catch {
    return () => {}
  }
}
