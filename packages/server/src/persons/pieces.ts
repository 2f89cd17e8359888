import { raw } from '../sql.ts'

/**
 * JSON of more bytes comes in pieces of as many, which lie outside of the heap: as one text it would
 * have to be in it once, and the garbage of some of those holds up everybody when it is collected.
 */
const pieceBytes = 16_384
const bytes = String(pieceBytes)

/** A person as the API shows it. */
export interface PersonFound {
  externalId: string
  /** JSON, spliced into answers and never parsed; what is large as pieces of its bytes in UTF-8. */
  properties: string | Buffer[]
  createdAt: string
  updatedAt: string
}

/** A person as it is found first: where its properties are large, they are still to be asked for. */
export interface PersonListed extends Omit<PersonFound, 'properties'> {
  /** The internal, immutable key, in the order of creation; a decimal number as text. */
  id: string
  properties: string | null
}

/** Whether nothing is still to be asked for. */
export function isWhole(person: PersonListed): person is PersonListed & PersonFound {
  return person.properties !== null
}

/** A row of a statement made with `inPieces`: a person, or one piece of a large one. */
export interface Piece {
  externalId: string
  createdAt: string
  updatedAt: string
  /** JSON, unless it is large. */
  properties: string | Buffer[] | null
  /** Bytes of the JSON in UTF-8, of those that are large. */
  piece: Buffer | null
  /** Which piece this is, counted from 0; 0 also for what is not large. */
  at: number
}

// What follows stands around a select of persons: external_id, properties as text, created_at,
// updated_at. It keeps the order of the rows.

export const inPieces = {
  begin: raw(`
    external_id as "externalId", created_at as "createdAt", updated_at as "updatedAt", at,
    case when octet_length(properties) <= ${bytes} then properties end as properties,
    case when octet_length(properties) > ${bytes}
      then substr(convert_to(properties, 'UTF8'), at * ${bytes} + 1, ${bytes})
    end as piece
  from (
    select persons.*, generate_series(0, (octet_length(properties) - 1) / ${bytes}) as at
    from (`),
  end: raw(`) as persons offset 0
  ) as pieces`),
}

/** The same with `id`, and without the properties that are large. */
export const withoutLarge = {
  begin: raw(`
    id, external_id as "externalId", created_at as "createdAt", updated_at as "updatedAt",
    case when octet_length(properties) <= ${bytes} then properties end as properties
  from (`),
  end: raw(') as persons'),
}

/** The persons of rows read in pieces, in their order. */
export function joinPieces<Rest extends object>(rows: (Rest & Piece)[]): (Rest & PersonFound)[] {
  const persons: (Rest & Piece & PersonFound)[] = []
  for (let from = 0, to = 1; from < rows.length; from = to++) {
    while (to < rows.length && rows[to]?.at !== 0) to++
    const person = rows[from] as Rest & Piece
    person.properties ??= rows.slice(from, to).map(({ piece }) => piece as Buffer)
    persons.push(person as Rest & Piece & PersonFound)
  }
  return persons
}
