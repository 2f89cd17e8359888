/* Messages between the dashboard's page and the replay frame, over a MessagePort. */

export type ToFrame =
  /** Recorded events of a tab as NDJSON, split anywhere. `isAppended`: of a live session. */
  | { kind: 'bytes'; bytes: ArrayBuffer; tab: number; isAppended: boolean }
  /** Everything of a tab that exists so far has been sent. */
  | { kind: 'end'; tab: number }
  /** Everything of all tabs that exists so far has been sent. */
  | { kind: 'complete' }
  /** Shows this tab; null for the one that the visitor used at each time. */
  | { kind: 'tab'; tab: number | null }
  | { kind: 'play' }
  | { kind: 'pause' }
  | { kind: 'seek'; at: number }
  | { kind: 'speed'; speed: number }
  | { kind: 'skip_idle'; isOn: boolean }
  /** Asks for `alive`. */
  | { kind: 'ping' }

export type FromFrame =
  /** The frame runs and receives messages. */
  | { kind: 'alive' }
  /** This many bytes have been read. */
  | { kind: 'taken'; bytes: number }
  /** What is new about the recording: entries and spans from an index on. */
  | ({ kind: 'outline' } & News)
  /** The tab that is shown from now on. */
  | { kind: 'shown'; tab: number }
  /** There is something to show, and `play` has an effect. */
  | { kind: 'ready' }
  | { kind: 'time'; at: number; isPlaying: boolean }
  | { kind: 'skipped'; span: Span }
  | { kind: 'ended' }
  /** Part of the recording could not be shown. */
  | { kind: 'damaged' }

/** Times are in milliseconds since the beginning of the recording. */
export interface Outline {
  duration: number
  isComplete: boolean
}

export interface News {
  outline: Outline
  entries: Part<OutlineEntry>
  spans: Part<Span>
  /** All switches of the visitor between tabs. Empty if there is only one tab. */
  switches: Switch[]
}

export interface Switch {
  at: number
  tab: number
}

/** The rest of a list, which replaces everything from index `from` on. */
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
  /** How many times it happened in a row. */
  count: number
  isWrong?: boolean
  /** Shown at the end of the row, such as a duration. */
  note?: string
  /** The tab, if there are several. */
  tab?: number
}

/** A time without activity, or without a recording. */
export interface Span {
  from: number
  to: number
  kind: 'idle' | 'gap'
}

/** The first message to the frame. All others use its port. */
export const connectMessage = 'lethe.replay.connect'
