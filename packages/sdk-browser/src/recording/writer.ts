import type { eventWithTime } from '@rrweb/types'
import type { MaskEvent } from '../masking/masker.ts'
import { setTimeout } from '../natives.ts'
import { elapsed, SLICE_MILLISECONDS } from './page-natives.ts'
import { textOf } from './text-of.ts'

/** Batches events: a task for each of a thousand would cost as much as the events. */
const SOON_MILLISECONDS = 50

/** Masks events and writes them as lines of JSON, in its own tasks. */
export function createWriter(
  mask: MaskEvent,
  write: (line: string, isSnapshot: boolean, at: number) => void,
  inOwnTask: (run: () => void) => void,
  fault: () => void,
  written: () => unknown,
) {
  let waiting: eventWithTime[] = []
  /** The slices of the first waiting event, if it is a snapshot. */
  let slices: ReturnType<MaskEvent['slices']> | undefined
  let isScheduled = false

  const clear = () => {
    waiting = []
    slices = undefined
  }
  const writeUntil = (until: number) => {
    for (let event = waiting[0]; event; event = waiting[0]) {
      if (event.type === 2) slices ??= mask.slices(event)
      const masked = slices ? slices(until) : mask(event)
      if (slices && !masked) return
      slices = undefined
      waiting.shift()
      if (masked) write(textOf(masked), event.type === 2, event.timestamp)
      if (elapsed() > until) return
    }
  }
  const writeAll = (until = Number.POSITIVE_INFINITY) => {
    try {
      writeUntil(until)
    } catch {
      clear()
      fault()
    }
  }
  const writeSlice = () => {
    isScheduled = false
    writeAll(elapsed() + SLICE_MILLISECONDS)
    if (waiting.length) schedule(inOwnTask)
    else written()
  }
  const schedule = (how: (run: () => void) => void) => {
    if (isScheduled) return
    isScheduled = true
    how(writeSlice)
  }
  const soon = (run: () => void) => void setTimeout(() => inOwnTask(run), SOON_MILLISECONDS)
  return {
    /** Also before a new snapshot: waiting events are earlier, and it does not contain errors. */
    writeAll: () => writeAll(),
    queue(events: eventWithTime[]) {
      waiting.push(...events)
      schedule(soon)
    },
    clear,
  }
}
