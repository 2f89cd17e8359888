import { quiet } from './quiet.ts'
import { browserStore, type Store } from './storage.ts'

/** What the SDK needs of the browser, as one value, so that its logic runs anywhere. */
export interface Platform {
  /** Milliseconds since 1970. */
  now(): number
  random(): number
  /** Runs once after a while; answers how to call it off. */
  after(milliseconds: number, run: () => void): () => void
  fetch(url: string, body: string | Uint8Array<ArrayBuffer>): Promise<Response>
  /** Whether the browser has taken it; whether it arrives is never known. */
  beacon(url: string, body: string | Uint8Array<ArrayBuffer>): boolean
  /** Gzip; nothing where the browser cannot. */
  compress(text: string): Promise<Uint8Array<ArrayBuffer> | undefined>
  /** Kept in this browser, shared by its tabs. */
  shared: Store
  /** Kept in this tab, over page loads. */
  tab: Store
  pageUrl(): string
  /** One tab at a time, where the browser can tell them to wait (only on https). */
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
    async fetch(url, body) {
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), REQUEST_TIMEOUT_MILLISECONDS)
      try {
        // text/plain asks for no preflight; the page's address is nobody's business.
        return await fetch(url, {
          method: 'POST',
          body,
          headers: { 'content-type': 'text/plain' },
          credentials: 'omit',
          referrerPolicy: 'no-referrer',
          signal: abort.signal,
        })
      } finally {
        clearTimeout(timer)
      }
    },
    beacon(url, body) {
      return navigator.sendBeacon(url, new Blob([body], { type: 'text/plain' }))
    },
    async compress(text) {
      if (typeof CompressionStream === 'undefined') return undefined
      // In a task of its own: the one that wrote the text has kept the page waiting already.
      await new Promise((resolve) => setTimeout(resolve))
      const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
      return new Uint8Array(await new Response(stream).arrayBuffer())
    },
    shared: browserStore('localStorage', 'sessionStorage'),
    tab: browserStore('sessionStorage'),
    pageUrl: () => location.href,
    async exclusively(name, run) {
      let begun = false
      try {
        return await navigator.locks.request(name, () => {
          begun = true
          return run()
        })
      } catch (fault) {
        // There are no locks on http, and a sandboxed frame may not ask for one.
        if (begun) throw fault
        return run()
      }
    },
  }
}
