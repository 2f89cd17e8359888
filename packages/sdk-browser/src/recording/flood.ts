/** Following this many changes at once takes longer than a new snapshot. */
export const FLOOD_RECORDS = 20_000

let flooded = () => {}

/** Calls `run` when a page changed so much at once that the changes were not followed. */
export function onFlood(run: () => void) {
  flooded = run
}

export const flood = () => flooded()
