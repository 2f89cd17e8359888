import { realm } from './natives.ts'

/** A place for small texts that never throws. */
export interface Store {
  get(name: string): string | undefined
  set(name: string, value: string): unknown
  remove(name: string): unknown
}

/** The first of the browser's stores that works, else memory. Reading them alone can throw. */
export function browserStore(...kinds: ('localStorage' | 'sessionStorage')[]): Store {
  for (const kind of kinds) {
    try {
      const { setItem, removeItem } = realm.Storage.prototype
      const storage = window[kind]
      setItem.call(storage, 'lethe', '')
      removeItem.call(storage, 'lethe')
      return guarded(storage)
    } catch {}
  }
  return memoryStore()
}

/** A store may still fail later: it fills up, or the visitor clears it. */
function guarded(storage: Storage): Store {
  const { getItem, setItem, removeItem } = realm.Storage.prototype
  const attempt =
    <A extends unknown[], T>(run: (...input: A) => T) =>
    (...input: A) => {
      try {
        return run.apply(storage, input) ?? undefined
      } catch {
        return undefined
      }
    }
  return { get: attempt(getItem), set: attempt(setItem), remove: attempt(removeItem) }
}

export function memoryStore(): Store {
  const values = new realm.Map<string, string>()
  return Object.assign(values, { remove: values.delete })
}

/** A value kept as JSON; one that is not what was written counts as absent. */
export function parseJson<T>(text = 'null'): T | undefined {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}
