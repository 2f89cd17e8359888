import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { useLiveList } from '../api/live-list.ts'
import type { Page } from '../api/queries.ts'
import { counted } from './number.ts'
import { ErrorPanel, Skeletons } from './states.tsx'
import { ListEnd } from './table.tsx'

/** The rows of a list, or what there is to say while, or because, there are none. */
export function List<P extends Page, Row>({
  list,
  names: [one, many],
  empty,
  isRemembered = false,
  first,
  children,
}: {
  list: ReturnType<typeof useLiveList<P, Row>>
  /** What a row is called, and many of them. */
  names: [one: string, many: string]
  /** Where there is none. */
  empty: ReactNode
  /** Whether the address keeps how many pages are open. */
  isRemembered?: boolean
  /** What those that are shown are of all; else the latest. */
  first?: string | undefined
  children: (rows: Row[]) => ReactNode
}) {
  const { rows = [] } = list
  const navigate = useNavigate()
  const openMore = async () => {
    await list.fetchNextPage()
    if (!isRemembered) return
    const search = (before: object) => ({ ...before, pages: list.pageCount + 1 })
    void navigate({ to: '.', search: search as never, replace: true, resetScroll: false })
  }
  if (list.isPending) return <Skeletons rows={8} className="h-7" />
  if (list.isError && !list.data) {
    return (
      <ErrorPanel
        error={list.error}
        title={`${many[0]?.toUpperCase()}${many.slice(1)} could not be loaded`}
        retry={() => void list.refetch()}
      />
    )
  }
  if (rows.length === 0) return empty
  return (
    <>
      {children(rows)}
      <ListEnd hasMore={list.hasNextPage} isLoading={list.isFetchingNextPage} onMore={openMore}>
        {first ?? (list.hasNextPage ? 'Latest ' : '')}
        {counted(rows.length, one, many)}
      </ListEnd>
    </>
  )
}
