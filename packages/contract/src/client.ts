import type { Static, TSchema } from 'typebox'
import type { ErrorBody, ErrorCode, ErrorDetail } from './errors.ts'

export interface Endpoint {
  method: string
  url: string
  schema: {
    params?: TSchema
    querystring?: TSchema
    body?: TSchema
    response: Record<number, TSchema>
  }
}

type Part<S, K extends 'params' | 'body'> =
  S extends Record<K, infer T extends TSchema> ? Record<K, Static<T>> : unknown

type Query<S> = S extends { querystring: infer T extends TSchema }
  ? { query?: Partial<Static<T>> }
  : unknown

export type Input<E extends Endpoint> = Part<E['schema'], 'params'> &
  Part<E['schema'], 'body'> &
  Query<E['schema']>

type Success = 200 | 201 | 202
export type Reply<E extends Endpoint> = {
  [S in keyof E['schema']['response'] & Success]: E['schema']['response'][S] extends TSchema
    ? { status: S; body: Static<E['schema']['response'][S]> }
    : never
}[keyof E['schema']['response'] & Success]

/** A 4xx or 5xx response; `code` is one of the contract's error codes. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed'
  readonly status: number
  readonly code: ErrorCode
  readonly requestId: string
  readonly details: ErrorDetail[]

  constructor(status: number, { error }: ErrorBody) {
    super(error.message)
    this.status = status
    this.code = error.code
    this.requestId = error.requestId
    this.details = error.details ?? []
  }
}

/**
 * Calls endpoints of the contract; the types of a call follow from the endpoint.
 * Throws RequestFailed for a 4xx or 5xx response, and what `fetch` throws when there was none.
 */
export function client(
  baseUrl: string,
  key: string,
  fetch: typeof globalThis.fetch = globalThis.fetch,
) {
  return async <E extends Endpoint>(endpoint: E, input: Input<E>): Promise<Reply<E>> => {
    const {
      params = {},
      query = {},
      body,
    } = input as {
      params?: Record<string, string>
      query?: Record<string, unknown>
      body?: unknown
    }
    const path = endpoint.url.replace(/:(\w+)/g, (_, name) =>
      encodeURIComponent(params[name] ?? ''),
    )
    const search = queryText(query)
    const url = search === '' ? `${baseUrl}${path}` : `${baseUrl}${path}?${search}`
    const response = await fetch(url, {
      method: endpoint.method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const reply: unknown = await response.json()
    if (!response.ok) throw new RequestFailed(response.status, reply as ErrorBody)
    return { status: response.status, body: reply } as Reply<E>
  }
}

/** Writes a query with spaces as %20, because a raw + in an externalId is refused. */
export function queryText(query: Record<string, unknown>): string {
  const given = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, String(value)] as [string, string])
  return String(new URLSearchParams(given)).replaceAll('+', '%20')
}
