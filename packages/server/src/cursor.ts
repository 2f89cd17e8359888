import { hash, timingSafeEqual } from 'node:crypto'
import { invalid } from './api-error.ts'

/** Makes and reads the cursors of lists: opaque, and good only for the list they came from. */
export interface Cursors {
  /** `list` names the list with everything that decides its rows (project, search, filters). */
  encode(list: readonly unknown[], position: string): string
  /** The position a cursor points at; throws invalid_request for one we did not make for this list. */
  decode(list: readonly unknown[], cursor: string): string
}

const macBytes = 16

export function cursorsSignedWith(key: Buffer): Cursors {
  const secret = key.toString('base64')
  // SHA-3 takes its key in front, unlike SHA-2, which needs HMAC; and a HMAC object for each page
  // costs the garbage collector more than the page.
  const macOf = (list: readonly unknown[], position: string) =>
    hash('sha3-256', secret + JSON.stringify([...list, position]), 'buffer').subarray(0, macBytes)
  return {
    encode: (list, position) =>
      Buffer.concat([macOf(list, position), Buffer.from(position)]).toString('base64url'),
    decode(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      const position = bytes.subarray(macBytes).toString('latin1')
      const isOurs =
        bytes.length > macBytes &&
        // Characters that base64 passes over would make a second cursor out of one.
        bytes.toString('base64url') === cursor &&
        timingSafeEqual(bytes.subarray(0, macBytes), macOf(list, position))
      if (!isOurs) throw invalid('/query/cursor', 'is not a cursor of this list')
      return position
    },
  }
}
