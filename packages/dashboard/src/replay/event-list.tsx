import { memo, useEffect, useRef } from 'react'
import { Icon, type IconName } from '../design/icon.tsx'
import { durationText } from '../design/time.tsx'
import type { OutlineEntry } from './messages.ts'
import type { Player } from './player.ts'
import { usePart } from './use-player.ts'

const looks: Record<OutlineEntry['what'], { icon: IconName; words: string }> = {
  page: { icon: 'page', words: 'Page' },
  click: { icon: 'click', words: 'Click on' },
  input: { icon: 'keyboard', words: 'Typed in' },
  resize: { icon: 'expand', words: 'Window' },
  custom: { icon: 'info', words: '' },
}

/** What was done, in order; each entry leads to its moment. */
export function EventList({ player, hasFailed }: { player: Player; hasFailed: boolean }) {
  const entries = usePart(player, ({ outline }) => outline.entries)
  const isComplete = usePart(player, ({ outline }) => outline.isComplete)
  const current = usePart(player, ({ outline, at }) => lastBefore(outline.entries, at))
  const list = useRef<HTMLOListElement>(null)
  useEffect(() => {
    const item = list.current?.children[current] as HTMLElement | undefined
    if (!item || !list.current) return
    const { offsetTop, offsetHeight } = item
    const { scrollTop, clientHeight } = list.current
    const isSeen = offsetTop >= scrollTop && offsetTop + offsetHeight <= scrollTop + clientHeight
    if (!isSeen) list.current.scrollTo({ top: offsetTop - clientHeight / 3 })
  }, [current])
  if (entries.length === 0) {
    return (
      <p className="px-4 py-3 text-muted">
        {hasFailed ? 'None.' : isComplete ? 'Nothing was clicked or typed.' : 'Loading…'}
      </p>
    )
  }
  return (
    <ol ref={list} className="relative min-h-0 flex-1 overflow-y-auto p-1.5">
      {entries.map((entry, index) => (
        <Entry
          // biome-ignore lint/suspicious/noArrayIndexKey: entries are only ever added
          key={index}
          entry={entry}
          isCurrent={index === current}
          player={player}
        />
      ))}
    </ol>
  )
}

const Entry = memo(function Entry({
  entry,
  isCurrent,
  player,
}: {
  entry: OutlineEntry
  isCurrent: boolean
  player: Player
}) {
  const { icon, words } = looks[entry.what]
  return (
    <li>
      <button
        type="button"
        aria-current={isCurrent ? 'step' : undefined}
        onClick={() => player.seek(entry.at)}
        className={`flex w-full items-start gap-2.5 rounded-md px-2.5 py-1.5 text-left ${isCurrent ? 'bg-accent-soft' : 'hover:bg-sunken'}`}
      >
        <span className="w-11 shrink-0 text-sm text-muted tabular">
          {durationText(entry.at / 1_000)}
        </span>
        <Icon name={icon} className={`mt-0.5 size-4 ${isCurrent ? 'text-accent' : 'text-muted'}`} />
        <span className="min-w-0 flex-1 break-words">
          {words && <span className="text-muted">{words} </span>}
          {entry.what === 'page' ? pathOf(entry.text) : entry.text}
        </span>
      </button>
    </li>
  )
})

function lastBefore(entries: OutlineEntry[], at: number): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((entries[middle] as OutlineEntry).at <= at) low = middle + 1
    else high = middle
  }
  return low - 1
}

function pathOf(href: string): string {
  return href.replace(/^https?:\/\/[^/]+(?=\/)/, '')
}
