import { EventType, type eventWithTime } from '@rrweb/types'
import { createFeed } from './feed.ts'
import type { FromFrame, Outline, ToFrame } from './messages.ts'
import { createStage, type Stage } from './stage.ts'
import { createTimeline } from './timeline.ts'

const tickMilliseconds = 100

/** How often, at most, the page is told what has arrived meanwhile. */
const outlineMilliseconds = 200

/** How long events are read before anything else gets its turn. */
const sliceMilliseconds = 12

/** Every so many ticks it is looked whether the page moves too much. */
const calmTicks = 10

/** So much of an idle time is still seen before what ends it. */
const skipLead = 600

/** A tab of the session, as far as it was read. */
interface Tab {
  place: number
  feed: ReturnType<typeof createFeed>
  events: eventWithTime[]
  /** From when on there is a page to be seen, in milliseconds since its first event. */
  pageAt: number | undefined
}

/** What plays in the frame, and where it stands. */
interface Playing {
  root: HTMLElement
  say: (message: FromFrame) => void
  tabs: Tab[]
  timeline: ReturnType<typeof createTimeline>
  /** What has arrived and not been read: lines, the ends of parts, and the end of each tab. */
  queue: Queued[]
  isReading: boolean
  shown: { tab: Tab; stage: Stage } | undefined
  /** The tab that is shown whatever the visitor used; null: the one they used. */
  pinned: number | null
  /** Time runs on while the tab that is shown has nothing to play: from where, and since when. */
  beside: { at: number; since: number } | undefined
  outline: Outline
  outlinedAt: number
  isDamaged: boolean
  ticks: number
  isPlaying: boolean
  isSkipping: boolean
  isComplete: boolean
  /** All that came so far was shown; it goes on when more comes. */
  isStarved: boolean
  speed: number
  /** Milliseconds since the beginning: where it stands while no time runs. */
  at: number
}

type Queued =
  | { tab: Tab; line: string }
  | { tab: Tab; isEnd: true }
  | { bytes: number }
  | 'complete'

/** Plays what it is given in `root`, does what it is told, and says how it goes. */
export function createFramePlayer(
  root: HTMLElement,
  say: (message: FromFrame) => void,
): (message: ToFrame) => void {
  const playing: Playing = {
    root,
    say,
    tabs: [],
    timeline: createTimeline(),
    queue: [],
    isReading: false,
    shown: undefined,
    pinned: null,
    beside: undefined,
    outline: { duration: 0, isComplete: false },
    outlinedAt: Number.NEGATIVE_INFINITY,
    isDamaged: false,
    ticks: 0,
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
    case 'ping':
      playing.say({ kind: 'alive' })
      break
    case 'bytes': {
      const tab = tabOf(playing, message.tab)
      if (message.isAppended) playing.isComplete = false
      const lines = tab.feed.take(message.bytes).map((line) => ({ tab, line }))
      enqueue(playing, ...lines, { bytes: message.bytes.byteLength })
      break
    }
    case 'end': {
      const tab = tabOf(playing, message.tab)
      enqueue(playing, { tab, line: tab.feed.finish() }, { tab, isEnd: true })
      break
    }
    case 'complete':
      enqueue(playing, 'complete')
      break
    case 'tab':
      playing.pinned = message.tab
      move(playing, now(playing))
      break
    case 'play':
      playing.isPlaying = true
      move(playing, isAtEnd(playing) ? 0 : playing.at)
      break
    case 'pause': {
      const at = now(playing)
      playing.isPlaying = false
      move(playing, at)
      break
    }
    case 'seek':
      move(playing, Math.min(Math.max(message.at, 0), playing.outline.duration))
      break
    case 'speed':
      playing.at = now(playing)
      playing.speed = message.speed
      playing.shown?.stage.setSpeed(message.speed)
      if (playing.beside) playing.beside = { at: playing.at, since: performance.now() }
      break
    case 'skip_idle':
      playing.isSkipping = message.isOn
      break
  }
}

function tabOf({ tabs, timeline }: Playing, wanted: number): Tab {
  for (let place = tabs.length; place <= wanted; place++) {
    const feed = createFeed()
    tabs.push({ place, feed, events: [], pageAt: undefined })
    timeline.add(feed.outline)
  }
  return tabs[wanted] as Tab
}

function enqueue(playing: Playing, ...parts: Queued[]): void {
  for (const part of parts) playing.queue.push(part)
  if (playing.isReading) return
  playing.isReading = true
  readSome(playing)
}

/** Reads for a moment, and goes on after whatever else there is to do. */
function readSome(playing: Playing): void {
  const { queue } = playing
  const until = performance.now() + sliceMilliseconds
  const news = new Map<Tab, eventWithTime[]>()
  const events = (tab: Tab) => news.get(tab) ?? (news.set(tab, []).get(tab) as eventWithTime[])
  let read = 0
  while (read < queue.length && performance.now() < until) {
    const part = queue[read] as Queued
    read++
    if (part === 'complete') end(playing)
    else if ('bytes' in part) playing.say({ kind: 'taken', bytes: part.bytes })
    else if ('isEnd' in part) part.tab.feed.mark()
    else {
      const event = part.tab.feed.read(part.line)
      if (event) events(part.tab).push(event)
    }
  }
  queue.splice(0, read)
  for (const [tab, some] of news) add(playing, tab, some)
  tellOutline(playing, false)
  playing.isReading = queue.length > 0 || playing.timeline.hasMore()
  if (playing.isReading) setTimeout(readSome, queue.length > 0 ? 0 : outlineMilliseconds, playing)
}

function end(playing: Playing): void {
  playing.isComplete = true
  // What is next told ends it.
  playing.outlinedAt = Number.NEGATIVE_INFINITY
}

function damage(playing: Playing): void {
  if (!playing.isDamaged) playing.say({ kind: 'damaged' })
  playing.isDamaged = true
}

function add(playing: Playing, tab: Tab, events: eventWithTime[]): void {
  for (const event of events) tab.events.push(event)
  const page = events.find(({ type }) => type === EventType.FullSnapshot)
  // The player builds what lies before a moment, not what lies at it.
  if (page) tab.pageAt ??= page.timestamp - (tab.events[0] as eventWithTime).timestamp + 1
  if (tab.feed.isExceeded()) damage(playing)
  if (playing.shown?.tab === tab) playing.shown.stage.add(events)
  else if (!playing.shown && isPlayable(tab)) begin(playing)
}

/** The player needs a page, and one event more. */
function isPlayable(tab: Tab | undefined): tab is Tab {
  return tab?.pageAt !== undefined && tab.events.length > 1
}

function begin(playing: Playing): void {
  tellOutline(playing, true)
  window.addEventListener('resize', () => playing.shown?.stage.fit())
  move(playing, playing.at)
  playing.say({ kind: 'ready' })
  setInterval(() => tick(playing), tickMilliseconds)
}

function tellOutline(playing: Playing, isForced: boolean): void {
  if (!isForced && performance.now() - playing.outlinedAt < outlineMilliseconds) return
  const news = playing.timeline.news(playing.isComplete)
  playing.outlinedAt = performance.now()
  playing.outline = news.outline
  playing.say({ kind: 'outline', ...news })
  if (playing.isStarved && playing.at < playing.outline.duration) move(playing, playing.at)
  // Of a tab that came later it may only be known now that it was the one that was used.
  else if (!playing.isPlaying && tabAt(playing, playing.at) !== playing.shown?.tab) {
    show(playing, playing.at)
  }
}

function move(playing: Playing, at: number): void {
  playing.at = at
  playing.isStarved = false
  playing.beside = undefined
  show(playing, at)
  playing.say({ kind: 'time', at, isPlaying: playing.isPlaying })
}

/** Has the right tab stand, or play, at a moment. */
function show(playing: Playing, at: number): void {
  const { timeline, isPlaying } = playing
  const stage = stageFor(playing, tabAt(playing, at))
  if (!stage || !playing.shown) return
  const { tab } = playing.shown
  const duration = tab.feed.outline.duration()
  const within = at - timeline.offset(tab.place)
  if (isPlaying && within >= 0 && within < duration) {
    stage.play(Math.max(within, tab.pageAt ?? 0))
    return
  }
  stage.pause(Math.max(Math.min(within, duration), tab.pageAt ?? 0))
  if (isPlaying) playing.beside = { at, since: performance.now() }
}

function tabAt({ tabs, timeline, pinned, shown }: Playing, at: number): Tab | undefined {
  const wanted = tabs[pinned ?? timeline.tabAt(at)]
  return isPlayable(wanted) ? wanted : (shown?.tab ?? tabs.find(isPlayable))
}

/** One tab stands on the stage at a time: what the others built is taken down. */
function stageFor(playing: Playing, tab: Tab | undefined): Stage | undefined {
  if (!tab || playing.shown?.tab === tab) return playing.shown?.stage
  playing.shown?.stage.close()
  const stage = createStage(playing.root, tab.events.slice(), {
    onFinish: () => finish(playing),
    onDamage: () => damage(playing),
  })
  stage.setSpeed(playing.speed)
  playing.shown = { tab, stage }
  playing.say({ kind: 'shown', tab: tab.place })
  return stage
}

function now({ isPlaying, shown, beside, speed, timeline, at, outline }: Playing): number {
  if (!isPlaying) return at
  const time = beside
    ? beside.at + (performance.now() - beside.since) * speed
    : shown && shown.stage.time() + timeline.offset(shown.tab.place)
  return Math.min(Math.max(time ?? at, 0), outline.duration)
}

function isAtEnd({ at, outline, isComplete }: Playing): boolean {
  return isComplete && at >= outline.duration
}

/** The tab that is shown has ended; others may go on. */
function finish(playing: Playing): void {
  if (playing.beside || !playing.shown) return
  const { tab } = playing.shown
  const at = playing.timeline.offset(tab.place) + tab.feed.outline.duration()
  if (at < playing.outline.duration) playing.beside = { at, since: performance.now() }
  else finishAll(playing)
}

function finishAll(playing: Playing): void {
  playing.at = playing.outline.duration
  playing.beside = undefined
  if (!playing.isComplete) playing.isStarved = true
  else if (playing.isPlaying) {
    playing.isPlaying = false
    playing.say({ kind: 'time', at: playing.at, isPlaying: false })
    playing.say({ kind: 'ended' })
  }
  // It may end with the first thing that was done in another tab.
  if (tabAt(playing, playing.at) !== playing.shown?.tab) show(playing, playing.at)
}

function tick(playing: Playing): void {
  playing.ticks++
  if (playing.ticks % calmTicks === 0 && playing.shown?.stage.calm()) damage(playing)
  if (!playing.isPlaying || playing.isStarved) return
  const { beside, shown, timeline } = playing
  const at = now(playing)
  playing.at = at
  if (beside && at >= playing.outline.duration) {
    finishAll(playing)
    return
  }
  const span =
    playing.isSkipping &&
    timeline.spans().find(({ from, to }) => at >= from && at < to - skipLead * 2)
  if (span) {
    playing.say({ kind: 'skipped', span: { ...span, from: at } })
    move(playing, span.to - skipLead)
    return
  }
  const begins = timeline.offset(shown?.tab.place ?? 0)
  const ends = begins + (shown?.tab.feed.outline.duration() ?? 0)
  const hasMore = beside && at >= begins && at < ends
  if (hasMore || tabAt(playing, at) !== shown?.tab) move(playing, at)
  else playing.say({ kind: 'time', at, isPlaying: true })
}
