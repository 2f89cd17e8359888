import type { Properties } from '@lethe/contract/person.ts'
import { ApiError, invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { fragment, raw, type Sql } from '../sql.ts'
import { fold } from './fold.ts'

export interface Person {
  /** The internal, immutable key, in the order of creation; a decimal number as text. */
  id: string
  externalId: string
  /** JSON, spliced into responses and never parsed. */
  properties: string
  createdAt: string
  updatedAt: string
}

/**
 * A person of a list. Large properties are null, and read when they are sent: a page of 25 MB takes
 * no more memory than one person. Large are more than 16 KiB, or 4 KiB compressed, which is told
 * without making a text of them.
 */
export type ListedPerson = Omit<Person, 'properties'> & { properties: string | null }

const personColumns = raw(`
  id, external_id as "externalId", properties::text as properties,
  created_at as "createdAt", updated_at as "updatedAt"`)

/** Of a subselect that has the properties as text. */
export const listedColumns = raw(`
  id, external_id as "externalId", created_at as "createdAt", updated_at as "updatedAt",
  case when octet_length(properties) <= 16384 then properties end as properties`)

export type WriteOutcome =
  | 'created'
  | 'updated'
  | 'unchanged'
  | 'deleting'
  | 'missing'
  | 'too_many_keys'
  | 'too_large'
  | 'locked'

export interface PersonWrite {
  projectId: number
  externalId: string
  properties: Properties
  /** Whether a person that is not there is created. */
  createMissing: boolean
}

/** The person is there with the outcomes created, updated and unchanged. */
export type PersonWritten = { outcome: WriteOutcome } & Omit<Person, 'id'>

/**
 * Merges properties into persons of one project, one after the other, in one statement that decides
 * every race (persons_write in the migrations). Results are in the order of the writes. With
 * `skipLocked`, nothing is written to a person that another transaction has locked: its outcome is
 * `locked`.
 */
export function writePersons(
  sql: Sql,
  projectId: number,
  writes: PersonWrite[],
  { skipLocked }: { skipLocked: boolean },
): Promise<PersonWritten[]> {
  return sql<PersonWritten>`
    select outcome, external_id as "externalId", properties, created_at as "createdAt",
      updated_at as "updatedAt"
    from persons_write(${projectId}, ${`[${writes.map(writeJson).join()}]`}, ${skipLocked})`
}

export async function writePerson(
  sql: Sql,
  projectId: number,
  externalId: string,
  properties: Properties,
  createMissing: boolean,
): Promise<PersonWritten> {
  const write = { projectId, externalId, properties, createMissing }
  const [written] = await writePersons(sql, projectId, [write], { skipLocked: false })
  return written as PersonWritten
}

/** Refuses what was not written, with the same message for every endpoint. */
export function refuseUnlessWritten(outcome: WriteOutcome): void {
  switch (outcome) {
    case 'deleting':
      throw new ApiError('person_being_deleted', 'A deletion of this person is in progress.')
    case 'missing':
      throw personNotFound()
    case 'too_many_keys':
      throw invalid('/body/properties', 'would have more than 1000 keys after the merge')
    case 'too_large':
      throw invalid('/body/properties', 'would be larger than 256 KiB after the merge')
  }
}

export function personNotFound(): ApiError {
  return new ApiError('person_not_found', 'No person with this externalId.')
}

/** A write as one object, put together from its texts: every write pays for this. */
function writeJson({ externalId, properties, createMissing }: PersonWrite): string {
  const { set, removed } = splitProperties(properties)
  const person = `"id":${JSON.stringify(externalId)}`
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
    else set.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`)
  }
  return { set: `{${set.join()}}`, removed }
}

/** The search's form of a field: none where it was not sent, empty where it is no text (any more). */
function foldedField(properties: Properties, name: 'name' | 'email'): string {
  if (!Object.hasOwn(properties, name)) return ''
  const value = properties[name]
  return `,"${name}":${JSON.stringify(typeof value === 'string' ? fold(value) : '')}`
}

export async function findPerson(
  sql: Sql,
  projectId: number,
  externalId: string,
): Promise<Person | undefined> {
  const [person] = await sql<Person>`
    select ${personColumns} from persons
    where project_id = ${projectId} and external_id = ${externalId}`
  return person
}

/**
 * A person whose properties come in pieces, in their order. As one text, large properties would be
 * among what the engine collects only by going through its whole heap, 10 to 20 ms each time.
 */
export type PersonInPieces = Omit<Person, 'properties'> & { pieces: string[] }

export async function findPersonInPieces(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<PersonInPieces | undefined> {
  const rows = await sql<Person>`
    select id, "externalId", "createdAt", "updatedAt", substr(properties, at, 16384) as properties
    from (
      select ${personColumns} from persons where project_id = ${projectId} and id = ${id}
      -- The text is made once. The pieces of one row come in the order of the series.
      offset 0
    ) as person, generate_series(1, length(properties), 16384) as at`
  const [first] = rows
  return first && { ...first, pieces: rows.map(({ properties }) => properties) }
}

export interface LockedPerson {
  id: string
  deletionJobId: string | null
}

/** Locks a person, so that no other DELETE, POST, PATCH or identify decides about it meanwhile. */
export async function lockPerson(
  tx: Sql,
  projectId: number,
  by: { externalId: string } | { personId: string },
): Promise<LockedPerson | undefined> {
  const condition =
    'externalId' in by
      ? fragment`external_id = ${by.externalId}`
      : fragment`id = ${by.personId}::bigint`
  const [person] = await tx<LockedPerson>`
    select id, deletion_job_id as "deletionJobId"
    from persons
    where project_id = ${projectId} and ${condition}
    for update -- fault: delete-locks-person
    `
  return person
}

const lockAttempts = 5

/** Creates the person where there is none, and locks it against its deletion; undefined while that runs. */
export async function createAndLockPerson(
  tx: Sql,
  projectId: number,
  externalId: string,
): Promise<{ id: string; isNew: boolean } | undefined> {
  for (let attempt = 1; attempt <= lockAttempts; attempt++) {
    const { outcome } = await writePerson(tx, projectId, externalId, {}, true)
    if (outcome === 'deleting') return undefined
    const [person] = await tx<{ id: string; isBeingDeleted: boolean }>`
      select id,
        deletion_job_id is not null as "isBeingDeleted" -- fault: link-flag
      from persons
      where project_id = ${projectId} and external_id = ${externalId}
      for share -- fault: link-locks-person
      `
    // Between the two statements the person may have gone, for good: then a new one is made.
    const isNew = outcome === 'created'
    if (person) return person.isBeingDeleted ? undefined : { id: person.id, isNew }
  }
  throw new Error('A person was gone each time it was to be locked.')
}

/** What members did to these persons stays in the audit log, without naming the person. */
export async function forgetInAudit(
  tx: Sql,
  projectId: number,
  personIds: readonly string[],
  keepRecordings = false,
): Promise<void> {
  await tx`
    update audit_log
    set person_id = null,
      subject_id = case
        when subject_kind = 'person' then null
        when subject_kind = 'session' and not ${keepRecordings}::boolean then null
        else subject_id
      end
    where project_id = ${projectId}
      and (person_id = any(${personIds}::bigint[])
        or subject_kind = 'person' and subject_id = any(${personIds}::text[]))`
}

/** The last trace of persons; their links are cut by then. */
export async function deletePersons(
  tx: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await tx`delete from persons where project_id = ${projectId} and id = any(${personIds}::bigint[])`
}

/** Newest created first, those older than the person `beforeId`, or from the newest on. */
export function listPersons(
  sql: Sql,
  projectId: number,
  beforeId: string | null,
  limit: number,
): Promise<ListedPerson[]> {
  return sql<ListedPerson>`
    select ${listedColumns}
    from (
      select id, external_id, created_at, updated_at,
        case when pg_column_size(properties) <=
          case when pg_column_compression(properties) is null then 16384 else 4096 end
        then properties::text end as properties
      from persons
      where project_id = ${projectId} and id < coalesce(${beforeId}::bigint, 9223372036854775807)
      order by id desc
      -- In the text: for a limit it is only told later the planner plans each time.
      limit ${raw(String(limit))}
    ) as persons`
}

export const externalIdMaximum = 200

/** The path's externalId. One that no person can have is nobody's, and so a 404 like any other. */
export function externalIdOf({ externalId }: { externalId: string }): string {
  if (!isStorable(externalId)) throw invalid('/params/externalId', 'has U+0000')
  // Code points are at least half as many as UTF-16 units: most ids need no counting.
  const isTooLong =
    externalId.length > externalIdMaximum && [...externalId].length > externalIdMaximum
  if (externalId === '' || isTooLong) throw personNotFound()
  return externalId
}
