/* What the dashboard's page and the replay frame say to each other, over a MessagePort. */

export type ToFrame =
  /** Recorded events as ndjson, cut anywhere. `isAppended`: of a session that goes on. */
  | { kind: 'bytes'; bytes: ArrayBuffer; isAppended: boolean }
  /** All that there is for now has been sent. */
  | { kind: 'end' }
  | { kind: 'play' }
  | { kind: 'pause' }
  | { kind: 'seek'; at: number }
  | { kind: 'speed'; speed: number }
  | { kind: 'skip_idle'; isOn: boolean }

export type FromFrame =
  /** What is known of the recording so far; milliseconds since its beginning. */
  | { kind: 'outline'; outline: Outline }
  /** There is something to see, and `play` has an effect. */
  | { kind: 'ready' }
  | { kind: 'time'; at: number; isPlaying: boolean }
  | { kind: 'skipped'; from: number; to: number }
  | { kind: 'ended' }
  /** A part of the recording could not be shown. */
  | { kind: 'damaged' }

export interface Outline {
  startedAt: number
  duration: number
  isComplete: boolean
  entries: OutlineEntry[]
  /** Where nobody did anything for a while. */
  idle: { from: number; to: number }[]
}

export interface OutlineEntry {
  at: number
  what: 'page' | 'click' | 'input' | 'resize' | 'custom'
  text: string
}

/** The first message to the frame; its port carries all the others. */
export const connectMessage = 'lethe.replay.connect'
