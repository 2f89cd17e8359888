import type { Properties } from '@lethe/contract/person.ts'
import { jsonOf } from '../json-body.ts'
import type { Sql } from '../sql.ts'
import { fold } from './fold.ts'

/** A person as the API shows it. `properties` is JSON text, spliced into answers and never parsed. */
export interface PersonRow {
  /** The internal, immutable key, in the order of creation; a decimal number as text. */
  id: string
  externalId: string
  properties: string
  createdAt: string
  updatedAt: string
}

export type WriteOutcome =
  | 'created'
  | 'updated'
  | 'unchanged'
  | 'deleting'
  | 'missing'
  | 'too_many_keys'
  | 'too_large'

/**
 * Merges properties into a person, creating it first where `createMissing` says so; one statement
 * that decides every race (person_write in the migrations). The person is there with the outcomes
 * created, updated and unchanged.
 */
export async function writePerson(
  sql: Sql,
  projectId: number,
  externalId: string,
  properties: Properties,
  createMissing: boolean,
): Promise<{ outcome: WriteOutcome; person: Omit<PersonRow, 'id'> }> {
  const { set, removed } = splitProperties(properties)
  const [row] = await sql<{ outcome: WriteOutcome } & Omit<PersonRow, 'id'>>`
    select outcome, external_id as "externalId", properties,
      created_at as "createdAt", updated_at as "updatedAt"
    from person_write(
      ${projectId}, ${externalId}, ${set}, ${removed},
      ${fold(externalId)}, ${foldedField(properties, 'name')}, ${foldedField(properties, 'email')},
      ${createMissing})`
  const { outcome, ...person } = row as NonNullable<typeof row>
  return { outcome, person }
}

/** null means "remove this key"; jsonb has no such merge, so the two kinds travel apart. */
function splitProperties(properties: Properties): { set: string; removed: string[] } {
  const set: string[] = []
  const removed: string[] = []
  for (const [key, value] of Object.entries(properties)) {
    if (value === null) removed.push(key)
    else set.push(`${JSON.stringify(key)}:${jsonOf(value)}`)
  }
  return { set: `{${set.join()}}`, removed }
}

/** The search's form of a field: null where it was not sent, empty where it is no text (any more). */
function foldedField(properties: Properties, name: 'name' | 'email'): string | null {
  if (!Object.hasOwn(properties, name)) return null
  const value = properties[name]
  return typeof value === 'string' ? fold(value) : ''
}

export async function findPerson(
  sql: Sql,
  projectId: number,
  externalId: string,
): Promise<PersonRow | undefined> {
  const [person] = await sql<PersonRow>`
    select id, external_id as "externalId", properties::text as properties,
      created_at as "createdAt", updated_at as "updatedAt"
    from persons
    where project_id = ${projectId} and external_id = ${externalId}`
  return person
}

/** Newest created first, those older than the person `beforeId`, or from the newest on. */
export function listPersons(
  sql: Sql,
  projectId: number,
  beforeId: string | null,
  limit: number,
): Promise<PersonRow[]> {
  return sql<PersonRow>`
    select id, external_id as "externalId", properties::text as properties,
      created_at as "createdAt", updated_at as "updatedAt"
    from persons
    where project_id = ${projectId} and id < coalesce(${beforeId}::bigint, 9223372036854775807)
    order by id desc
    limit ${limit}`
}
