import { memo, useEffect, useReducer, useRef, useState } from 'react'
import { Icon, type IconName } from '../design/icon.tsx'
import { count } from '../design/number.ts'
import { durationText } from '../design/time.tsx'
import { type EntryKind, entryKinds, type OutlineEntry } from './messages.ts'
import { firstIndex } from './order.ts'
import type { Player } from './player.ts'
import { pathOf } from './recorder-words.ts'
import { usePart } from './use-player.ts'

const looks: Record<EntryKind, { icon: IconName; words: string; many: string; dot?: string }> = {
  page: { icon: 'page', words: 'Page', many: 'Pages' },
  click: { icon: 'click', words: 'Clicked', many: 'Clicks' },
  input: { icon: 'keyboard', words: 'Typed in', many: 'Inputs' },
  error: { icon: 'warning', words: '', many: 'Errors', dot: 'bg-danger' },
  console: { icon: 'list', words: '', many: 'Console' },
  request: { icon: 'external', words: '', many: 'Network', dot: 'bg-warn' },
  rage: { icon: 'click', words: 'Rage click on', many: 'Rage clicks', dot: 'bg-ink' },
  dead: { icon: 'click', words: 'Dead click on', many: 'Dead clicks', dot: 'bg-ink' },
  vital: { icon: 'clock', words: '', many: 'Web vitals' },
  tab: { icon: 'browser', words: 'Switched to', many: 'Tabs' },
  other: { icon: 'info', words: '', many: 'Other' },
}

/** The events in order. Each entry seeks to its time. */
export function EventList({ player, hasFailed }: { player: Player; hasFailed: boolean }) {
  usePart(player, ({ version }) => version)
  const isComplete = usePart(player, ({ outline }) => outline.isComplete)
  const [what, setWhat] = useState<EntryKind | undefined>()
  const [search, setSearch] = useState('')
  const rows = useRows(player, what, search)
  return (
    <>
      <div className="flex flex-wrap gap-1 border-b border-line px-2 py-2">
        <input
          type="search"
          aria-label="Search events"
          placeholder="Search events"
          className="field mb-1 h-8! text-sm"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <KindChip label="All" isOn={what === undefined} onClick={() => setWhat(undefined)} />
        {entryKinds
          .filter((kind) => player.counts.has(kind))
          .map((kind) => (
            <KindChip
              key={kind}
              label={looks[kind].many}
              dot={looks[kind].dot}
              number={player.counts.get(kind) ?? 0}
              isOn={what === kind}
              onClick={() => setWhat(what === kind ? undefined : kind)}
            />
          ))}
      </div>
      {rows.length > 0 ? (
        <Rows player={player} rows={rows} />
      ) : (
        <p className="px-4 py-3 text-muted">
          {player.entries.length > 0
            ? 'No events match.'
            : hasFailed || isComplete
              ? 'No events.'
              : 'Loading…'}
        </p>
      )}
    </>
  )
}

function KindChip({
  label,
  number,
  dot,
  isOn,
  onClick,
}: {
  label: string
  number?: number
  /** Its colour on the timeline. */
  dot?: string | undefined
  isOn: boolean
  onClick: () => void
}) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={onClick}
      className={`h-6 rounded-full border px-2 text-xs font-medium tabular ${isOn ? 'border-accent bg-accent-soft text-accent' : 'border-line text-muted hover:bg-sunken'}`}
    >
      {dot && (
        <span aria-hidden="true" className={`mr-1 inline-block size-1.5 rounded-full ${dot}`} />
      )}
      {label} {number !== undefined && <span className="font-normal">{count(number)}</span>}
    </button>
  )
}

/** The shown rows, and the index of the entry of each. */
interface RowList {
  length: number
  at(row: number): number
}

/** A long list is filtered in parts of this many entries. */
const scannedAtOnce = 100_000

/** Entries are only appended, so only new ones are filtered. */
function useRows(player: Player, what: EntryKind | undefined, search: string): RowList {
  const [, scanMore] = useReducer((turn: number) => turn + 1, 0)
  const found = useRef({ key: '', scanned: 0, places: [] as number[] })
  const { entries } = player
  const wanted = search.trim().toLowerCase()
  const key = `${player.state().rewrites} ${what} ${wanted}`
  if (found.current.key !== key) found.current = { key, scanned: 0, places: [] }
  const state = found.current
  const isFiltered = what !== undefined || wanted !== ''
  const until = isFiltered ? Math.min(entries.length, state.scanned + scannedAtOnce) : 0
  for (; state.scanned < until; state.scanned++) {
    const entry = entries[state.scanned] as OutlineEntry
    const isKind = what === undefined || entry.what === what
    if (isKind && (wanted === '' || wordsOf(entry).toLowerCase().includes(wanted))) {
      state.places.push(state.scanned)
    }
  }
  const hasMore = isFiltered && state.scanned < entries.length
  useEffect(() => {
    if (!hasMore) return
    const timer = setTimeout(scanMore, 0)
    return () => clearTimeout(timer)
  })
  if (!isFiltered) return { length: entries.length, at: (row) => row }
  return { length: state.places.length, at: (row) => state.places[row] as number }
}

function wordsOf({ what, text }: OutlineEntry): string {
  const { words } = looks[what]
  return `${words && `${words} `}${what === 'page' ? pathOf(text) : text}`
}

const rowHeight = 32
/** Browsers limit the height of elements. A longer list scrolls in larger steps. */
const heightMaximum = 8_000_000
const rowsBeyond = 4

/** A virtual list: renders only the visible rows. */
function Rows({ player, rows }: { player: Player; rows: RowList }) {
  const list = useRef<HTMLDivElement>(null)
  const [place, setPlace] = useState({ top: 0, height: 600 })
  const current = usePart(player, ({ at }) => lastBefore(player, rows, at))
  const scale = Math.max(1, (rows.length * rowHeight) / heightMaximum)
  useEffect(() => {
    const box = list.current
    if (!box) return
    const top = (current * rowHeight) / scale
    const isSeen = top >= box.scrollTop && top + rowHeight <= box.scrollTop + box.clientHeight
    if (!isSeen) box.scrollTo({ top: top - box.clientHeight / 3 })
  }, [current, scale])
  useEffect(() => {
    const box = list.current as HTMLDivElement
    const look = () => setPlace({ top: box.scrollTop, height: box.clientHeight })
    const observer = new ResizeObserver(look)
    observer.observe(box)
    return () => observer.disconnect()
  }, [])
  const from = Math.max(0, Math.floor((place.top * scale) / rowHeight) - rowsBeyond)
  const to = Math.min(rows.length, from + Math.ceil(place.height / rowHeight) + 2 * rowsBeyond)
  const top = from * rowHeight - place.top * (scale - 1)
  return (
    <div
      ref={list}
      className="relative min-h-0 flex-1 overflow-y-auto p-1.5"
      onScroll={({ currentTarget: { scrollTop, clientHeight } }) =>
        setPlace({ top: scrollTop, height: clientHeight })
      }
    >
      <div style={{ height: (rows.length * rowHeight) / scale }}>
        <ol style={{ transform: `translateY(${top}px)` }}>
          {Array.from({ length: Math.max(0, to - from) }, (_, index) => {
            const row = from + index
            const entry = player.entries[rows.at(row)]
            return (
              entry && (
                <Entry
                  key={row}
                  entry={entry}
                  row={row}
                  rowCount={rows.length}
                  isCurrent={row === current}
                  player={player}
                />
              )
            )
          })}
        </ol>
      </div>
    </div>
  )
}

const Entry = memo(function Entry({
  entry,
  row,
  rowCount,
  isCurrent,
  player,
}: {
  entry: OutlineEntry
  row: number
  rowCount: number
  isCurrent: boolean
  player: Player
}) {
  const { icon, words } = looks[entry.what]
  const text = entry.what === 'page' ? pathOf(entry.text) : entry.text
  return (
    <li aria-posinset={row + 1} aria-setsize={rowCount} style={{ height: rowHeight }}>
      <button
        type="button"
        title={text}
        aria-current={isCurrent ? 'step' : undefined}
        onClick={() => player.seek(entry.at)}
        className={`flex h-full w-full items-center gap-2.5 rounded-md px-2.5 text-left ${isCurrent ? 'bg-accent-soft' : 'hover:bg-sunken'} ${entry.isWrong ? 'text-danger' : ''}`}
      >
        <span className="w-11 shrink-0 text-sm text-muted tabular">
          {durationText(entry.at / 1_000)}
        </span>
        <Icon
          name={icon}
          className={entry.isWrong ? '' : isCurrent ? 'text-accent' : 'text-muted'}
        />
        <span className="min-w-0 flex-1 truncate">
          {words && <span className={entry.isWrong ? '' : 'text-muted'}>{words} </span>}
          {text}
        </span>
        {entry.count > 1 && (
          <span className="text-xs font-medium text-muted tabular">×{count(entry.count)}</span>
        )}
        {entry.tab !== undefined && entry.what !== 'tab' && (
          <span className="text-xs text-muted">Tab {entry.tab + 1}</span>
        )}
        {entry.note && <span className="text-xs text-muted tabular">{entry.note}</span>}
      </button>
    </li>
  )
})

/** The last row that is not later than `at`; -1 before the first. */
function lastBefore({ entries }: Player, rows: RowList, at: number): number {
  return firstIndex(rows.length, (row) => (entries[rows.at(row)]?.at ?? 0) > at) - 1
}
