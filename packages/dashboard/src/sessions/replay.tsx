import { useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Button } from '../design/button.tsx'
import { Select } from '../design/field.tsx'
import { say } from '../design/toast.tsx'
import { Controls, stepSpeed } from '../replay/controls.tsx'
import { EventList } from '../replay/event-list.tsx'
import { HelpDialog } from '../replay/help.tsx'
import { createPlayer, type Player } from '../replay/player.ts'
import { Screen } from '../replay/screen.tsx'
import { streamEvents } from '../replay/stream.ts'
import { usePart } from '../replay/use-player.ts'
import { isFree } from '../shell/shortcut.ts'
import type { SessionDetail } from './session.tsx'

type Tab = SessionDetail['tabs'][number]

/** One tab of a session in the player, with what was done in it at its side. */
export function Replay({
  detail,
  tab,
  startAt,
  onTab,
}: {
  detail: SessionDetail
  tab: Tab
  startAt: number
  onTab: (id: string) => void
}) {
  const [player] = useState(() => createPlayer(startAt))
  const [isHelping, setHelping] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const { error, retry } = useEvents(player, tab)
  const { goTo } = usePlace(player, tab)
  const { previousId, nextId } = detail
  const toggleFullScreen = () =>
    void (document.fullscreenElement
      ? document.exitFullscreen()
      : box.current?.requestFullscreen().catch(() => {}))
  const onPrevious = previousId === null ? undefined : () => goTo(previousId)
  const onNext = nextId === null ? undefined : () => goTo(nextId)
  useKeys(player, {
    f: toggleFullScreen,
    p: () => onPrevious?.(),
    n: () => onNext?.(),
    '?': () => setHelping(true),
  })
  return (
    <div className="grid min-h-0 flex-1 gap-4 xl:grid-cols-[minmax(0,1fr)_21rem]">
      <section
        ref={box}
        aria-label="Player"
        className="card flex h-[70dvh] min-h-80 flex-col overflow-clip xl:h-auto"
      >
        <Screen player={player} error={error} onRetry={retry} />
        <Controls
          player={player}
          onPrevious={onPrevious}
          onNext={onNext}
          onFullScreen={toggleFullScreen}
          onHelp={() => setHelping(true)}
        />
      </section>
      <section
        aria-label="What was done"
        className="card flex h-[26rem] min-h-0 flex-col overflow-clip xl:h-auto"
      >
        <SideHead player={player} detail={detail} tab={tab} onTab={onTab} />
        <EventList player={player} hasFailed={Boolean(error)} />
      </section>
      <HelpDialog isOpen={isHelping} onClose={() => setHelping(false)} />
    </div>
  )
}

function SideHead({
  player,
  detail,
  tab,
  onTab,
}: {
  player: Player
  detail: SessionDetail
  tab: Tab
  onTab: (id: string) => void
}) {
  return (
    <header className="flex min-h-11 items-center justify-between gap-2 border-b border-line px-3">
      {detail.tabs.length > 1 ? (
        <Select
          aria-label="Tab of the browser"
          value={tab.id}
          onChange={(event) => onTab(event.target.value)}
          className="h-8! text-sm"
        >
          {detail.tabs.map(({ id }, index) => (
            <option key={id} value={id}>
              Tab {index + 1} of {detail.tabs.length}
            </option>
          ))}
        </Select>
      ) : (
        <h2 className="pl-1 text-base">Events</h2>
      )}
      <CopyLink player={player} />
    </header>
  )
}

function CopyLink({ player }: { player: Player }) {
  return (
    <Button
      size="small"
      look="quiet"
      icon="copy"
      onClick={() => {
        const url = new URL(window.location.href)
        url.searchParams.set('t', String(Math.floor(player.state().at / 1_000)))
        navigator.clipboard?.writeText(url.href).then(
          () => say('The link to this moment was copied'),
          () => say('The link could not be copied', url.href),
        ) ?? say('The link to this moment', url.href)
      }}
    >
      Link to this moment
    </Button>
  )
}

/** Streams the tab's events into the player, and what comes later of a session that goes on. */
function useEvents(player: Player, tab: Tab) {
  const params = useParams({ from: '/signed-in/projects/$projectId/sessions/$sessionId' })
  const { projectId, sessionId } = params
  const [error, setError] = useState<unknown>(null)
  const [tries, setTries] = useState(0)
  const loaded = useRef(0)
  const isLoading = useRef(false)
  const controller = useRef<AbortController | null>(null)

  useEffect(() => () => controller.current?.abort(), [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` asks for another one
  useEffect(() => {
    if (isLoading.current || tab.chunks <= loaded.current) return
    const { chunks } = tab
    isLoading.current = true
    controller.current = new AbortController()
    const place = { projectId, sessionId, tab: tab.id }
    streamEvents(player, place, loaded.current, controller.current.signal)
      .then(() => {
        loaded.current = chunks
        setError(null)
      })
      .catch((failure: unknown) => {
        if (!controller.current?.signal.aborted) setError(failure)
      })
      .finally(() => {
        isLoading.current = false
      })
  }, [player, tab, projectId, sessionId, tries])

  return { error, retry: () => setTries((before) => before + 1) }
}

/** Keeps the moment in the address while the player stands still, and goes to other sessions. */
function usePlace(player: Player, tab: Tab) {
  const navigate = useNavigate({ from: '/projects/$projectId/sessions/$sessionId' })
  const isPlaying = usePart(player, (state) => state.isPlaying)
  const isReady = usePart(player, (state) => state.isReady)
  const standsAt = usePart(player, ({ at, isPlaying }) => (isPlaying ? -1 : Math.floor(at / 1_000)))
  useEffect(() => {
    if (isPlaying || !isReady || standsAt < 0) return
    const timer = setTimeout(() => {
      void navigate({
        search: (before) => ({ ...before, t: String(standsAt), tab: tab.id }),
        replace: true,
        resetScroll: false,
      })
    }, 400)
    return () => clearTimeout(timer)
  }, [navigate, standsAt, isPlaying, isReady, tab.id])
  return {
    goTo: (sessionId: string) => void navigate({ params: (before) => ({ ...before, sessionId }) }),
  }
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
