import { EventType, type eventWithTime } from '@rrweb/types'
import { createFeed } from './feed.ts'
import type { FromFrame, Outline, ToFrame } from './messages.ts'
import { createStage, type Stage } from './stage.ts'
import { createTimeline } from './timeline.ts'

const tickMilliseconds = 100

/** The shortest time between two outlines sent to the page. */
const outlineMilliseconds = 200

/** How long events are read before other tasks run. */
const sliceMilliseconds = 12

/** How many ticks there are between checks for too many animations. */
const calmTicks = 10

/** How much of an idle time is still played before it ends. */
const skipLead = 600

/** A tab of the session, as far as it has been read. */
interface Tab {
  place: number
  feed: ReturnType<typeof createFeed>
  events: eventWithTime[]
  /** When the first page appears, in milliseconds since the tab's first event. */
  pageAt: number | undefined
}

/** The state of the player. */
interface Playing {
  root: HTMLElement
  say: (message: FromFrame) => void
  tabs: Tab[]
  timeline: ReturnType<typeof createTimeline>
  /** What has arrived and is not read yet: lines, ends of parts, and the end of each tab. */
  queue: Queued[]
  isReading: boolean
  shown: { tab: Tab; stage: Stage } | undefined
  /** The tab that is always shown; null for the one that the visitor used at each time. */
  pinned: number | null
  /** Time passes while the shown tab has nothing to play: from where, and since when. */
  beside: { at: number; since: number } | undefined
  outline: Outline
  outlinedAt: number
  isDamaged: boolean
  ticks: number
  isPlaying: boolean
  isSkipping: boolean
  isComplete: boolean
  /** Everything that has arrived was shown. Playing continues when more arrives. */
  isStarved: boolean
  speed: number
  /** The position while paused, in milliseconds since the beginning. */
  at: number
}

type Queued =
  | { tab: Tab; line: string }
  | { tab: Tab; isEnd: true }
  | { bytes: number }
  | 'complete'

/** Creates a player in `root`. Returns the receiver of its messages; `say` sends its own. */
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

/** Reads for a short time, and continues after other tasks. */
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
  // So that the next outline is sent at once.
  playing.outlinedAt = Number.NEGATIVE_INFINITY
}

function damage(playing: Playing): void {
  if (!playing.isDamaged) playing.say({ kind: 'damaged' })
  playing.isDamaged = true
}

function add(playing: Playing, tab: Tab, events: eventWithTime[]): void {
  for (const event of events) tab.events.push(event)
  const page = events.find(({ type }) => type === EventType.FullSnapshot)
  // The player builds what is before a time, not what is at it.
  if (page) tab.pageAt ??= page.timestamp - (tab.events[0] as eventWithTime).timestamp + 1
  if (tab.feed.isExceeded()) damage(playing)
  if (playing.shown?.tab === tab) playing.shown.stage.add(events)
  else if (!playing.shown && isPlayable(tab)) begin(playing)
}

/** The player needs a page and one more event. */
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
  // A tab that arrived later may turn out to be the one that was used.
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

/** Shows the right tab at a time, paused or playing. */
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

/** Only one tab is on the stage at a time. The previous one is closed. */
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

/** Called when the shown tab has ended. Others may continue. */
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
  // The last event may be the first one in another tab.
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
