import { deletePersons, forgetInAudit } from '../persons/store.ts'
import type { Db, Sql } from '../sql.ts'

/** Persons deleted by one transaction. */
const personsAPart = 500

/** Notes that persons have lost a browser; `expireIdentified` checks whether it was their last. */
export async function noteIdle(
  tx: Sql,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await tx`
    update identified_persons
    set idle_since = (app_now() at time zone 'UTC')::date
    where project_id = ${projectId} and person_id = any(${personIds}::bigint[])`
}

/**
 * Deletes people whom only identify() has created, `days` after their last browser was deleted. Keeps
 * people who have a browser or a deletion job, or whom the backend has written. Returns the number of
 * deleted people.
 */
export async function expireIdentified(
  db: Db,
  projectId: number,
  days: number,
  limit: number = personsAPart,
): Promise<number> {
  let deleted = 0
  if (days === 0) return deleted
  for (let isDone = false; !isDone; ) {
    const part = await db.begin(async (tx) => expirePart(tx, projectId, days, limit))
    deleted += part.deleted
    // People that another transaction has locked are left for the next round.
    isDone = part.found < limit || part.handled === 0
  }
  return deleted
}

async function expirePart(tx: Sql, projectId: number, days: number, limit: number) {
  const idle = await tx<{ id: string }>`
    select person_id as id
    from identified_persons
    where project_id = ${projectId}
      and idle_since < (app_now() at time zone 'UTC')::date - ${days}::integer
    order by idle_since, person_id
    limit ${limit}`
  if (idle.length === 0) return { found: 0, handled: 0, deleted: 0 }
  const ids = idle.map(({ id }) => id)
  const locked = await tx<{ id: string; isBare: boolean }>`
    select id,
      properties = '{}' and updated_at = created_at
        and deletion_job_id is null and failed_job_id is null as "isBare"
    from persons
    where project_id = ${projectId} and id = any(${ids}::bigint[])
    order by id
    for update skip locked -- fault: expired-locks-persons
    `
  const free = locked.map(({ id }) => id)
  // Read under the lock, so no identify is in progress.
  const linked = await tx<{ id: string }>`
    select distinct person_id as id from person_browsers
    where project_id = ${projectId} and person_id = any(${free}::bigint[])`
  const inUse = new Set(linked.map(({ id }) => id))
  const known = locked.filter(({ isBare }) => !isBare).map(({ id }) => id)
  const expired = locked.filter(({ id, isBare }) => isBare && !inUse.has(id)).map(({ id }) => id)
  await tx`
    delete from identified_persons
    where project_id = ${projectId} and person_id = any(${known}::bigint[])`
  await tx`
    update identified_persons set idle_since = null
    where project_id = ${projectId} and person_id = any(${[...inUse]}::bigint[])`
  await forgetInAudit(tx, projectId, expired)
  await deletePersons(tx, projectId, expired)
  return { found: ids.length, handled: locked.length, deleted: expired.length }
}
