/** A page with more elements is not recorded: users would notice even the first snapshot. */
export const ELEMENTS_MAXIMUM = 50_000

/** How many changes a page may make at once and per second before recording stops. */
export const CHANGES = { burst: 50_000, perSecond: 1_000 }

/** The recorder's own errors. Each causes a new snapshot; after more of them recording stops. */
export const FAULTS = { burst: 3, perSecond: 1 / 60 }

/** Errors of the page that are sent at once. If there are more, they wait like other events. */
export const URGENT = { burst: 3, perSecond: 1 / 60 }

/** New snapshots because of style sheets that loaded late. */
export const LOOKS = { burst: 3, perSecond: 1 / 60 }

/** A token bucket. `spend` takes the amount if there is enough, and returns whether it did. */
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
