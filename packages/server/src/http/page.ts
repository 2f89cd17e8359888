import { hash, timingSafeEqual } from 'node:crypto'
import { invalid } from '../api-error.ts'

/** The fields that decide a row's place in its list: ASCII without spaces. */
export type Position<Name extends string> = Record<Name, string>

/** Creates and reads cursors, which are opaque and valid only for their list. */
export interface Cursors {
  /** `list` names the list with everything that decides its rows (project, search, filters). */
  encode(list: readonly unknown[], position: readonly string[]): string
  /** The position a cursor points at; throws invalid_request for one that is not of this list. */
  decode(list: readonly unknown[], cursor: string): string[]
}

/**
 * Reads a page of a list. `names` are the fields that decide a row's place; `read` returns up to
 * `count` rows after a position, or from the beginning.
 */
export async function readPage<Name extends string, Row extends Position<Name>>(
  { cursors, list, limit, cursor }: PageOptions,
  names: readonly Name[],
  read: (after: Position<Name> | null, count: number) => Promise<Row[]>,
): Promise<{ rows: Row[]; nextCursor: string | null }> {
  const found = await read(positionAt({ cursors, list, cursor }, names), limit + 1)
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return { rows, nextCursor: last ? cursorAt({ cursors, list }, names, last) : null }
}

export interface PageOptions {
  cursors: Cursors
  list: readonly unknown[]
  limit: number
  cursor?: string | undefined
}

/** The position a page begins after; null for the first page. */
export function positionAt<Name extends string>(
  { cursors, list, cursor }: Omit<PageOptions, 'limit'>,
  names: readonly Name[],
): Position<Name> | null {
  if (cursor === undefined) return null
  const values = cursors.decode(list, cursor)
  return Object.fromEntries(names.map((name, place) => [name, values[place]])) as Position<Name>
}

export function cursorAt<Name extends string>(
  { cursors, list }: Pick<PageOptions, 'cursors' | 'list'>,
  names: readonly Name[],
  row: Position<Name>,
): string {
  return cursors.encode(
    list,
    names.map((name) => row[name]),
  )
}

const macBytes = 16

export function cursorsSignedWith(key: Buffer): Cursors {
  const secret = key.toString('base64')
  // SHA-3 with the key in front is a secure MAC. (SHA-2 would need HMAC, whose object per page costs
  // the garbage collector more than the page.)
  const macOf = (list: readonly unknown[], position: string) =>
    hash('sha3-256', secret + JSON.stringify([...list, position]), 'buffer').subarray(0, macBytes)
  return {
    encode(list, values) {
      const position = values.join(' ')
      return Buffer.concat([macOf(list, position), Buffer.from(position)]).toString('base64url')
    },
    decode(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      const position = bytes.subarray(macBytes).toString('latin1')
      const isOurs =
        bytes.length > macBytes &&
        // Base64 decoding ignores invalid characters, so one cursor could have several forms.
        bytes.toString('base64url') === cursor &&
        timingSafeEqual(bytes.subarray(0, macBytes), macOf(list, position))
      if (!isOurs) throw invalid('/query/cursor', 'is not a cursor of this list')
      return position.split(' ')
    },
  }
}
