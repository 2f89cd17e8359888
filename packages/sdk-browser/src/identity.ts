import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import { parseJson, type Store } from './storage.ts'

/**
 * Which browser the tabs record as. It is written down in the very call that leaves the browser
 * before it, so that every tab sees the change at its next event; the server's ids come later.
 */
export interface Mark {
  /** Another one whenever this browser becomes another. */
  id: string
  /** A salted hash of the user the application named last; nothing else of them is kept here. */
  user?: string | undefined
}

/** Who this browser is to the server, and its session. Times in milliseconds since 1970. */
export interface Identity extends Mark {
  browserId: string
  sessionId: string
  startedAt: number
  /** When something was last done in any tab. */
  activeAt: number
  /** Whether this session is one of those that are recorded (`sampleRate`). */
  sampled: boolean
  /** Whether the server has tied the browser to `user`. */
  linked: boolean
  settings: RecordingSettings
}

/** Whether the session goes on: neither idle for too long nor too old. */
export function isLive({ settings, activeAt, startedAt }: Identity, now: number) {
  return (
    now - activeAt < settings.sessionIdleSeconds * 1000 &&
    now - startedAt < settings.sessionMaximumSeconds * 1000
  )
}

export const isWhole = (mark: Mark | undefined): mark is Identity =>
  mark !== undefined && 'settings' in mark

/** Tells users apart, and is not to be turned back: 64 bits, salted by what is of this browser. */
export function hashOfUser(generation: string, userId: string) {
  let high = 0
  let low = 1
  for (const letter of `${generation} ${userId} ${generation}`) {
    const code = letter.codePointAt(0) ?? 0
    high = Math.imul(high ^ code, 0x9e3779b1) ^ (low >>> 15)
    low = Math.imul(low ^ code, 0x5f356495) ^ (high >>> 13)
  }
  return `${high}${low}`
}

/** The identity all tabs of the browser share, one a public key; a mark stands beside its place. */
export function sharedIdentity(store: Store, key: string) {
  const name = `lethe.${key}`
  const next = `lethe.next.${key}`
  let seen: string | undefined
  const text = () => store.get(name) ?? store.get(next)
  const read = (): Mark | undefined => {
    seen = text()
    const mark = parseJson<Mark>(seen)
    return mark?.id ? mark : undefined
  }
  return {
    name,
    read,
    /** What another tab has written since it was last read; cheap enough for every event. */
    news: () => (text() === seen ? undefined : read()),
    write(mark: Mark) {
      seen = JSON.stringify(mark)
      const [place, other] = isWhole(mark) ? [name, next] : [next, name]
      store.set(place, seen)
      store.remove(other)
    },
    remove() {
      store.remove(name)
      store.remove(next)
    },
  }
}

export type SharedIdentity = ReturnType<typeof sharedIdentity>
