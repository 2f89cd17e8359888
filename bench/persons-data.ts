import type { Db } from '../packages/server/src/sql.ts'

/** Inserts the persons `user-1` to `user-<count>`, the last one the newest. */
export async function insertPersons(db: Db, projectId: number, count: number): Promise<void> {
  await db.sql`
    with made as (
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${projectId}, (1700000000000 + n) << 20, 'user-' || n,
        jsonb_build_object('name', 'Name ' || n, 'email', 'user' || n || '@example.com', 'plan', n % 5),
        to_timestamp((1700000000000 + n) / 1000.0), to_timestamp((1700000000000 + n) / 1000.0)
      from generate_series(1, ${count}::int) n
      returning project_id, id, external_id)
    insert into person_search (project_id, person_id, text)
    select project_id, id, external_id || U&'\\FFFF' || 'name' || U&'\\FFFF' || 'mail' from made`
  await db.sql`vacuum analyze`
}
