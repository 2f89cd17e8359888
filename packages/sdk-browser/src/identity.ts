import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import { readJson, type Store } from './storage.ts'

/** Who this browser is to the server, and its session. Times in milliseconds since 1970. */
export interface Identity {
  browserId: string
  sessionId: string
  startedAt: number
  /** When something was last done in any tab. */
  activeAt: number
  /** Whether this session is one of those that are recorded (`sampleRate`). */
  sampled: boolean
  /** Whether the browser was identified. By whom is not kept here. */
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

/** The identity all tabs of the browser share, one a public key. */
export function sharedIdentity(store: Store, key: string) {
  const name = `lethe.${key}`
  return {
    name,
    read() {
      const identity = readJson<Identity>(store, name)
      return identity?.browserId && identity.sessionId && identity.settings ? identity : undefined
    },
    write: (identity: Identity) => store.set(name, JSON.stringify(identity)),
    remove: () => store.remove(name),
  }
}

export type SharedIdentity = ReturnType<typeof sharedIdentity>
