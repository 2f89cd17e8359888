import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import type { Platform } from '../src/platform.ts'
import type { Carrier } from '../src/recording/carrier.ts'
import { memoryStore } from '../src/storage.ts'

export interface Request {
  endpoint: string
  query: Record<string, string>
  body: string
  at: number
}

/** What the server returns: a status and a body, or nothing if the network is down. */
export type Reply = { status: number; body: object; headers?: Record<string, string> } | undefined

export interface FakePlatform {
  platform: Platform & Carrier & { takesBeacons: boolean }
  clock: { now: number }
  timers: Set<{ at: number; run: () => void }>
  requests: Request[]
  beacons: Request[]
  /** The requests to one endpoint. */
  to(endpoint: string): Request[]
  /** Lets time pass, timer by timer, and everything that follows from each. */
  pass(milliseconds: number): Promise<void>
}

/**
 * A browser whose clock stands until the test moves it, and whose network is a function of the
 * test. Two platforms can share their `shared` store, as tabs do.
 */
export function fakePlatform(
  reply: (request: Request) => Reply,
  others?: FakePlatform,
): FakePlatform {
  const clock = others?.clock ?? { now: 1_000_000 }
  const timers = others?.timers ?? new Set<{ at: number; run: () => void }>()
  const requests: Request[] = []
  const beacons: Request[] = []
  const read = (url: string, body: string | Uint8Array): Request => {
    const { pathname, searchParams } = new URL(url)
    const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
    const query = Object.fromEntries(searchParams)
    return { endpoint: pathname.split('/').at(-1) ?? '', query, body: text, at: clock.now }
  }
  const platform: FakePlatform['platform'] = {
    now: () => clock.now,
    random: Math.random,
    after(milliseconds, run) {
      const timer = { at: clock.now + milliseconds, run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    async fetch(url, body) {
      const request = read(url, body)
      requests.push(request)
      const answer = reply(request)
      if (!answer) throw new TypeError('Failed to fetch')
      return Response.json(answer.body, { status: answer.status, headers: answer.headers ?? {} })
    },
    beacon(url, body) {
      if (platform.takesBeacons) beacons.push(read(url, body))
      return platform.takesBeacons
    },
    takesBeacons: true,
    // Plain, so that a test can read it; what gzip does is tried in a real browser.
    compress: async () => undefined,
    shared: others?.platform.shared ?? memoryStore(),
    tab: memoryStore(),
    exclusively: (_, run) => run(),
    pageUrl: () => 'https://shop.example/p?token=secret',
  }
  return {
    platform,
    clock,
    timers,
    requests,
    beacons,
    to: (endpoint) => requests.filter((each) => each.endpoint === endpoint),
    async pass(milliseconds) {
      const end = clock.now + milliseconds
      await settle()
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!due) break
        timers.delete(due)
        clock.now = Math.max(clock.now, due.at)
        due.run()
        await settle()
      }
      clock.now = end
    },
  }
}

/** Everything that waits for nothing but promises. */
export async function settle() {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

export const settings: RecordingSettings = {
  masking: 'balanced',
  assets: true,
  sampleRate: 1,
  sessionIdleSeconds: 1800,
  sessionMaximumSeconds: 86_400,
  chunkBytesMaximum: 1_000_000,
}

export const go = { status: 200, body: { next: 'continue' } }
export const retired = { status: 410, body: { next: 'new_browser', error: {} } }

let count = 0
export const started = (browserId?: string) => ({
  status: 200,
  body: {
    next: 'continue',
    browserId: browserId ?? `b${++count}`,
    sessionId: `s${++count}`,
    settings,
  },
})
