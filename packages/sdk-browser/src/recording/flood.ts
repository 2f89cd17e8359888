/** So many changes in one go cost more to follow than the page costs to look at again. */
export const FLOOD_RECORDS = 20_000

let flooded = () => {}

/** Tells that a page has changed so much at once that none of it was followed. */
export function onFlood(run: () => void) {
  flooded = run
}

export const flood = () => flooded()
