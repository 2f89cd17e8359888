import { connectMessage, type FromFrame, type Outline, type ToFrame } from './messages.ts'

export interface PlayerState {
  outline: Outline
  at: number
  isPlaying: boolean
  /** There is something to see. */
  isReady: boolean
  hasEnded: boolean
  isDamaged: boolean
  speed: number
  isSkipping: boolean
  /** The idle time that was jumped over last. */
  skipped: { from: number; to: number } | null
}

export interface Player {
  state(): PlayerState
  subscribe(listener: () => void): () => void
  /** Binds it to the replay frame, once that has loaded. */
  connect(frame: HTMLIFrameElement): void
  /** What was recorded, as it comes. */
  feed(bytes: ArrayBuffer, isAppended: boolean): void
  feedEnds(): void
  play(): void
  pause(): void
  seek(at: number): void
  setSpeed(speed: number): void
  setSkipping(isOn: boolean): void
}

const nothing: Outline = { startedAt: 0, duration: 0, isComplete: false, entries: [], idle: [] }

/** What the page knows of a player, and how it speaks to it; the player itself is in the frame. */
export function createPlayer(startAt: number): Player {
  const listeners = new Set<() => void>()
  const unsent: { message: ToFrame; transfer: Transferable[] }[] = []
  let port: MessagePort | undefined
  let wanted = startAt
  let state: PlayerState = {
    outline: nothing,
    at: startAt,
    isPlaying: false,
    isReady: false,
    hasEnded: false,
    isDamaged: false,
    speed: 1,
    isSkipping: true,
    skipped: null,
  }

  function change(part: Partial<PlayerState>): void {
    state = { ...state, ...part }
    for (const listener of listeners) listener()
  }

  function tell(message: ToFrame, transfer: Transferable[] = []): void {
    if (port) port.postMessage(message, transfer)
    else unsent.push({ message, transfer })
  }

  function hear(message: FromFrame): void {
    change(heard(message, wanted))
    if (message.kind !== 'outline' || wanted === 0) return
    // The place that was asked for may only have come now.
    const { duration, isComplete } = message.outline
    if (duration < wanted && !isComplete) return
    tell({ kind: 'seek', at: wanted })
    wanted = 0
  }

  return {
    state: () => state,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    connect(frame) {
      const channel = new MessageChannel()
      const origin = new URL(frame.src).origin
      frame.contentWindow?.postMessage(connectMessage, origin, [channel.port2])
      port = channel.port1
      port.onmessage = ({ data }: MessageEvent<FromFrame>) => hear(data)
      for (const { message, transfer } of unsent.splice(0)) port.postMessage(message, transfer)
    },
    feed: (bytes, isAppended) => tell({ kind: 'bytes', bytes, isAppended }, [bytes]),
    feedEnds: () => tell({ kind: 'end' }),
    play() {
      change({ isPlaying: true, hasEnded: false })
      tell({ kind: 'play' })
    },
    pause() {
      change({ isPlaying: false })
      tell({ kind: 'pause' })
    },
    seek(at) {
      const within = Math.min(Math.max(at, 0), state.outline.duration)
      wanted = 0
      change({ at: within, hasEnded: false })
      tell({ kind: 'seek', at: within })
    },
    setSpeed(speed) {
      change({ speed })
      tell({ kind: 'speed', speed })
    },
    setSkipping(isSkipping) {
      change({ isSkipping })
      tell({ kind: 'skip_idle', isOn: isSkipping })
    },
  }
}

/** What a message changes; while a place is `wanted` that has not come yet, the time stands there. */
function heard(message: FromFrame, wanted: number): Partial<PlayerState> {
  switch (message.kind) {
    case 'outline':
      return { outline: message.outline }
    case 'ready':
      return { isReady: true }
    case 'time':
      return { at: wanted || message.at, isPlaying: message.isPlaying, hasEnded: false }
    case 'skipped':
      return { skipped: { from: message.from, to: message.to } }
    case 'ended':
      return { hasEnded: true, isPlaying: false }
    case 'damaged':
      return { isDamaged: true }
  }
}
