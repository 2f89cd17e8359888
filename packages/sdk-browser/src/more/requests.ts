import { isFailedRequest } from '@lethe/contract/recorded-events.ts'
import { quiet } from '../quiet.ts'
import { elapsed, listen, together } from '../recording/page-natives.ts'
import { spy } from '../recording/spies.ts'
import type { MoreOptions } from './more.ts'
import { observe } from './observe.ts'
import type { Tell } from './signals.ts'

/** How a request of the page ended. */
interface Ended {
  method: string
  url: string
  status: number
  milliseconds: number
  isAborted: boolean
}

/** A fetch that the browser has not told the end of. */
interface Started {
  method: string
  /** When the call that began it had returned. */
  at: number
  isAborted(): boolean
  /** Its response is hidden from the page as well. */
  isOpaque: boolean
}

const STARTED_MAXIMUM = 1_000

/**
 * Tells of failed and slow requests. The promise of a fetch is the page's: here only its start is
 * seen, and the browser's own timeline says how it ended.
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
      // Our own requests are not a reaction to a click.
      if (url.startsWith(own)) return
      started()
      if (slowMilliseconds !== undefined) fetches.start(url, one)
    }),
    spyOnXhr(started, ended),
    slowMilliseconds === undefined ? () => {} : observe('resource', false, fetches.told),
  ]
  return together(ends)
}

/** Fetches under way, by their addresses. */
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
    told(entry: PerformanceResourceTiming) {
      const { name, initiatorType, duration, startTime, responseStatus } = entry
      const key = withoutHash(name)
      const list = initiatorType === 'fetch' ? (waiting.get(key) ?? []) : []
      // The browser begins with a request within the call: of several to one address it is the
      // first whose call had returned by then.
      const at = list.findIndex((each) => each.at >= startTime)
      const [request] = list.splice(at < 0 ? list.length - 1 : at, 1)
      if (!request) return
      count--
      if (!list.length) waiting.delete(key)
      const { method, isOpaque } = request
      // Browsers that do not say the status say nothing of a failure either.
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
    const ofIt = signal ?? request?.signal
    start(url, {
      method: String(method ?? request?.method ?? 'GET').toUpperCase(),
      isAborted: () => Boolean(ofIt?.aborted),
      isOpaque: (mode ?? request?.mode) === 'no-cors',
    })
  })
}

/** Its events say how it ended; a listener of ours is seen by nobody. */
function spyOnXhr(started: () => void, ended: (request: Ended) => void) {
  const opened = new WeakMap<object, Ended & { from: number }>()
  const of = XMLHttpRequest.prototype
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
    spy(of, 'open', (xhr, [method, address]) => {
      const isNew = !opened.has(xhr)
      const { href: url } = new URL(String(address), document.baseURI)
      const request = { method: String(method).toUpperCase(), url, status: 0, milliseconds: 0 }
      opened.set(xhr, { ...request, isAborted: false, from: elapsed() })
      // Here, for one that the page waits for has ended when `send` returns.
      if (!isNew) return
      for (const type of ['abort', 'loadend']) listen(xhr as XMLHttpRequest, type, quiet(happened))
    }),
    spy(of, 'send', (xhr) => {
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
