/** A place for small texts that never throws. */
export interface Store {
  get(name: string): string | undefined
  set(name: string, value: string): void
  remove(name: string): void
}

/** The first of the browser's stores that works, else memory. Reading them alone can throw. */
export function browserStore(...kinds: ('localStorage' | 'sessionStorage')[]): Store {
  for (const kind of kinds) {
    try {
      const storage = window[kind]
      storage.setItem('lethe', '')
      storage.removeItem('lethe')
      return guarded(storage)
    } catch {}
  }
  return memoryStore()
}

/** A store may still fail later: it fills up, or the visitor clears it. */
function guarded(storage: Storage): Store {
  const attempt = <T>(run: () => T): T | undefined => {
    try {
      return run()
    } catch {
      return undefined
    }
  }
  return {
    get: (name) => attempt(() => storage.getItem(name)) ?? undefined,
    set: (name, value) => attempt(() => storage.setItem(name, value)),
    remove: (name) => attempt(() => storage.removeItem(name)),
  }
}

export function memoryStore(): Store {
  const values = new Map<string, string>()
  return {
    get: (name) => values.get(name),
    set: (name, value) => void values.set(name, value),
    remove: (name) => void values.delete(name),
  }
}

/** A value kept as JSON; one that is not what was written counts as absent. */
export function readJson<T>(store: Store, name: string): T | undefined {
  try {
    return JSON.parse(store.get(name) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}
