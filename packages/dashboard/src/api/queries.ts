import type { Endpoint, Input } from '@lethe/contract/client.ts'
import { MutationCache, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query'
import { type Body, codeOf, RequestFailed, send } from './call.ts'

/** A change anywhere is on every open page within two seconds. */
export const liveMilliseconds = 1_500

/** Pages of a list that are fetched again while it is live; longer ones follow the summary. */
export const livePagesMaximum = 2

type Named = Endpoint & { schema: { operationId: string } }

/** What a query of this endpoint is known by; without an input, all of them. */
export function keyOf<E extends Named>(endpoint: E, input?: Input<E>): readonly unknown[] {
  return input === undefined ? [endpoint.schema.operationId] : [endpoint.schema.operationId, input]
}

export function reading<E extends Named>(endpoint: E, input: Input<E>) {
  return queryOptions({
    queryKey: keyOf(endpoint, input),
    queryFn: ({ signal }) => send(endpoint, input, signal),
  })
}

export interface Page {
  nextCursor: string | null
}

/** What a list is asked with; made by `listing`. */
export interface Listing<P extends Page> {
  queryKey: readonly unknown[]
  queryFn: (context: { signal: AbortSignal; pageParam: string }) => Promise<P>
  initialPageParam: string
  getNextPageParam: (page: P) => string | null
}

/** All pages of a list, the next one when it is asked for. */
export function listing<E extends Named>(
  endpoint: E,
  input: Input<E>,
): Listing<Extract<Body<E>, Page>> {
  return {
    queryKey: [...keyOf(endpoint, input), 'pages'],
    queryFn: async ({ signal, pageParam }) => {
      const { query } = input as { query?: object }
      const paged = {
        ...(input as object),
        query: { ...query, ...(pageParam && { cursor: pageParam }) },
      }
      return (await send(endpoint, paged as Input<E>, signal)) as Extract<Body<E>, Page>
    },
    initialPageParam: '',
    getNextPageParam: (page) => page.nextCursor,
  }
}

/** `onSignedOut` is called when the server no longer knows who is asking. */
export function makeQueryClient(onSignedOut: () => void): QueryClient {
  const onError = (error: unknown) => {
    if (codeOf(error) === 'unauthorized') onSignedOut()
  }
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // A change that cannot be sent fails at once: one that is kept and sent later would be done
      // although its dialog was cancelled.
      mutations: { networkMode: 'always' },
      queries: {
        networkMode: 'always',
        staleTime: 1_000,
        retry: (failures, error) => failures < 2 && navigator.onLine && mayPass(error),
        refetchOnWindowFocus: true,
        // The client gives an unchanged answer as the same object; and what keeps the digits of a
        // large number would not outlive the comparing and copying.
        structuralSharing: false,
      },
    },
  })
}

/** A refusal does not change when it is retried; no response, or a 503, may be temporary. */
function mayPass(error: unknown): boolean {
  return !(error instanceof RequestFailed) || error.status === 503
}
