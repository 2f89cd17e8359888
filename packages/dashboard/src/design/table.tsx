import type { ComponentProps, MouseEvent, ReactNode } from 'react'
import { Button } from './button.tsx'

/**
 * Rows with a head that stays in sight, for lists of a few pages; one that gets long is a
 * `LongTable`. Figures stand at the right, under each other.
 */
export function Table({
  label,
  children,
  className = '',
}: {
  label: string
  children: ReactNode
  className?: string
}) {
  return (
    <table
      aria-label={label}
      className={`w-full border-separate border-spacing-0 text-base ${className}`}
    >
      {children}
    </table>
  )
}

interface CellProps {
  isNumber?: boolean
  /** Left out where the window is narrow. */
  from?: 'sm' | 'md' | 'lg' | 'xl' | undefined
}

const shownFrom = {
  sm: 'hidden sm:table-cell',
  md: 'hidden md:table-cell',
  lg: 'hidden lg:table-cell',
  xl: 'hidden xl:table-cell',
} as const

export function Head({
  isNumber = false,
  from,
  className = '',
  ...rest
}: CellProps & ComponentProps<'th'>) {
  return (
    <th
      scope="col"
      // biome-ignore lint/a11y/noRedundantRoles: as in long-table.tsx
      role="columnheader"
      {...rest}
      className={`sticky top-12 z-10 h-8 border-b border-line bg-surface px-3 text-sm font-medium whitespace-nowrap text-muted first:pl-4 lg:top-0 last:pr-4 ${isNumber ? 'text-right' : 'text-left'} ${from ? shownFrom[from] : ''} ${className}`}
    />
  )
}

export function Cell({
  isNumber = false,
  from,
  className = '',
  ...rest
}: CellProps & ComponentProps<'td'>) {
  return (
    <td
      // biome-ignore lint/a11y/noRedundantRoles: as in long-table.tsx
      role="cell"
      {...rest}
      className={`h-9 border-b border-line px-3 py-1 first:pl-4 last:pr-4 group-last:border-b-0 ${isNumber ? 'text-right' : ''} ${from ? shownFrom[from] : ''} ${className}`}
    />
  )
}

/**
 * A row that `leads` somewhere leads there wherever it is clicked: to its link with `data-row`, as
 * which it is for the keyboard. Not by stretching the link over it: with anything positioned in each
 * of some thousand rows the browser can no longer scroll smoothly.
 */
export function Row({
  className = '',
  leads = false,
  ...rest
}: ComponentProps<'tr'> & { leads?: boolean }) {
  return (
    <tr
      // biome-ignore lint/a11y/noRedundantRoles: as in long-table.tsx
      role="row"
      {...rest}
      {...(leads && { onClick: followRow })}
      className={`group hover:bg-hover ${leads ? 'cursor-pointer' : ''} ${className}`}
    />
  )
}

function followRow(event: MouseEvent<HTMLTableRowElement>): void {
  const { target, currentTarget, ctrlKey, metaKey, shiftKey } = event
  const isForItself = (target as Element).closest('a, button, input, label') !== null
  if (isForItself || window.getSelection()?.isCollapsed === false) return
  const init = { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }
  currentTarget.querySelector('a[data-row]')?.dispatchEvent(new window.MouseEvent('click', init))
}

/** What a cell says where there is nothing to say. */
export function None() {
  return (
    <span role="img" aria-label="none" className="text-muted">
      –
    </span>
  )
}

/** Over a column of buttons and menus. */
export function ActionsHead() {
  return (
    <Head>
      <span className="sr-only">Actions</span>
    </Head>
  )
}

/** The end of a list: more of it, or how much there was. */
export function ListEnd({
  hasMore,
  isLoading,
  onMore,
  children,
}: {
  hasMore: boolean
  isLoading: boolean
  onMore: () => void
  children: ReactNode
}) {
  return (
    <div className="flex min-h-14 items-center justify-between gap-4 border-t border-line px-4 text-sm text-muted">
      <span role="status" className="tabular">
        {children}
      </span>
      {hasMore && (
        <Button size="small" isBusy={isLoading} onClick={onMore}>
          Load more
        </Button>
      )}
    </div>
  )
}
