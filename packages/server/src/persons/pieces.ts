import { raw } from '../sql.ts'

/** A person as the API shows it. */
export interface PersonFound {
  externalId: string
  /** JSON, spliced into answers and never parsed; what is large as its bytes in UTF-8. */
  properties: string | Buffer
  createdAt: string
  updatedAt: string
}

/** What is larger in JSON comes in pieces of as many bytes. */
const pieceBytes = 16_384

/** A row of a statement made with `inPieces`: a person, or one piece of a large one. */
export interface Piece {
  externalId: string
  createdAt: string
  updatedAt: string
  /** JSON, unless it is large. */
  properties: string | Buffer | null
  /** Bytes of the JSON in UTF-8, of those that are large. */
  piece: Buffer | null
  /** Which piece this is, counted from 0; 0 also for what is not large. */
  at: number
}

const bytes = String(pieceBytes)

/**
 * Begins and ends the end of a statement that reads the persons of a select (external_id, properties
 * as text, created_at, updated_at) in their order, the large ones in pieces: a large text would have
 * to be in the heap once, and the garbage of some of them holds up everybody when it is collected.
 */
export const inPieces = {
  begin: raw(`
    external_id as "externalId", created_at as "createdAt", updated_at as "updatedAt", at,
    case when octet_length(properties) <= ${bytes} then properties end as properties,
    case when octet_length(properties) > ${bytes}
      then substr(convert_to(properties, 'UTF8'), at * ${bytes} + 1, ${bytes})
    end as piece
  from (
    -- A function in the list of a select keeps the order of the rows.
    select persons.*, generate_series(0, (octet_length(properties) - 1) / ${bytes}) as at
    from (`),
  end: raw(`) as persons offset 0
  ) as pieces`),
}

/** The persons of the rows, in their order. */
export function joinPieces<Rest extends object>(rows: (Rest & Piece)[]): (Rest & PersonFound)[] {
  const persons: (Rest & Piece & PersonFound)[] = []
  for (let from = 0, to = 1; from < rows.length; from = to++) {
    while (to < rows.length && rows[to]?.at !== 0) to++
    const person = rows[from] as Rest & Piece
    person.properties ??= Buffer.concat(rows.slice(from, to).map(bytesOf))
    persons.push(person as Rest & Piece & PersonFound)
  }
  return persons
}

function bytesOf({ piece }: Piece): Buffer {
  return piece ?? Buffer.alloc(0)
}
