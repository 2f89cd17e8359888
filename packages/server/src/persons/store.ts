import type { Properties } from '@lethe/contract/person.ts'
import { jsonOf } from '../json-body.ts'
import { type Passed, raw, type Sql } from '../sql.ts'
import { fold } from './fold.ts'

/** A person as the API shows it. `properties` is JSON, spliced into answers and never parsed. */
export interface PersonRow {
  /** The internal, immutable key, in the order of creation; a decimal number as text. */
  id: string
  externalId: string
  properties: Passed
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

export interface PersonWrite {
  projectId: number
  externalId: string
  properties: Properties
  /** Whether a person that is not there is created. */
  createMissing: boolean
}

export interface PersonWritten {
  outcome: WriteOutcome
  /** There with the outcomes created, updated and unchanged. */
  person: Omit<PersonRow, 'id'>
}

/**
 * Merges properties into persons, one after the other; one statement that decides every race
 * (person_write in the migrations). The answers are in the order of the writes.
 */
export async function writePersons(sql: Sql, writes: PersonWrite[]): Promise<PersonWritten[]> {
  const rows = await sql<{ outcome: WriteOutcome } & Omit<PersonRow, 'id'>>`
    select outcome, written.external_id as "externalId", written.properties::varchar,
      created_at as "createdAt", updated_at as "updatedAt"
    from rows from (jsonb_to_recordset(${`[${writes.map(writeJson).join()}]`}) as (
        project integer, id text, "set" jsonb, removed text[],
        folded text, name text, email text, creates boolean
      )) with ordinality as one(project, id, "set", removed, folded, name, email, creates, place)
    cross join lateral person_write(
      project, id, "set", removed, folded, name, email, creates) as written
    order by place`
  return rows.map(({ outcome, ...person }) => ({ outcome, person }))
}

export async function writePerson(
  sql: Sql,
  projectId: number,
  externalId: string,
  properties: Properties,
  createMissing: boolean,
): Promise<PersonWritten> {
  const [written] = await writePersons(sql, [{ projectId, externalId, properties, createMissing }])
  return written as PersonWritten
}

function writeJson({ projectId, externalId, properties, createMissing }: PersonWrite): string {
  const { set, removed } = splitProperties(properties)
  const rest = {
    project: projectId,
    id: externalId,
    removed,
    folded: fold(externalId),
    name: foldedField(properties, 'name'),
    email: foldedField(properties, 'email'),
    creates: createMissing,
  }
  return `{"set":${set},${JSON.stringify(rest).slice(1)}`
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
    select id, external_id as "externalId", properties::text::varchar as properties,
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
    select id, external_id as "externalId", properties::text::varchar as properties,
      created_at as "createdAt", updated_at as "updatedAt"
    from persons
    where project_id = ${projectId} and id < coalesce(${beforeId}::bigint, 9223372036854775807)
    order by id desc
    -- In the text, as the planner would plan anew each time for a limit it is only told later.
    limit ${raw(String(limit))}`
}
