import type { Sql } from '../sql.ts'
import { fold } from './fold.ts'
import { type ListedPerson, listedColumns } from './store.ts'

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
): Promise<ListedPerson[]> {
  return sql<ListedPerson>`
    select ${listedColumns}
    from search_page(
      ${projectId}, ${fold(term)}, ${beforeId}, ${limit}, ${newestRows}, ${mostRows}) as persons`
}
