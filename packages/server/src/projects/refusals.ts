import type { Sql } from '../sql.ts'

/** Counts what the rate limits of secret keys refuse, for the dashboard. */
export interface Refusals {
  count(projectId: number): void
  /** Adds what was counted since the last time to what all processes counted today. */
  flush(): Promise<void>
}

export function countRefusals(sql: Sql): Refusals {
  let counted = new Map<number, number>()
  return {
    count(projectId) {
      counted.set(projectId, (counted.get(projectId) ?? 0) + 1)
    },
    async flush() {
      const added = counted
      counted = new Map()
      for (const [projectId, requests] of added) await addRefused(sql, projectId, requests)
    },
  }
}

async function addRefused(sql: Sql, projectId: number, requests: number): Promise<void> {
  await sql`
    insert into ingest_usage as u (project_id, day, bytes, refused, requests_refused)
    values (${projectId}, (app_now() at time zone 'UTC')::date, 0, 0, ${requests})
    on conflict (project_id, day) do update
    set requests_refused = u.requests_refused + excluded.requests_refused`
}
