/** A page of more elements is not recorded: the first snapshot alone would be felt. */
export const ELEMENTS_MAXIMUM = 50_000

/** How many changes a page may make at once, and how many more each second, before it is enough. */
const BURST = 50_000
const PER_SECOND = 1_000

/** A bucket of changes that fills up with time. `spend` answers whether there was enough in it. */
export function createBudget(now: number) {
  let left = BURST
  let at = now
  return {
    spend(changes: number, time: number) {
      left = Math.min(BURST, left + ((time - at) / 1000) * PER_SECOND) - changes
      at = time
      return left >= 0
    },
  }
}
