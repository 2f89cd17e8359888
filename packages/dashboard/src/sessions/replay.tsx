import { getSessionEvents } from '@lethe/contract/dashboard-sessions.ts'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import { pathOf } from '../api/call.ts'
import { useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { IconButton } from '../design/button.tsx'
import { say } from '../design/toast.tsx'
import { createPlayer, type Player } from '../replay/player.ts'
import { usePart } from '../replay/use-player.ts'
import { goOnWith, isAutoplayOn, switchAutoplay, takesOver } from './autoplay.ts'
import { PersonBeside } from './beside.tsx'
import { Notes, useMoments } from './notes.tsx'
import type { SessionDetail } from './query.ts'
import { ShareButton } from './share.tsx'
import { type Load, Watch } from './watch.tsx'

/** A session as members watch it: with its person, their notes, and the sessions around it. */
export function Replay({
  detail,
  tabId,
  startAt,
  onTab,
  onRestart,
}: {
  detail: SessionDetail
  tabId: string | undefined
  startAt: number
  onTab: (id: string | undefined) => void
  onRestart: () => void
}) {
  const projectId = useProjectId()
  const [player] = useState(() => createPlayer(startAt))
  const { session, previousId, nextId } = detail
  const moments = useMoments(session.id)
  const mayShare = useMay('sessions.share')
  const { goTo } = usePlace(player)
  const load = useCallback<Load>(
    (tab, fromChunk, signal) =>
      fetch(
        pathOf(getSessionEvents, {
          params: { projectId, sessionId: session.id },
          query: { tab, ...(fromChunk > 0 && { fromChunk }) },
        }),
        { credentials: 'same-origin', signal },
      ),
    [projectId, session.id],
  )
  const autoplay = useAutoplay(player, detail, goTo)
  return (
    <Watch
      player={player}
      tabs={detail.tabs}
      load={load}
      tabId={tabId}
      notes={moments.notes.map(({ at }) => at)}
      onTab={onTab}
      onRestart={onRestart}
      onPrevious={previousId === null ? undefined : () => goTo(previousId)}
      onNext={nextId === null ? undefined : () => goTo(nextId)}
      autoplay={autoplay}
      above={
        <>
          {session.person && <PersonBeside person={session.person} />}
          <Notes player={player} sessionId={session.id} notes={moments.notes} />
        </>
      }
      actions={
        <span className="flex items-center">
          <CopyLink player={player} />
          {mayShare && <ShareButton player={player} sessionId={session.id} links={moments.links} />}
        </span>
      }
    />
  )
}

function CopyLink({ player }: { player: Player }) {
  return (
    <IconButton
      label="Copy link to this moment"
      icon="copy"
      onClick={() => {
        const url = new URL(window.location.href)
        url.searchParams.set('t', String(Math.floor(player.state().at / 1_000)))
        navigator.clipboard?.writeText(url.href).then(
          () => say('Link copied'),
          () => say('The link could not be copied', url.href),
        ) ?? say('Link to this moment', url.href)
      }}
    />
  )
}

/** Keeps the moment in the address while the player stands still, and goes to other sessions. */
function usePlace(player: Player) {
  const navigate = useNavigate({ from: '/projects/$projectId/sessions/$sessionId' })
  const isPlaying = usePart(player, (state) => state.isPlaying)
  const isReady = usePart(player, (state) => state.isReady)
  const standsAt = usePart(player, ({ at, isPlaying }) => (isPlaying ? -1 : Math.floor(at / 1_000)))
  useEffect(() => {
    if (isPlaying || !isReady || standsAt < 0) return
    const timer = setTimeout(() => {
      void navigate({
        search: (before) => ({ ...before, t: String(standsAt) }),
        replace: true,
        resetScroll: false,
      })
    }, 400)
    return () => clearTimeout(timer)
  }, [navigate, standsAt, isPlaying, isReady])
  return {
    goTo: (sessionId: string) => void navigate({ params: (before) => ({ ...before, sessionId }) }),
  }
}

/** Plays a session that another one went on to, and goes on to the next where that is wished. */
function useAutoplay(player: Player, detail: SessionDetail, goTo: (sessionId: string) => void) {
  const [isOn, setOn] = useState(isAutoplayOn)
  const isReady = usePart(player, (state) => state.isReady)
  const hasEnded = usePart(player, (state) => state.hasEnded)
  const hasGone = useRef(false)
  const { session, nextId } = detail
  useEffect(() => {
    if (isReady && takesOver(session.id)) player.play()
  }, [player, isReady, session.id])
  useEffect(() => {
    if (!hasEnded || !isOn || nextId === null || hasGone.current) return
    hasGone.current = true
    goOnWith(nextId)
    goTo(nextId)
  }, [hasEnded, isOn, nextId, goTo])
  const set = (wanted: boolean) => {
    setOn(wanted)
    switchAutoplay(wanted)
  }
  return { isOn, set }
}
