/** What stands for an image whose bytes would take the room of the whole page. */
const PLACEHOLDER = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='
/** An attribute may be so long, and less once a snapshot of a page was over the server's limit. */
let maximum = 50_000
const LEAN_MAXIMUM = 2_000

/** Asks for smaller snapshots. False where they are as small as they get. */
export function makeLean(): boolean {
  const isNew = maximum > LEAN_MAXIMUM
  maximum = LEAN_MAXIMUM
  return isNew
}

/** An attribute without the data URLs that make it too long; nothing where it is all the same. */
export function shortened(name: string, value: unknown) {
  if (typeof value !== 'string' || value.length <= maximum || name === '_cssText') return value
  const short = value.replace(/data:[^,)'"]*,[^)'"\s]{1000,}/g, PLACEHOLDER)
  return short.length > maximum ? undefined : short
}
