import { type Endpoint, type Input, queryText, type Reply, RequestFailed } from './client.ts'
import type { ErrorBody } from './errors.ts'
import { parseExactly } from './exact-json.ts'

/** Responses kept for revalidation by ETag; the least recently used one is dropped first. */
const keptMaximum = 100

/**
 * Calls the dashboard's own endpoints from a page of the dashboard; the browser adds the sign-in
 * cookie. A repeated GET revalidates its response by ETag and returns the same object if it has not
 * changed, so polling costs little and renders nothing.
 *
 * Throws RequestFailed for a 4xx or 5xx response, and what `fetch` throws when there was none.
 */
export function dashboardClient(baseUrl = '', fetch: typeof globalThis.fetch = globalThis.fetch) {
  const kept = new Map<string, { etag: string; body: unknown }>()

  function keep(url: string, etag: string | null, body: unknown) {
    kept.delete(url)
    if (etag === null) return
    kept.set(url, { etag, body })
    const [oldest] = kept.keys()
    if (kept.size > keptMaximum && oldest !== undefined) kept.delete(oldest)
  }

  async function call<E extends Endpoint>(
    endpoint: E,
    input: Input<E>,
    options: { signal?: AbortSignal } = {},
  ): Promise<Reply<E>> {
    const { body } = input as { body?: unknown }
    const url = baseUrl + pathOf(endpoint, input as object)
    const known = endpoint.method === 'GET' ? kept.get(url) : undefined
    const response = await fetch(url, {
      method: endpoint.method,
      credentials: 'same-origin',
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(known && { 'if-none-match': known.etag }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(options.signal && { signal: options.signal }),
    })
    if (known && response.status === 304) {
      keep(url, known.etag, known.body)
      return { status: 200, body: known.body } as Reply<E>
    }
    const reply = parseExactly(await response.text())
    if (!response.ok) throw new RequestFailed(response.status, reply as ErrorBody)
    if (endpoint.method === 'GET') keep(url, response.headers.get('etag'), reply)
    return { status: response.status, body: reply } as Reply<E>
  }

  return {
    call,
    /** Forgets all kept responses; call it at sign-out. */
    forget: () => kept.clear(),
  }
}

/** The path and query of a call, for links (`download`) and streams (`fetch`) too. */
export function pathOf(endpoint: { url: string }, input: object): string {
  const { params = {}, query: asked = {} } = input as {
    params?: Record<string, string>
    query?: Record<string, unknown>
  }
  const path = endpoint.url.replace(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ''))
  const query = queryText(asked)
  return query === '' ? path : `${path}?${query}`
}
