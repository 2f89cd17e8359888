import type { Platform } from '../platform.ts'
import { createBudget, URGENT } from './budget.ts'
import { now } from './clock.ts'

/** How long events wait for more of them: those of the first chunks, and from then on. */
const WAITS = [5_000, 10_000, 20_000, 30_000]
const RIPE_MILLISECONDS = 5_000
/** So many characters, sent as they are, fit into a beacon: they arrive when the page is closed. */
const BEACON_CHARACTERS = 48_000
const URGENT_MILLISECONDS = 500

/** When collected events are sent: ever less often, and at once where something broke. */
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
    /** Another session: its first chunks are sent soon again. */
    restart() {
      waits = 0
    },
    /** Events wait from here on, if none did before. */
    start(size: () => number) {
      cancel ??= after(RIPE_MILLISECONDS, () => {
        const wait = WAITS[Math.min(waits++, WAITS.length - 1)] as number
        isRipe = true
        dueIn(isTooMuch(size()) ? 0 : wait - RIPE_MILLISECONDS)
      })
    },
    /** Whether what has waited for five seconds is more than a beacon can carry. */
    isTooMuch,
    /** What broke is on its way here, and the page may not live for long. */
    hurry: () => urgent.spend(1, now()) && dueIn(URGENT_MILLISECONDS),
  }
}
