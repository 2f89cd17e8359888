import { forgetInAudit } from '../persons/store.ts'
import type { Sql } from '../sql.ts'
import type { ClaimedJobs } from './job-leases.ts'

/**
 * What else knows of persons is made to forget them, in the transaction that completes their jobs and
 * after that: who was erased is told by a hash, and the audit log names nobody.
 */
export async function forgetElsewhere(tx: Sql, jobs: ClaimedJobs): Promise<void> {
  const [{ projectId, keepRecordings }] = jobs
  const personIds = jobs.map(({ personId }) => personId)
  await tx`
    insert into erased_persons (project_id, person_hash, job_id)
    select ${projectId}::integer, erased_person_hash(${projectId}, one.person_id), one.job_id
    from unnest(${personIds}::bigint[], ${jobs.map(({ id }) => id)}::uuid[]) as one (person_id, job_id)
    -- Who was brought back by a restored backup is erased a second time.
    on conflict (project_id, person_hash) do update set job_id = excluded.job_id`
  await forgetInAudit(tx, projectId, personIds, keepRecordings)
}
