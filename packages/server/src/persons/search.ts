import type { Sql } from '../sql.ts'
import { fold } from './fold.ts'
import { type PersonListed, withoutLarge } from './pieces.ts'

/**
 * The persons that have `term` in their externalId, name or email, letter case aside (`fold`):
 * the `limit` newest of those whose id is below `beforeId`, the newest first.
 *
 * Exact for every text, as of the moment the statement began; how fast is the matter of the
 * database functions in migrations/0002_search.sql, where the last two numbers are explained.
 */
export function searchPersons(
  sql: Sql,
  projectId: number,
  term: string,
  beforeId: string | null,
  limit: number,
  { newestRows, mostRows } = { newestRows: 2_000, mostRows: 2_000 },
): Promise<PersonListed[]> {
  // The lateral join with its limit can only be done person by person, through the primary key.
  return sql<PersonListed>`
    select ${withoutLarge.begin}
      select person.*
      from search_persons(
        ${projectId}, ${fold(term)}, ${beforeId}, ${limit}, ${newestRows}, ${mostRows}) as found(id)
      cross join lateral (
        select id, external_id, properties::text, created_at, updated_at from persons
        where project_id = ${projectId} and id = found.id
        limit 1
      ) as person
      order by person.id desc${withoutLarge.end}`
}
