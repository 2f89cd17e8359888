import { createHmac, timingSafeEqual } from 'node:crypto'
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
  const macOf = (list: readonly unknown[], position: string) =>
    createHmac('sha256', key)
      .update(JSON.stringify([...list, position]))
      .digest()
      .subarray(0, macBytes)
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
