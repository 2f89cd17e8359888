import { clearTimeout, realm, setTimeout } from './natives.ts'
import { quiet } from './quiet.ts'
import { browserStore, type Store } from './storage.ts'

export type Body = string | Uint8Array<ArrayBuffer>

/** What the SDK needs of the browser, as one value, so that its logic runs anywhere. */
export interface Platform {
  /** Milliseconds since 1970. */
  now(): number
  random(): number
  /** Runs `run` once after this time; returns a function that cancels it. */
  after(milliseconds: number, run: () => void): () => void
  fetch(url: string, body: Body): Promise<Response>
  /** Kept in this browser, shared by its tabs. */
  shared: Store
  /** Kept in this tab, over page loads. */
  tab: Store
  pageUrl(): string
  /** Runs in one tab at a time, if the browser has locks (only on https). */
  exclusively<T>(name: string, run: () => Promise<T>): Promise<T>
}

const REQUEST_TIMEOUT_MILLISECONDS = 30_000

export function browserPlatform(): Platform {
  return {
    now: Date.now,
    random: Math.random,
    after(milliseconds, run) {
      const timer = setTimeout(quiet(run), milliseconds)
      return () => clearTimeout(timer)
    },
    fetch: post,
    shared: browserStore('localStorage', 'sessionStorage'),
    tab: browserStore('sessionStorage'),
    pageUrl: () => location.href,
    async exclusively(name, run) {
      try {
        return await navigator.locks.request(name, run)
      } catch {
        // There are no locks on http, and a sandboxed frame may not ask for one.
        return run()
      }
    },
  }
}

/** text/plain needs no preflight, and the page's address is not sent. */
const post = (url: string, body: Body) =>
  realm.fetch.call(window, url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/plain' },
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
    // Older browsers wait for as long as the connection lives.
    signal: AbortSignal.timeout?.(REQUEST_TIMEOUT_MILLISECONDS) as AbortSignal,
  })

export const pause = ({ after }: Platform, milliseconds: number) =>
  new Promise<void>((resolve) => {
    after(milliseconds, resolve)
  })
