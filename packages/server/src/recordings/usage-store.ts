import type { Sql } from '../sql.ts'

export interface Usage {
  bytes: number
  refused: number
}

export interface AddedUsage extends Usage {
  projectId: number
}

/** Days that the usage is kept for. */
const keptDays = 31

/** Adds to what a project's browsers sent today, and returns all of it. */
export async function addUsage(
  sql: Sql,
  { projectId, bytes, refused }: AddedUsage,
): Promise<Usage> {
  const [usage] = await sql<Usage>`
    insert into ingest_usage as u (project_id, day, bytes, refused)
    values (${projectId}, (app_now() at time zone 'UTC')::date, ${bytes}, ${refused})
    on conflict (project_id, day) do update
    set bytes = u.bytes + excluded.bytes, refused = u.refused + excluded.refused
    returning bytes::float8 as bytes, refused::float8 as refused`
  return usage as Usage
}

export async function deleteOldUsage(sql: Sql): Promise<void> {
  await sql`delete from ingest_usage where day < (app_now() at time zone 'UTC')::date - ${keptDays}`
}
