import type { Properties } from '@lethe/contract/person.ts'
import { jsonOf } from '../json-body.ts'
import { raw, type Sql } from '../sql.ts'
import { fold } from './fold.ts'
import {
  inPieces,
  joinPieces,
  type PersonFound,
  type PersonListed,
  type Piece,
  withoutLarge,
} from './pieces.ts'

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

/** The person is there with the outcomes created, updated and unchanged. */
export interface PersonWritten extends PersonFound {
  outcome: WriteOutcome
}

/**
 * Merges properties into persons, one after the other; one statement that decides every race
 * (person_write in the migrations). The answers are in the order of the writes.
 */
export async function writePersons(sql: Sql, writes: PersonWrite[]): Promise<PersonWritten[]> {
  // What changes nothing is answered as of the beginning of the statement, which is much less work.
  const rows = await sql<{ outcome: WriteOutcome } & Piece>`
    select outcome, ${inPieces.begin}
      select coalesce(written.outcome, 'unchanged') as outcome,
        coalesce(unchanged.external_id, written.external_id) as external_id,
        coalesce(unchanged.properties::text, written.properties, '') as properties,
        coalesce(unchanged.created_at, written.created_at) as created_at,
        coalesce(unchanged.updated_at, written.updated_at) as updated_at
      from rows from (jsonb_to_recordset(${`[${writes.map(writeJson).join()}]`}) as (
          project integer, id text, "set" jsonb, removed text[],
          folded text, name text, email text, creates boolean
        )) with ordinality as one(project, id, "set", removed, folded, name, email, creates, place)
      left join lateral (
        select id, external_id, properties, created_at, updated_at from persons
        where project_id = project and external_id = one.id and deletion_job_id is null
          and (properties || "set") - removed = properties
        limit 1
      ) as unchanged on true
      left join lateral (
        select * from person_write(project, one.id, "set", removed, folded, name, email, creates)
        where unchanged.id is null
        offset 0 -- So that it is not called at all for the others.
      ) as written on true
      order by place${inPieces.end}`
  return joinPieces(rows)
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

/** A write as one object, put together from its texts: every write pays for this. */
function writeJson({ projectId, externalId, properties, createMissing }: PersonWrite): string {
  const { set, removed } = splitProperties(properties)
  const person = `"project":${projectId},"id":${JSON.stringify(externalId)}`
  const merged = `"set":${set},"removed":${JSON.stringify(removed)}`
  const searched = `"folded":${JSON.stringify(fold(externalId))}${foldedField(properties, 'name')}${foldedField(properties, 'email')}`
  return `{${person},${merged},${searched},"creates":${createMissing}}`
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

/** The search's form of a field: none where it was not sent, empty where it is no text (any more). */
function foldedField(properties: Properties, name: 'name' | 'email'): string {
  if (!Object.hasOwn(properties, name)) return ''
  const value = properties[name]
  return `,"${name}":${JSON.stringify(typeof value === 'string' ? fold(value) : '')}`
}

/** A person, by one quick statement: where it is large, its properties are still to be asked for. */
export async function findPerson(
  sql: Sql,
  projectId: number,
  externalId: string,
): Promise<PersonListed | undefined> {
  const [person] = await sql<PersonListed>`
    select ${withoutLarge.begin}
      select id, external_id, properties::text, created_at, updated_at from persons
      where project_id = ${projectId} and external_id = ${externalId}
      limit 1${withoutLarge.end}`
  return person
}

/** A person with all its properties, as it is now: there may be none any more. */
export async function findWholePerson(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<PersonFound | undefined> {
  const rows = await sql<Piece>`
    select ${inPieces.begin}
      select external_id, properties::text, created_at, updated_at from persons
      where project_id = ${projectId} and id = ${id}
      limit 1${inPieces.end}`
  return joinPieces(rows)[0]
}

/** Newest created first, those older than the person `beforeId`, or from the newest on. */
export function listPersons(
  sql: Sql,
  projectId: number,
  beforeId: string | null,
  limit: number,
): Promise<PersonListed[]> {
  return sql<PersonListed>`
    select ${withoutLarge.begin}
      select id, external_id, properties::text, created_at, updated_at from persons
      where project_id = ${projectId} and id < coalesce(${beforeId}::bigint, 9223372036854775807)
      order by id desc
      -- In the text, as the planner would plan anew each time for a limit it is only told later.
      limit ${raw(String(limit))}${withoutLarge.end}`
}
