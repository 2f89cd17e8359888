import type { eventWithTime } from '@rrweb/types'
import { createFeed } from './feed.ts'
import type { FromFrame, Outline, ToFrame } from './messages.ts'
import { createStage, isEnough, type Stage } from './stage.ts'

const tickMilliseconds = 100

/** How often, at most, the page hears of what has come meanwhile. */
const outlineMilliseconds = 400

/** So much of an idle time is still seen before what ends it. */
const skipLead = 600

/** What plays in the frame, and where it stands. */
interface Playing {
  root: HTMLElement
  say: (message: FromFrame) => void
  feed: ReturnType<typeof createFeed>
  /** Events that came before there was enough to begin with. */
  early: eventWithTime[]
  stage: Stage | undefined
  outline: Outline
  outlinedAt: number
  isPlaying: boolean
  isSkipping: boolean
  isComplete: boolean
  /** All that came so far was shown; it goes on when more comes. */
  isStarved: boolean
  speed: number
  /** Milliseconds since the beginning: where it stands while no time runs. */
  at: number
}

/** Plays what it is given in `root`, does what it is told, and says how it goes. */
export function createFramePlayer(
  root: HTMLElement,
  say: (message: FromFrame) => void,
): (message: ToFrame) => void {
  const feed = createFeed()
  const playing: Playing = {
    root,
    say,
    feed,
    early: [],
    stage: undefined,
    outline: feed.outline(false),
    outlinedAt: Number.NEGATIVE_INFINITY,
    isPlaying: false,
    isSkipping: true,
    isComplete: false,
    isStarved: false,
    speed: 1,
    at: 0,
  }
  return (message) => receive(playing, message)
}

function receive(playing: Playing, message: ToFrame): void {
  switch (message.kind) {
    case 'bytes':
      if (message.isAppended) playing.isComplete = false
      add(playing, playing.feed.take(message.bytes))
      tellOutline(playing, false)
      break
    case 'end':
      add(playing, playing.feed.finish())
      playing.isComplete = true
      tellOutline(playing, true)
      break
    case 'play':
      playing.isPlaying = true
      move(playing, isAtEnd(playing) ? 0 : playing.at)
      break
    case 'pause':
      playing.isPlaying = false
      move(playing, now(playing))
      break
    case 'seek':
      move(playing, Math.min(Math.max(message.at, 0), playing.outline.duration))
      break
    case 'speed':
      playing.speed = message.speed
      playing.stage?.setSpeed(message.speed)
      break
    case 'skip_idle':
      playing.isSkipping = message.isOn
      break
  }
}

function add(playing: Playing, events: eventWithTime[]): void {
  if (!playing.stage) {
    playing.early.push(...events)
    if (isEnough(playing.early)) begin(playing)
    return
  }
  playing.stage.add(events)
  if (playing.isStarved && events.length > 0) {
    playing.isStarved = false
    playing.stage.play(playing.at)
  }
}

function begin(playing: Playing): void {
  tellOutline(playing, true)
  playing.stage = createStage(playing.root, playing.early.splice(0), {
    onFinish: () => finish(playing),
    onDamage: () => playing.say({ kind: 'damaged' }),
  })
  window.addEventListener('resize', playing.stage.fit)
  playing.stage.setSpeed(playing.speed)
  playing.say({ kind: 'ready' })
  move(playing, playing.at)
  setInterval(() => tick(playing), tickMilliseconds)
}

function tellOutline(playing: Playing, isForced: boolean): void {
  if (!isForced && performance.now() - playing.outlinedAt < outlineMilliseconds) return
  playing.outlinedAt = performance.now()
  playing.outline = playing.feed.outline(playing.isComplete)
  playing.say({ kind: 'outline', outline: playing.outline })
}

function move(playing: Playing, at: number): void {
  playing.at = at
  playing.isStarved = false
  if (playing.isPlaying) playing.stage?.play(at)
  else playing.stage?.pause(at)
  playing.say({ kind: 'time', at, isPlaying: playing.isPlaying })
}

function now({ stage, at, outline }: Playing): number {
  return Math.min(Math.max(stage?.time() ?? at, 0), outline.duration)
}

function isAtEnd({ at, outline, isComplete }: Playing): boolean {
  return isComplete && at >= outline.duration
}

function finish(playing: Playing): void {
  playing.at = playing.outline.duration
  if (!playing.isComplete) {
    playing.isStarved = true
    return
  }
  if (!playing.isPlaying) return
  playing.isPlaying = false
  playing.say({ kind: 'time', at: playing.at, isPlaying: false })
  playing.say({ kind: 'ended' })
}

function tick(playing: Playing): void {
  if (!playing.isPlaying || playing.isStarved) return
  const at = now(playing)
  playing.at = at
  const idle =
    playing.isSkipping &&
    playing.outline.idle.find(({ from, to }) => at >= from && at < to - skipLead * 2)
  if (!idle) {
    playing.say({ kind: 'time', at, isPlaying: true })
    return
  }
  playing.say({ kind: 'skipped', from: at, to: idle.to })
  move(playing, idle.to - skipLead)
}
