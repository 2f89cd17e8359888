import { memo } from 'react'
import { IconButton } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { Menu, MenuChoice } from '../design/menu.tsx'
import { durationText } from '../design/time.tsx'
import type { Outline } from './messages.ts'
import type { Player } from './player.ts'
import { usePart } from './use-player.ts'

const speeds = ['0.5', '1', '2', '4', '8']

/** Everything the player can do, by pointer and by keyboard. */
export function Controls({
  player,
  onPrevious,
  onNext,
  onFullScreen,
  onHelp,
}: {
  player: Player
  onPrevious: (() => void) | undefined
  onNext: (() => void) | undefined
  onFullScreen: () => void
  onHelp: () => void
}) {
  const isPlaying = usePart(player, (state) => state.isPlaying)
  const isReady = usePart(player, (state) => state.isReady)
  return (
    <div className="border-t border-line bg-surface px-3 pt-2.5 pb-2">
      <Seek player={player} />
      <div className="mt-1 flex flex-wrap items-center gap-x-1 gap-y-1">
        <IconButton
          label="Previous session"
          shortcut="P"
          icon="previous"
          disabled={!onPrevious}
          onClick={onPrevious}
        />
        <IconButton
          label={isPlaying ? 'Pause' : 'Play'}
          shortcut="Space"
          icon={isPlaying ? 'pause' : 'play'}
          look="primary"
          disabled={!isReady}
          onClick={() => (isPlaying ? player.pause() : player.play())}
        />
        <IconButton
          label="Next session"
          shortcut="N"
          icon="next"
          disabled={!onNext}
          onClick={onNext}
        />
        <Clock player={player} />
        <span className="flex-1" />
        <Skipping player={player} />
        <Speed player={player} />
        <IconButton label="Keys" shortcut="?" icon="keyboard" onClick={onHelp} />
        <IconButton label="Full screen" shortcut="F" icon="expand" onClick={onFullScreen} />
      </div>
    </div>
  )
}

function Clock({ player }: { player: Player }) {
  const seconds = usePart(player, ({ at }) => Math.floor(at / 1_000))
  const duration = usePart(player, ({ outline }) => outline.duration)
  return (
    <span className="px-2 text-sm whitespace-nowrap tabular">
      {durationText(seconds)} <span className="text-muted">/ {durationText(duration / 1_000)}</span>
    </span>
  )
}

/** The time line: idle times are paler, what was done stands as ticks. */
function Seek({ player }: { player: Player }) {
  const duration = usePart(player, ({ outline }) => outline.duration)
  const at = usePart(player, (state) => state.at)
  return (
    <div className="group relative h-6">
      <TimeLine player={player} />
      <input
        type="range"
        aria-label="Time"
        aria-valuetext={`${durationText(at / 1_000)} of ${durationText(duration / 1_000)}`}
        min={0}
        max={Math.max(duration, 1)}
        step={100}
        value={at}
        onChange={(event) => player.seek(Number(event.target.value))}
        onKeyDown={(event) => {
          const step = { ArrowLeft: -5_000, ArrowRight: 5_000, PageDown: -30_000, PageUp: 30_000 }[
            event.key
          ]
          if (step === undefined) return
          event.preventDefault()
          player.seek(player.state().at + step)
        }}
        className="seek absolute inset-0 w-full"
      />
    </div>
  )
}

function TimeLine({ player }: { player: Player }) {
  const outline = usePart(player, (state) => state.outline)
  const part = usePart(player, ({ at, outline: { duration } }) =>
    duration > 0 ? Math.min(at / duration, 1) : 0,
  )
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 1000 10"
      preserveAspectRatio="none"
      className="absolute inset-x-0 top-1/2 h-2 w-full -translate-y-1/2 rounded-full"
    >
      <rect width="1000" height="10" className="fill-line" />
      <Idle outline={outline} />
      <rect width={part * 1000} height="10" className="fill-accent" />
      <Ticks outline={outline} />
    </svg>
  )
}

const Idle = memo(function Idle({ outline: { idle, duration } }: { outline: Outline }) {
  return idle.map(({ from, to }) => (
    <rect
      key={from}
      x={(from / duration) * 1000}
      width={((to - from) / duration) * 1000}
      height="10"
      className="fill-sunken"
    />
  ))
})

/** One path, as there may be thousands of them; those of a recording without a length are none. */
const Ticks = memo(function Ticks({ outline: { entries, duration } }: { outline: Outline }) {
  if (duration === 0) return null
  const places = new Set(
    entries
      .filter(({ what }) => what === 'click' || what === 'page')
      .map(({ at }) => Math.round((at / duration) * 1000)),
  )
  const path = Array.from(places, (place) => `M${place} 0v10`).join('')
  return <path d={path} className="stroke-edge" strokeWidth="1.5" />
})

function Speed({ player }: { player: Player }) {
  const speed = usePart(player, (state) => state.speed)
  return (
    <Menu
      side="top"
      trigger={
        <button
          type="button"
          className="flex h-8 items-center gap-1 rounded-md px-2 text-sm font-medium tabular hover:bg-sunken"
        >
          <span className="sr-only">Speed: </span>
          {speed}×
          <Icon name="chevronDown" className="size-3 text-muted" />
        </button>
      }
    >
      <MenuChoice
        label="Speed"
        value={String(speed)}
        choices={speeds.map((value) => ({ value, label: `${value}×` }))}
        onChange={(value) => player.setSpeed(Number(value))}
      />
    </Menu>
  )
}

export function stepSpeed(player: Player, step: 1 | -1): void {
  const index = speeds.indexOf(String(player.state().speed))
  const next = speeds[index + step]
  if (next !== undefined) player.setSpeed(Number(next))
}

function Skipping({ player }: { player: Player }) {
  const isOn = usePart(player, (state) => state.isSkipping)
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => player.setSkipping(!isOn)}
      className={`flex h-8 items-center gap-1.5 rounded-md px-2 text-sm font-medium ${isOn ? 'bg-accent-soft text-accent' : 'text-muted hover:bg-sunken'}`}
    >
      <Icon name="skip" />
      <span className="max-sm:sr-only">Skip idle time</span>
    </button>
  )
}
