/** A page of more elements is not recorded: the first snapshot alone would be felt. */
export const ELEMENTS_MAXIMUM = 50_000

/** How many changes a page may make at once, and how many more each second, before it is enough. */
export const CHANGES = { burst: 50_000, perSecond: 1_000 }

/** Faults of our own, each mended by a new snapshot, after which it is better to stop. */
export const FAULTS = { burst: 3, perSecond: 1 / 60 }

/** Errors that are sent at once; of a page that fails all the time the others wait like the rest. */
export const URGENT = { burst: 3, perSecond: 1 / 60 }

/** New snapshots for style sheets that came late. */
export const LOOKS = { burst: 3, perSecond: 1 / 60 }

/** A bucket that fills up with time. `spend` takes what there is enough of, and returns whether. */
export function createBudget({ burst, perSecond }: typeof CHANGES, now: number) {
  let left = burst
  let at = now
  return {
    spend(amount: number, time: number) {
      left = Math.min(burst, left + ((time - at) / 1000) * perSecond)
      at = time
      const isEnough = amount <= left
      if (isEnough) left -= amount
      return isEnough
    },
  }
}
