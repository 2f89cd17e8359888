import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { ApiError } from '../api-error.ts'
import type { Db, Sql } from '../sql.ts'
import { fragment } from '../sql.ts'

const jobColumns = fragment`
  id, external_id as "externalId", keep_recordings as "keepRecordings", status,
  created_at as "createdAt", started_at as "startedAt", completed_at as "completedAt"`

/**
 * Makes the deletion job of a person, or answers the one in progress. Job and flag go in one
 * transaction: from its commit on the person takes no POST, PATCH or identify.
 */
export function requestDeletion(
  db: Db,
  projectId: number,
  externalId: string,
  keepRecordings: boolean,
): Promise<DeletionJob> {
  return db.begin(async (tx) => {
    const [person] = await tx<{ id: string; deletionJobId: string | null }>`
      select id, deletion_job_id as "deletionJobId"
      from persons
      where project_id = ${projectId} and external_id = ${externalId}
      for update`
    if (!person) throw new ApiError('person_not_found', 'No person with this externalId.')

    if (person.deletionJobId) {
      const open = (await findDeletionJob(tx, projectId, person.deletionJobId)) as DeletionJob
      if (open.keepRecordings !== keepRecordings) {
        throw new ApiError(
          'deletion_in_progress',
          'A deletion of this person with the other keepRecordings is in progress.',
        )
      }
      return open
    }

    const job = await insertDeletionJob(tx, projectId, externalId, person.id, keepRecordings)
    await tx`
      update persons set deletion_job_id = ${job.id}
      where project_id = ${projectId} and id = ${person.id}`
    return job
  })
}

async function insertDeletionJob(
  sql: Sql,
  projectId: number,
  externalId: string,
  personId: string,
  keepRecordings: boolean,
): Promise<DeletionJob> {
  const [job] = await sql<DeletionJob>`
    insert into deletion_jobs (project_id, external_id, person_id, keep_recordings)
    values (${projectId}, ${externalId}, ${personId}, ${keepRecordings})
    returning ${jobColumns}`
  return job as DeletionJob
}

export async function findDeletionJob(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<DeletionJob | undefined> {
  const [job] = await sql<DeletionJob>`
    select ${jobColumns} from deletion_jobs where project_id = ${projectId} and id = ${id}`
  return job
}
