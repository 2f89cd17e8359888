import {
  connectMessage,
  type EntryKind,
  type FromFrame,
  type News,
  type Outline,
  type OutlineEntry,
  type Span,
  type Switch,
  type ToFrame,
} from './messages.ts'

export interface PlayerState {
  outline: Outline
  /** Increases with each change of `entries`, `counts` and `spans`. */
  version: number
  /** Increases when entries were inserted before others. */
  rewrites: number
  switches: Switch[]
  /** The index of the shown tab among the session's tabs. */
  tab: number
  at: number
  isPlaying: boolean
  /** There is something to show. */
  isReady: boolean
  hasEnded: boolean
  isDamaged: boolean
  /** Whether the frame runs in another process and cannot block this page, once known. */
  isApart: boolean | undefined
  /** The frame has not responded for a while. */
  isStuck: boolean
  isStopped: boolean
  speed: number
  isSkipping: boolean
  /** The last span that was skipped. */
  skipped: Span | null
}

export interface Player {
  state(): PlayerState
  subscribe(listener: () => void): () => void
  /** The events in order. These lists are never replaced; they grow. */
  entries: readonly OutlineEntry[]
  counts: ReadonlyMap<EntryKind, number>
  spans: readonly Span[]
  /** Connects it to the replay frame once that has loaded. */
  connect(frame: HTMLIFrameElement): void
  /** Passes recorded bytes of a tab on as they arrive. Wait while it `isFull`. */
  feed(tab: number, bytes: ArrayBuffer, isAppended: boolean): void
  isFull(): boolean
  feedEnds(tab: number): void
  /** All tabs have been fed. */
  complete(): void
  /** Shows this tab; null for the one that the visitor used at each time. */
  pin(tab: number | null): void
  play(): void
  pause(): void
  seek(at: number): void
  setSpeed(speed: number): void
  setSkipping(isOn: boolean): void
  /** Stops and removes the frame. */
  stop(): void
}

/** Bytes that the frame has not read yet. */
const unreadMaximum = 8_000_000

const pingMilliseconds = 1_000
const patienceMilliseconds = 4_000

const atFirst: PlayerState = {
  outline: { duration: 0, isComplete: false },
  version: 0,
  rewrites: 0,
  switches: [],
  tab: 0,
  at: 0,
  isPlaying: false,
  isReady: false,
  hasEnded: false,
  isDamaged: false,
  isApart: undefined,
  isStuck: false,
  isStopped: false,
  speed: 1,
  isSkipping: true,
  skipped: null,
}

/** The page's side of a player, which itself is in the frame. */
export function createPlayer(startAt: number): Player {
  const listeners = new Set<() => void>()
  const lists = createLists()
  const link = createLink()
  let unread = 0
  let wanted = startAt
  let state: PlayerState = { ...atFirst, at: startAt }

  function change(part: Partial<PlayerState>): void {
    state = { ...state, ...part }
    for (const listener of listeners) listener()
  }

  function hear(message: FromFrame): void {
    if (message.kind === 'taken') unread -= message.bytes
    if (message.kind === 'outline') {
      const isRewritten = lists.take(message)
      change({ version: state.version + 1, rewrites: state.rewrites + Number(isRewritten) })
    }
    change({ isStuck: false, ...heard(message, wanted) })
    if (message.kind !== 'outline' || wanted === 0) return
    // The requested time may have arrived only now.
    const { duration, isComplete } = message.outline
    if (duration < wanted && !isComplete) return
    link.tell({ kind: 'seek', at: wanted })
    wanted = 0
  }

  return {
    state: () => state,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    entries: lists.entries,
    counts: lists.counts,
    spans: lists.spans,
    connect: (frame) =>
      link.connect(frame, {
        hear,
        onAlive: (isApart) => change({ isApart }),
        onSilence: () => state.isStuck || change({ isStuck: true }),
      }),
    feed(tab, bytes, isAppended) {
      unread += bytes.byteLength
      link.tell({ kind: 'bytes', bytes, tab, isAppended }, [bytes])
    },
    isFull: () => unread > unreadMaximum,
    feedEnds: (tab) => link.tell({ kind: 'end', tab }),
    complete: () => link.tell({ kind: 'complete' }),
    pin: (tab) => link.tell({ kind: 'tab', tab }),
    play() {
      change({ isPlaying: true, hasEnded: false })
      link.tell({ kind: 'play' })
    },
    pause() {
      change({ isPlaying: false })
      link.tell({ kind: 'pause' })
    },
    seek(at) {
      const within = Math.min(Math.max(at, 0), state.outline.duration)
      wanted = 0
      change({ at: within, hasEnded: false })
      link.tell({ kind: 'seek', at: within })
    },
    setSpeed(speed) {
      change({ speed })
      link.tell({ kind: 'speed', speed })
    },
    setSkipping(isSkipping) {
      change({ isSkipping })
      link.tell({ kind: 'skip_idle', isOn: isSkipping })
    },
    stop() {
      link.close()
      change({ isStopped: true, isPlaying: false, isStuck: false })
    },
  }
}

/** The state that a message changes. `at` stays at a `wanted` time that has not arrived yet. */
function heard(message: FromFrame, wanted: number): Partial<PlayerState> {
  switch (message.kind) {
    case 'outline':
      return { outline: message.outline, switches: message.switches }
    case 'shown':
      return { tab: message.tab }
    case 'ready':
      return { isReady: true }
    case 'time':
      return { at: wanted || message.at, isPlaying: message.isPlaying, hasEnded: false }
    case 'skipped':
      return { skipped: message.span }
    case 'ended':
      return { hasEnded: true, isPlaying: false }
    case 'damaged':
      return { isDamaged: true }
    default:
      return {}
  }
}

/** The lists, which the frame sends in parts. */
function createLists() {
  const entries: OutlineEntry[] = []
  const spans: Span[] = []
  const counts = new Map<EntryKind, number>()
  return {
    entries,
    spans,
    counts,
    /** Returns whether known entries were replaced. */
    take(news: News): boolean {
      const isRewritten = news.entries.from < entries.length - 1
      const countOne = ({ what, count }: OutlineEntry, sign: 1 | -1) =>
        counts.set(what, (counts.get(what) ?? 0) + count * sign)
      for (const entry of entries.splice(news.entries.from)) countOne(entry, -1)
      for (const entry of news.entries.rows) {
        entries.push(entry)
        countOne(entry, 1)
      }
      spans.splice(news.spans.from)
      for (const span of news.spans.rows) spans.push(span)
      return isRewritten
    },
  }
}

interface Ears {
  hear(message: FromFrame): void
  onAlive(isApart: boolean): void
  onSilence(): void
}

/** The port to the frame. Messages sent before the frame is ready are queued. */
function createLink() {
  const unsent: { message: ToFrame; transfer: Transferable[] }[] = []
  let port: MessagePort | undefined
  let isOpen = false
  let timer: ReturnType<typeof setInterval> | undefined

  function close(): void {
    clearInterval(timer)
    port?.close()
    port = undefined
    isOpen = false
  }

  return {
    tell(message: ToFrame, transfer: Transferable[] = []): void {
      if (isOpen) port?.postMessage(message, transfer)
      else unsent.push({ message, transfer })
    },
    close,
    connect(frame: HTMLIFrameElement, ears: Ears): void {
      close()
      const channel = new MessageChannel()
      frame.contentWindow?.postMessage(connectMessage, new URL(frame.src).origin, [channel.port2])
      const mine = channel.port1
      port = mine
      let heardAt = performance.now()
      mine.onmessage = ({ data }: MessageEvent<FromFrame>) => {
        heardAt = performance.now()
        if (!isOpen) {
          isOpen = true
          // The document of a frame in another process or of another site is not accessible.
          ears.onAlive(frame.contentDocument === null)
          for (const { message, transfer } of unsent.splice(0)) mine.postMessage(message, transfer)
        }
        ears.hear(data)
      }
      timer = setInterval(() => {
        if (!frame.isConnected) return close()
        // Hidden pages get messages late.
        if (!isOpen || document.hidden) heardAt = performance.now()
        else if (performance.now() - heardAt > patienceMilliseconds) ears.onSilence()
        mine.postMessage({ kind: 'ping' } satisfies ToFrame)
      }, pingMilliseconds)
    },
  }
}
