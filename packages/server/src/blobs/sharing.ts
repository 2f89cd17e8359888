/**
 * Work that many ask for with the same key: whoever asks while it is under way shares the next time
 * with all others who do, so that what is answered was found out, or done, after it was asked for.
 */
export function sharing<T>(work: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const all = new Map<string, { running: Promise<T>; next?: Promise<T> }>()

  function begin(key: string): Promise<T> {
    const one: { running: Promise<T>; next?: Promise<T> } = { running: work(key) }
    all.set(key, one)
    const forget = () => {
      if (!one.next) all.delete(key)
    }
    one.running.then(forget, forget)
    return one.running
  }

  return (key) => {
    const known = all.get(key)
    if (!known) return begin(key)
    const again = () => begin(key)
    known.next ??= known.running.then(again, again)
    return known.next
  }
}
