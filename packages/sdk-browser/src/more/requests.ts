import { isFailedRequest } from '@lethe/contract/recorded-events.ts'
import { quiet } from '../quiet.ts'
import { elapsed, listen, together } from '../recording/page-natives.ts'
import { spy } from '../recording/spies.ts'
import type { MoreOptions } from './more.ts'
import { observe } from './observe.ts'
import type { Tell } from './signals.ts'

/** A request that has ended. */
interface Ended {
  method: string
  url: string
  status: number
  milliseconds: number
  isAborted: boolean
}

/** A fetch that has no entry in the browser's timeline yet. */
interface Started {
  method: string
  /** When the call to `fetch` returned. */
  at: number
  isAborted(): boolean
  /** The page can't read its response either. */
  isOpaque: boolean
}

const STARTED_MAXIMUM = 1_000

/**
 * Reports failed and slow requests. The promise of a fetch belongs to the page, so only its start
 * is observed; its end comes from the browser's performance timeline.
 */
export function watchRequests(
  { server }: Pick<MoreOptions, 'server'>,
  slowMilliseconds: number | undefined,
  tell: Tell,
  started: () => void,
): () => void {
  const own = server.url('').replace(/ingest\/v1\/.*$/s, '')
  const ended = ({ method, url, status, milliseconds, isAborted }: Ended) => {
    if (slowMilliseconds === undefined || url.startsWith(own)) return
    const isFailed = isFailedRequest(status)
    if (!isFailed && milliseconds < slowMilliseconds) return
    if (isAborted && status < 400) return
    tell('lethe.request', { method, url, status, milliseconds: Math.round(milliseconds) })
  }
  const fetches = createFetches(ended)
  const ends = [
    spyOnFetch((url, one) => {
      // The SDK's own requests are not a reaction to a click.
      if (url.startsWith(own)) return
      started()
      if (slowMilliseconds !== undefined) fetches.start(url, one)
    }),
    spyOnXhr(started, ended),
    slowMilliseconds === undefined ? () => {} : observe('resource', false, fetches.end),
  ]
  return together(ends)
}

/** Fetches in progress, by URL. */
function createFetches(ended: (request: Ended) => void) {
  const waiting = new Map<string, Started[]>()
  let count = 0
  return {
    start(url: string, one: Omit<Started, 'at'>) {
      const { href } = new URL(url, document.baseURI)
      if (count >= STARTED_MAXIMUM || !href.startsWith('http')) return
      const key = withoutHash(href)
      count++
      waiting.set(key, [...(waiting.get(key) ?? []), { ...one, at: elapsed() }])
    },
    end(entry: PerformanceResourceTiming) {
      const { name, initiatorType, duration, startTime, responseStatus } = entry
      const key = withoutHash(name)
      const list = initiatorType === 'fetch' ? (waiting.get(key) ?? []) : []
      // The browser starts a request during the call, so of several to one URL this entry belongs
      // to the first whose call returned after the entry's start.
      const at = list.findIndex((each) => each.at >= startTime)
      const [request] = list.splice(at < 0 ? list.length - 1 : at, 1)
      if (!request) return
      count--
      if (!list.length) waiting.delete(key)
      const { method, isOpaque } = request
      // Browsers without `responseStatus` don't report failures, so the status counts as 200.
      const status = responseStatus || (isOpaque ? 200 : (responseStatus ?? 200))
      ended({ method, url: name, status, milliseconds: duration, isAborted: request.isAborted() })
    },
  }
}

type Start = (url: string, one: Omit<Started, 'at'>) => void

const withoutHash = (url: string) => url.replace(/#.*/s, '')

function spyOnFetch(start: Start) {
  return spy(globalThis, 'fetch', (_, [input, init]) => {
    const request = input instanceof Request ? input : undefined
    const { method, signal, mode } = { ...(init as RequestInit | undefined) }
    const url = request?.url ?? (input instanceof URL ? input.href : input)
    if (typeof url !== 'string') return
    const abortSignal = signal ?? request?.signal
    start(url, {
      method: String(method ?? request?.method ?? 'GET').toUpperCase(),
      isAborted: () => Boolean(abortSignal?.aborted),
      isOpaque: (mode ?? request?.mode) === 'no-cors',
    })
  })
}

/** Uses the request's events to see how it ended; the page can't see added listeners. */
function spyOnXhr(started: () => void, ended: (request: Ended) => void) {
  const opened = new WeakMap<object, Ended & { from: number }>()
  const { prototype } = XMLHttpRequest
  let isOver = false
  const happened = ({ type, target }: Event) => {
    const request = opened.get(target as object)
    if (!request || isOver) return
    if (type === 'abort') request.isAborted = true
    else {
      const { status } = target as XMLHttpRequest
      ended({ ...request, status, milliseconds: elapsed() - request.from })
    }
  }
  const ends = [
    spy(prototype, 'open', (xhr, [method, address]) => {
      const isNew = !opened.has(xhr)
      const { href: url } = new URL(String(address), document.baseURI)
      const request = { method: String(method).toUpperCase(), url, status: 0, milliseconds: 0 }
      opened.set(xhr, { ...request, isAborted: false, from: elapsed() })
      // Added in `open`, because a synchronous request has ended when `send` returns.
      if (!isNew) return
      for (const type of ['abort', 'loadend']) listen(xhr as XMLHttpRequest, type, quiet(happened))
    }),
    spy(prototype, 'send', (xhr) => {
      started()
      const request = opened.get(xhr)
      if (request) request.from = elapsed()
    }),
  ]
  return () => {
    isOver = true
    together(ends)()
  }
}
