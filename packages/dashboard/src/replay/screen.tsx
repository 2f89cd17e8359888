import { replayPath } from '@lethe/contract/dashboard-replay.ts'
import { useEffect, useRef, useState } from 'react'
import { basePath } from '../api/base-path.ts'
import { codeOf } from '../api/call.ts'
import { useMe } from '../api/me.ts'
import { Button, Spinner } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { Empty, ErrorPanel } from '../design/states.tsx'
import { durationText } from '../design/time.tsx'
import type { Player } from './player.ts'
import { usePart } from './use-player.ts'

/**
 * Shows the recording: the sandboxed frame, with messages over it. Keyboard and pointer do not
 * reach the frame; a click plays or pauses.
 */
export function Screen({
  player,
  error,
  onRetry,
  onRestart,
}: {
  player: Player
  error: unknown
  onRetry: () => void
  /** Starts again with a new frame. */
  onRestart: () => void
}) {
  const isStopped = usePart(player, ({ isStopped }) => isStopped)
  const isReady = usePart(player, ({ isReady }) => isReady)
  const isComplete = usePart(player, ({ outline }) => outline.isComplete)
  const isPlaying = usePart(player, ({ isPlaying }) => isPlaying)
  const hasEnded = usePart(player, ({ hasEnded }) => hasEnded)
  return (
    <div className="relative min-h-0 flex-1 overflow-hidden bg-sunken">
      {!isStopped && <Frame player={player} isShown={isReady} />}
      <button
        type="button"
        tabIndex={-1}
        aria-hidden="true"
        onClick={() => (isPlaying ? player.pause() : player.play())}
        className="absolute inset-0 size-full"
      />
      {isStopped ? (
        <div className="absolute inset-0 grid place-items-center bg-surface">
          <Empty
            icon="pause"
            title="Replay stopped"
            actions={<Button onClick={onRestart}>Load again</Button>}
          >
            This recording needed more memory or processor time than the browser allows.
          </Empty>
        </div>
      ) : error && !isReady && codeOf(error) === 'session_not_found' ? (
        <NotReadable />
      ) : error && !isReady ? (
        <div className="absolute inset-0 grid place-items-center bg-surface">
          <ErrorPanel error={error} title="The recording could not be loaded" retry={onRetry} />
        </div>
      ) : !isReady && isComplete ? (
        <NothingToSee />
      ) : !isReady ? (
        <div role="status" className="absolute inset-0 grid place-items-center text-muted">
          <span className="flex items-center gap-2">
            <Spinner /> Loading the recording…
          </span>
        </div>
      ) : hasEnded ? (
        <div className="pointer-events-none absolute inset-0 grid place-items-center bg-scrim">
          <Button
            look="primary"
            icon="refresh"
            className="pointer-events-auto"
            onClick={() => player.play()}
          >
            Watch again
          </Button>
        </div>
      ) : null}
      <SkipNotice player={player} />
      <StuckNotice player={player} />
      <DamageNotice player={player} error={isReady ? error : undefined} />
    </div>
  )
}

/** How long the frame may take to respond before the page's own address is tried. */
const answerMilliseconds = 5_000

/**
 * The frame has another address than the page if one is configured, so that it runs in another
 * process. If that address cannot be reached, the page's own is used.
 */
function Frame({ player, isShown }: { player: Player; isShown: boolean }) {
  const { replayUrl } = useMe()
  const [isHere, setHere] = useState(false)
  const hasAnswered = usePart(player, ({ isApart }) => isApart !== undefined)
  const [hasLoaded, setLoaded] = useState(false)
  useEffect(() => {
    if (hasAnswered || !hasLoaded) return
    const timer = setTimeout(() => setHere(true), answerMilliseconds)
    return () => clearTimeout(timer)
  }, [hasAnswered, hasLoaded])
  return (
    <iframe
      title="Replay of the session"
      src={isHere ? basePath + replayPath : replayUrl}
      // Otherwise a right click or the keyboard would reach the recorded page.
      tabIndex={-1}
      onLoad={(event) => {
        setLoaded(true)
        player.connect(event.currentTarget)
      }}
      // A frame with another colour scheme than its document would get an opaque background.
      className={`absolute inset-0 size-full border-0 scheme-light ${isShown ? '' : 'opacity-0'}`}
    />
  )
}

/** Shown while the frame does not respond. The viewer may wait or stop it. */
function StuckNotice({ player }: { player: Player }) {
  const isStuck = usePart(player, (state) => state.isStuck)
  return (
    <div role="status" className="pointer-events-none absolute inset-x-0 top-4 flex justify-center">
      {isStuck && (
        <span className="pointer-events-auto flex items-center gap-3 rounded-lg border border-line bg-raised py-1.5 pr-1.5 pl-3.5 shadow-high">
          The recording is not responding.
          <Button size="small" look="danger" onClick={() => player.stop()}>
            Stop
          </Button>
        </span>
      )}
    </div>
  )
}

/** The key is destroyed first, long before a deletion with problems completes. */
function NotReadable() {
  return (
    <div className="absolute inset-0 grid place-items-center bg-surface">
      <Empty icon="deletions" title="This recording can no longer be read">
        Deleting its person destroyed its encryption key.
      </Empty>
    </div>
  )
}

function NothingToSee() {
  return (
    <div className="absolute inset-0 grid place-items-center px-6 text-center text-muted">
      <p className="max-w-96 text-pretty">
        Nothing was recorded in this tab: the visitor left before the page was captured.
      </p>
    </div>
  )
}

function SkipNotice({ player }: { player: Player }) {
  const skipped = usePart(player, (state) => state.skipped)
  const [isShown, setShown] = useState(false)
  const last = useRef(skipped)
  useEffect(() => {
    if (last.current === skipped || !skipped) return
    last.current = skipped
    setShown(true)
    const timer = setTimeout(() => setShown(false), 2_000)
    return () => clearTimeout(timer)
  }, [skipped])
  return (
    <div role="status" className="pointer-events-none absolute inset-x-0 top-4 flex justify-center">
      {isShown && skipped && (
        <span className="flex items-center gap-1.5 rounded-full bg-ink px-3 py-1 text-sm text-canvas shadow-high">
          <Icon name="skip" />
          Skipped {durationText((skipped.to - skipped.from) / 1_000)}{' '}
          {skipped.kind === 'gap' ? 'that was not recorded' : 'of inactivity'}
        </span>
      )}
    </div>
  )
}

function DamageNotice({ player, error }: { player: Player; error: unknown }) {
  const isDamaged = usePart(player, (state) => state.isDamaged)
  if (!isDamaged && !error) return null
  return (
    <p
      role="status"
      className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center px-3"
    >
      <span className="flex items-center gap-1.5 rounded-full bg-warn-soft px-3 py-1 text-sm text-warn shadow-high">
        <Icon name="warning" />
        {error
          ? 'The rest of the recording could not be loaded'
          : 'Part of this recording can’t be shown'}
      </span>
    </p>
  )
}
