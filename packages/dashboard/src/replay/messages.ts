/* What the dashboard's page and the replay frame say to each other, over a MessagePort. */

export type ToFrame =
  /** Recorded events of a tab as ndjson, cut anywhere. `isAppended`: of a session that goes on. */
  | { kind: 'bytes'; bytes: ArrayBuffer; tab: number; isAppended: boolean }
  /** All that there is for now of a tab has been sent. */
  | { kind: 'end'; tab: number }
  /** All that there is for now of all tabs has been sent. */
  | { kind: 'complete' }
  /** Shows this tab; null: at each moment the one that the visitor used. */
  | { kind: 'tab'; tab: number | null }
  | { kind: 'play' }
  | { kind: 'pause' }
  | { kind: 'seek'; at: number }
  | { kind: 'speed'; speed: number }
  | { kind: 'skip_idle'; isOn: boolean }
  /** Asks for `alive`. */
  | { kind: 'ping' }

export type FromFrame =
  /** The frame runs and takes messages. */
  | { kind: 'alive' }
  /** So many bytes have been read. */
  | { kind: 'taken'; bytes: number }
  /** What has become known of the recording: entries and spans from these places on. */
  | ({ kind: 'outline' } & News)
  /** The tab that is seen from now on. */
  | { kind: 'shown'; tab: number }
  /** There is something to see, and `play` has an effect. */
  | { kind: 'ready' }
  | { kind: 'time'; at: number; isPlaying: boolean }
  | { kind: 'skipped'; span: Span }
  | { kind: 'ended' }
  /** A part of the recording could not be shown. */
  | { kind: 'damaged' }

/** Milliseconds since the recording's beginning. */
export interface Outline {
  duration: number
  isComplete: boolean
}

export interface News {
  outline: Outline
  entries: Part<OutlineEntry>
  spans: Part<Span>
  /** All of them: from when on the visitor used which tab. Empty where there is one tab. */
  switches: Switch[]
}

export interface Switch {
  at: number
  tab: number
}

/** The rest of a list, in place of whatever was known from `from` on. */
export interface Part<T> {
  from: number
  rows: T[]
}

export const entryKinds = [
  'page',
  'click',
  'input',
  'error',
  'console',
  'request',
  'rage',
  'dead',
  'vital',
  'tab',
  'other',
] as const
export type EntryKind = (typeof entryKinds)[number]

export interface OutlineEntry {
  at: number
  what: EntryKind
  text: string
  /** How often it happened in a row. */
  count: number
  isWrong?: boolean
  /** What is shown at its end, as a time. */
  note?: string
  /** In which tab, where there are several. */
  tab?: number
}

/** Where nobody did anything for a while, or where nothing was recorded. */
export interface Span {
  from: number
  to: number
  kind: 'idle' | 'gap'
}

/** The first message to the frame; its port carries all the others. */
export const connectMessage = 'lethe.replay.connect'
