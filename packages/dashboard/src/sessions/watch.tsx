import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Select } from '../design/field.tsx'
import { Controls, stepSpeed } from '../replay/controls.tsx'
import { EventList } from '../replay/event-list.tsx'
import { HelpDialog } from '../replay/help.tsx'
import type { Player } from '../replay/player.ts'
import { Screen } from '../replay/screen.tsx'
import { streamEvents } from '../replay/stream.ts'
import { usePart } from '../replay/use-player.ts'
import { isFree } from '../shell/shortcut.ts'

export interface Tab {
  id: string
  /** How many of its chunks have arrived. */
  chunks: number
}

/** Asks for the events of a tab, from a chunk on. */
export type Load = (tab: string, fromChunk: number, signal: AbortSignal) => Promise<Response>

/** The tabs of a session in the player, with what was done in them at its side. */
export function Watch({
  player,
  tabs,
  load,
  tabId,
  notes = [],
  onTab,
  onRestart,
  onPrevious,
  onNext,
  autoplay,
  above,
  actions,
}: {
  player: Player
  tabs: readonly Tab[]
  load: Load
  /** The tab to be shown; undefined: at each moment the one that the visitor used. */
  tabId: string | undefined
  /** Moments that somebody wrote something at. */
  notes?: readonly number[]
  onTab: (id: string | undefined) => void
  onRestart: () => void
  onPrevious?: (() => void) | undefined
  onNext?: (() => void) | undefined
  autoplay?: { isOn: boolean; set: (isOn: boolean) => void }
  /** What stands above the events. */
  above?: ReactNode
  actions?: ReactNode
}) {
  const [isHelping, setHelping] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const { error, retry } = useEvents(player, tabs, load)
  const pinned = tabs.findIndex(({ id }) => id === tabId)
  useEffect(() => player.pin(pinned === -1 ? null : pinned), [player, pinned])
  const toggleFullScreen = () =>
    void (document.fullscreenElement
      ? document.exitFullscreen()
      : box.current?.requestFullscreen().catch(() => {}))
  useKeys(player, {
    f: toggleFullScreen,
    p: () => onPrevious?.(),
    n: () => onNext?.(),
    '?': () => setHelping(true),
  })
  return (
    <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)] gap-4 xl:grid-cols-[minmax(0,1fr)_21rem]">
      <section
        ref={box}
        aria-label="Player"
        className="card flex h-[70dvh] min-h-80 flex-col overflow-clip xl:h-auto"
      >
        <Screen player={player} error={error} onRetry={retry} onRestart={onRestart} />
        <Controls
          player={player}
          notes={notes}
          onPrevious={onPrevious}
          onNext={onNext}
          autoplay={autoplay}
          onFullScreen={toggleFullScreen}
          onHelp={() => setHelping(true)}
        />
      </section>
      <section
        aria-label="Events"
        className="card flex h-[42rem] min-h-0 flex-col overflow-clip xl:h-auto"
      >
        {above}
        <SideHead player={player} tabs={tabs} pinned={pinned} onTab={onTab}>
          {actions}
        </SideHead>
        <EventList player={player} hasFailed={Boolean(error)} />
        <SharedNotice player={player} />
      </section>
      <HelpDialog isOpen={isHelping} onClose={() => setHelping(false)} />
    </div>
  )
}

function SideHead({
  player,
  tabs,
  pinned,
  onTab,
  children,
}: {
  player: Player
  tabs: readonly Tab[]
  pinned: number
  onTab: (id: string | undefined) => void
  children: ReactNode
}) {
  const shown = usePart(player, ({ tab }) => tab)
  return (
    <header className="flex min-h-11 flex-wrap items-center justify-between gap-x-2 border-b border-line px-3">
      {tabs.length > 1 ? (
        <Select
          aria-label="Browser tab"
          value={tabs[pinned]?.id ?? ''}
          onChange={(event) => onTab(event.target.value || undefined)}
          className="h-8! text-sm"
        >
          <option value="">Follow (tab {shown + 1})</option>
          {tabs.map(({ id }, index) => (
            <option key={id} value={id}>
              Tab {index + 1} of {tabs.length}
            </option>
          ))}
        </Select>
      ) : (
        <h2 className="pl-1 text-base">Events</h2>
      )}
      {children}
    </header>
  )
}

/** A recording in this page's own process can hold the page. */
function SharedNotice({ player }: { player: Player }) {
  const isApart = usePart(player, (state) => state.isApart)
  if (isApart !== false) return null
  return (
    <p className="border-t border-line px-4 py-2 text-xs text-pretty text-muted">
      This recording shares a process with the dashboard, so a very large one can slow the page
      down. To separate them, set <code className="font-mono">REPLAY_URL</code> to a second address
      of this service.
    </p>
  )
}

/** Streams the tabs' events into the player, and what comes later of a session that goes on. */
function useEvents(player: Player, tabs: readonly Tab[], load: Load) {
  const [error, setError] = useState<unknown>(null)
  const [tries, setTries] = useState(0)
  const loaded = useRef(new Map<string, number>())
  const isLoading = useRef(false)
  const controller = useRef<AbortController | null>(null)

  useEffect(() => () => controller.current?.abort(), [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` asks for another one
  useEffect(() => {
    const isNew = ({ id, chunks }: Tab) => chunks > (loaded.current.get(id) ?? 0)
    if (isLoading.current || !tabs.some(isNew)) return
    isLoading.current = true
    const loading = new AbortController()
    controller.current = loading
    const loadAll = async () => {
      for (const [index, tab] of tabs.entries()) {
        if (!isNew(tab)) continue
        const from = loaded.current.get(tab.id) ?? 0
        const response = await load(tab.id, from, loading.signal)
        await streamEvents(player, index, response, from > 0, loading.signal)
        loaded.current.set(tab.id, tab.chunks)
      }
    }
    loadAll()
      .then(() => {
        player.complete()
        setError(null)
        // More may have come meanwhile.
        setTries((before) => before + 1)
      })
      .catch((failure: unknown) => {
        if (!loading.signal.aborted) setError(failure)
      })
      .finally(() => {
        isLoading.current = false
      })
  }, [player, tabs, load, tries])

  return { error, retry: () => setTries((before) => before + 1) }
}

function useKeys(player: Player, more: Record<string, () => void>): void {
  const latest = useRef(more)
  useEffect(() => {
    latest.current = more
  })
  useEffect(() => {
    const keys = new Map<string, (event: KeyboardEvent) => void>([
      [' ', () => toggle(player)],
      ['k', () => toggle(player)],
      ['ArrowLeft', ({ shiftKey }) => player.seek(player.state().at - (shiftKey ? 30_000 : 5_000))],
      [
        'ArrowRight',
        ({ shiftKey }) => player.seek(player.state().at + (shiftKey ? 30_000 : 5_000)),
      ],
      ['<', () => stepSpeed(player, -1)],
      ['>', () => stepSpeed(player, 1)],
      ['s', () => player.setSkipping(!player.state().isSkipping)],
    ])
    const listen = (event: KeyboardEvent) => {
      const act = keys.get(event.key) ?? latest.current[event.key]
      const isOnControl = (event.target as Element).closest?.('button, a, summary, input')
      if (!act || !isFree(event) || (isOnControl && event.key === ' ')) return
      event.preventDefault()
      act(event)
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [player])
}

function toggle(player: Player): void {
  if (player.state().isPlaying) player.pause()
  else player.play()
}
