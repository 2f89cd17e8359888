import { memo } from 'react'
import { IconButton } from '../design/button.tsx'
import { Icon, type IconName } from '../design/icon.tsx'
import { Menu, MenuChoice } from '../design/menu.tsx'
import { durationText } from '../design/time.tsx'
import type { EntryKind, OutlineEntry, Span } from './messages.ts'
import { firstAfter } from './order.ts'
import type { Player } from './player.ts'
import { usePart } from './use-player.ts'

const speeds = ['0.5', '1', '2', '4', '8']

/** The controls of the player, for pointer and keyboard. */
export function Controls({
  player,
  notes,
  onPrevious,
  onNext,
  autoplay,
  onFullScreen,
  onHelp,
}: {
  player: Player
  /** The times of notes. */
  notes: readonly number[]
  onPrevious: (() => void) | undefined
  onNext: (() => void) | undefined
  autoplay: { isOn: boolean; set: (isOn: boolean) => void } | undefined
  onFullScreen: () => void
  onHelp: () => void
}) {
  const isPlaying = usePart(player, (state) => state.isPlaying)
  const isReady = usePart(player, (state) => state.isReady)
  const isSkipping = usePart(player, (state) => state.isSkipping)
  return (
    <div className="border-t border-line bg-surface px-3 pt-2.5 pb-2">
      <Seek player={player} notes={notes} />
      <div className="mt-1 flex flex-wrap items-center gap-x-1 gap-y-1 max-sm:gap-x-0">
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
        <Toggle
          icon="skip"
          label="Skip idle time"
          isOn={isSkipping}
          onChange={player.setSkipping}
        />
        {onNext && autoplay && (
          <Toggle icon="next" label="Autoplay" isOn={autoplay.isOn} onChange={autoplay.set} />
        )}
        <Speed player={player} />
        <IconButton
          label="Keyboard shortcuts"
          shortcut="?"
          icon="keyboard"
          className="pointer-coarse:hidden"
          onClick={onHelp}
        />
        <IconButton label="Full screen" shortcut="F" icon="expand" onClick={onFullScreen} />
      </div>
    </div>
  )
}

function Clock({ player }: { player: Player }) {
  const seconds = usePart(player, ({ at }) => Math.floor(at / 1_000))
  const duration = usePart(player, ({ outline }) => outline.duration)
  return (
    <span className="px-2 text-sm whitespace-nowrap tabular max-sm:px-1">
      {durationText(seconds)} <span className="text-muted">/ {durationText(duration / 1_000)}</span>
    </span>
  )
}

/** The timeline: idle times are pale, gaps red; actions and errors are ticks. */
function Seek({ player, notes }: { player: Player; notes: readonly number[] }) {
  const duration = usePart(player, ({ outline }) => outline.duration)
  const at = usePart(player, (state) => state.at)
  return (
    <div className="group relative h-6">
      <TimeLine player={player} />
      <TabLine player={player} duration={duration} />
      {duration > 0 && (
        <svg
          aria-hidden="true"
          viewBox="0 0 1000 4"
          preserveAspectRatio="none"
          className="absolute inset-x-0 top-0 h-1 w-full"
        >
          <path
            d={notes.map((note) => `M${((note / duration) * 1000).toFixed(1)} 0v4`).join('')}
            className="stroke-accent"
            strokeWidth="5"
          />
        </svg>
      )}
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
  const version = usePart(player, (state) => state.version)
  const duration = usePart(player, ({ outline }) => outline.duration)
  const part = usePart(player, ({ at, outline }) =>
    outline.duration > 0 ? Math.min(at / outline.duration, 1) : 0,
  )
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 1000 10"
      preserveAspectRatio="none"
      className="absolute inset-x-0 top-1/2 h-2.5 w-full -translate-y-1/2 rounded-full"
    >
      <rect width="1000" height="10" className="fill-line" />
      <Marks player={player} version={version} duration={duration} isUnder />
      <rect width={part * 1000} height="10" className="fill-accent" />
      <Marks player={player} version={version} duration={duration} />
    </svg>
  )
}

/** One path per kind, as there may be thousands of marks. A recording without duration has none. */
const Marks = memo(function Marks({
  player: { spans, entries },
  duration,
  isUnder = false,
}: {
  player: Player
  /** Changes when the lists grow, which stay the same objects. */
  version: number
  duration: number
  isUnder?: boolean
}) {
  if (duration === 0) return null
  if (isUnder) {
    return <path d={spanPath(spans, 'idle', duration)} className="fill-sunken" />
  }
  return (
    <>
      <path d={spanPath(spans, 'gap', duration)} className="fill-danger/35" />
      {ticksOfKinds.map(({ kinds, className, from, to }) => (
        <path
          key={className}
          d={tickPath(
            entries,
            duration,
            `${from}V${to}`,
            ({ what, isWrong }) =>
              kinds.includes(what) && (isWrong === true || what === 'click' || what === 'page'),
          )}
          className={className}
          strokeWidth="3"
        />
      ))}
    </>
  )
})

/** Kinds also differ in height, not only in colour: errors are full height, others half. */
const ticksOfKinds: { kinds: EntryKind[]; className: string; from: number; to: number }[] = [
  { kinds: ['click', 'page'], className: 'stroke-edge', from: 3, to: 7 },
  { kinds: ['rage', 'dead'], className: 'stroke-ink', from: 5, to: 10 },
  { kinds: ['request'], className: 'stroke-warn', from: 0, to: 5 },
  { kinds: ['error', 'console', 'other'], className: 'stroke-danger', from: 0, to: 10 },
]

const tabColours = ['fill-accent', 'fill-warn', 'fill-ok', 'fill-edge']

/** Shows which tab the visitor used, if there are several. */
function TabLine({ player, duration }: { player: Player; duration: number }) {
  const switches = usePart(player, (state) => state.switches)
  if (switches.length < 2 || duration === 0) return null
  const runs: { tab: number; from: number; to: number }[] = []
  for (let tick = 0; tick < ticks; tick++) {
    const tab = switches[firstAfter(switches, ((tick + 0.5) / ticks) * duration) - 1]?.tab ?? 0
    const last = runs.at(-1)
    if (last?.tab === tab) last.to = tick + 1
    else runs.push({ tab, from: tick, to: tick + 1 })
  }
  return (
    <svg
      aria-hidden="true"
      viewBox={`0 0 ${ticks} 3`}
      preserveAspectRatio="none"
      className="absolute inset-x-0 bottom-0 h-[3px] w-full"
    >
      {runs.map(({ tab, from, to }) => (
        <rect
          key={from}
          x={from}
          width={to - from}
          height="3"
          className={tabColours[tab % tabColours.length]}
        />
      ))}
    </svg>
  )
}

function spanPath(spans: readonly Span[], kind: Span['kind'], duration: number): string {
  const x = (at: number) => ((at / duration) * 1000).toFixed(1)
  return spans
    .filter((span) => span.kind === kind)
    .slice(0, 2_000)
    .map(({ from, to }) => `M${x(from)} 0H${x(to)}V10H${x(from)}z`)
    .join('')
}

const ticks = 500
/** How many entries are checked for one tick. */
const lookedAtForTick = 40

function tickPath(
  entries: readonly OutlineEntry[],
  duration: number,
  line: string,
  isMeant: (entry: OutlineEntry) => boolean,
): string {
  let path = ''
  let index = 0
  for (let tick = 0; tick < ticks; tick++) {
    const first = index
    index = firstAfter(entries, ((tick + 1) / ticks) * duration)
    const some = entries.slice(first, Math.min(index, first + lookedAtForTick))
    if (some.some(isMeant)) path += `M${(tick + 0.5) * (1000 / ticks)} ${line}`
  }
  return path
}

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

function Toggle({
  icon,
  label,
  isOn,
  onChange,
}: {
  icon: IconName
  label: string
  isOn: boolean
  onChange: (isOn: boolean) => void
}) {
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => onChange(!isOn)}
      className={`flex h-8 items-center gap-1.5 rounded-md px-2 text-sm font-medium ${isOn ? 'bg-accent-soft text-accent' : 'text-muted hover:bg-sunken'}`}
    >
      <Icon name={icon} />
      <span className="max-sm:sr-only">{label}</span>
    </button>
  )
}
