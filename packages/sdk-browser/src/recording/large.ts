/** Replaces an image whose data is too large. */
const PLACEHOLDER = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='
/** The maximum length of an attribute. Smaller once a snapshot exceeded the server's limit. */
let maximum = 50_000
const LEAN_MAXIMUM = 2_000

/** Makes snapshots smaller. Returns false if they already are. */
export function makeLean(): boolean {
  const isNew = maximum > LEAN_MAXIMUM
  maximum = LEAN_MAXIMUM
  return isNew
}

/** Returns an attribute without long data URLs, or undefined if it is still too long. */
export function shortened(name: string, value: unknown) {
  if (typeof value !== 'string' || value.length <= maximum || name === '_cssText') return value
  const short = value.replace(/data:[^,)'"]*,[^)'"\s]{1000,}/g, PLACEHOLDER)
  return short.length > maximum ? undefined : short
}
