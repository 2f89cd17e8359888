/**
 * Shares runs of `work` among callers with the same key. A caller that comes during a run shares
 * the next one with all others who do, so that every result was obtained after the call. `rest`
 * follows from the key.
 */
export function sharing<T, Rest extends unknown[]>(
  work: (key: string, ...rest: Rest) => Promise<T>,
): (key: string, ...rest: Rest) => Promise<T> {
  const all = new Map<string, { running: Promise<T>; next?: Promise<T> }>()

  function begin(key: string, ...rest: Rest): Promise<T> {
    const one: { running: Promise<T>; next?: Promise<T> } = { running: work(key, ...rest) }
    all.set(key, one)
    const forget = () => {
      if (!one.next) all.delete(key)
    }
    one.running.then(forget, forget)
    return one.running
  }

  return (key, ...rest) => {
    const known = all.get(key)
    if (!known) return begin(key, ...rest)
    const again = () => begin(key, ...rest)
    known.next ??= known.running.then(again, again)
    return known.next
  }
}
