import type { Platform } from '../platform.ts'
import { createBudget, URGENT } from './budget.ts'
import { now } from './clock.ts'

/** How long events wait for more: for the first chunks, and from then on. */
const WAITS = [5_000, 10_000, 20_000, 30_000]
const RIPE_MILLISECONDS = 5_000
/** This many characters fit into a beacon uncompressed, so closing the page does not lose them. */
const BEACON_CHARACTERS = 48_000
const URGENT_MILLISECONDS = 500

/** Decides when collected events are sent: less and less often, but soon after an error. */
export function createSchedule({ after }: Platform, due: () => void) {
  const urgent = createBudget(URGENT, now())
  let waits = 0
  let isRipe = false
  let cancel: (() => void) | undefined

  const clear = () => {
    cancel?.()
    cancel = undefined
    isRipe = false
  }
  const dueIn = (milliseconds: number) => {
    cancel?.()
    cancel = after(milliseconds, () => {
      cancel = undefined
      due()
    })
  }
  const isTooMuch = (size: number) => isRipe && size > BEACON_CHARACTERS
  return {
    clear,
    /** Called for a new session: its first chunks are sent sooner again. */
    restart() {
      waits = 0
    },
    /** Called when an event is added. Starts the wait if it is the first. */
    start(size: () => number) {
      cancel ??= after(RIPE_MILLISECONDS, () => {
        const wait = WAITS[Math.min(waits++, WAITS.length - 1)] as number
        isRipe = true
        dueIn(isTooMuch(size()) ? 0 : wait - RIPE_MILLISECONDS)
      })
    },
    /** Whether events have waited five seconds and no longer fit into a beacon. */
    isTooMuch,
    /** An error follows, and the page may not live much longer. */
    hurry: () => urgent.spend(1, now()) && dueIn(URGENT_MILLISECONDS),
  }
}
