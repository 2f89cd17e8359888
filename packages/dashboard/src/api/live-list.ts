import { keepPreviousData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { useSummary } from './projects.ts'
import { type Listing, liveMilliseconds, livePagesMaximum, type Page } from './queries.ts'

/**
 * The rows of a list as they are now. A short list is asked for again and again; of one with many
 * pages open that would be many requests, so it is asked for when the project's summary changed.
 */
export function useLiveList<P extends Page, Row>(options: Listing<P>, rowsOf: (page: P) => Row[]) {
  const queryClient = useQueryClient()
  const list = useInfiniteQuery({
    ...options,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      (state.data?.pages.length ?? 0) <= livePagesMaximum ? liveMilliseconds : false,
  })
  const { data: summary } = useSummary()
  const known = useRef(summary)
  useEffect(() => {
    if (known.current === summary) return
    if (known.current) void queryClient.invalidateQueries({ queryKey: options.queryKey })
    known.current = summary
  }, [summary, queryClient, options.queryKey])
  const pages = list.data?.pages
  return { ...list, pageCount: pages?.length ?? 0, rows: pages?.flatMap(rowsOf) }
}
