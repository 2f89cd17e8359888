import { type CSSProperties, type ReactNode, useLayoutEffect, useRef } from 'react'

/**
 * A table of any number of rows. They stand in parts, and the browser leaves out of style, layout
 * and painting what is far from the window. Every row is in the document all the same, so that the
 * browser's own search finds it, and Tab gets to it. Chromium shows a screen reader only what is
 * drawn: rows say which of how many they are. A part that is left out has to know its columns
 * without its neighbours: the cells say how wide they are, by the classes of a flex item, the same
 * ones in `head` and in every row.
 */
export function LongTable<T>({
  label,
  head,
  rows,
  idOf,
  children,
}: {
  label: string
  /** The cells of the head. */
  head: ReactNode
  rows: readonly T[]
  idOf: (row: T) => string
  children: (row: T) => ReactNode
}) {
  const table = useRef<HTMLTableElement>(null)
  // Not by React: one row more on top would render each of some thousand others again.
  useLayoutEffect(() => {
    for (const [place, row] of Array.from(table.current?.rows ?? []).entries()) {
      const index = String(place + 1)
      if (row.ariaRowIndex !== index) row.ariaRowIndex = index
    }
  })
  return (
    // biome-ignore-start lint/a11y/noRedundantRoles: one that is laid out otherwise is no table to Safari
    <table
      ref={table}
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      className="long-table text-base"
    >
      <thead role="rowgroup">
        <tr role="row">{head}</tr>
      </thead>
      {partsOf(rows, idOf).map((part) => (
        <tbody
          key={part.key}
          role="rowgroup"
          style={{ '--rows': part.rows.length } as CSSProperties}
        >
          {part.rows.map(children)}
        </tbody>
      ))}
    </table>
    // biome-ignore-end lint/a11y/noRedundantRoles: one that is laid out otherwise is no table to Safari
  )
}

interface Part<T> {
  key: string
  rows: T[]
}

/**
 * Where a part ends is told by the row alone, and a part is known by the row it ends with. Whatever
 * comes or goes, on top above all, the rows beside it stay in their part: one that changed its part
 * would be created again, and lose the focus.
 */
export function partsOf<T>(rows: readonly T[], idOf: (row: T) => string): Part<T>[] {
  const parts: Part<T>[] = []
  let open: T[] = []
  for (const row of rows) {
    open.push(row)
    if (!endsPart(idOf(row))) continue
    parts.push({ key: idOf(row), rows: open })
    open = []
  }
  if (open.length > 0) parts.push({ key: 'end', rows: open })
  return parts
}

/** How many rows a part has in the mean: few enough for one frame, and many for few parts. */
const rowsPerPart = 12

/** True for one id of so many, whether they are numbers that follow each other or random (FNV-1a). */
function endsPart(id: string): boolean {
  let hash = 0x811c9dc5
  for (let index = 0; index < id.length; index++) {
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193)
  }
  return ((hash ^ (hash >>> 15)) >>> 0) % rowsPerPart === 0
}
