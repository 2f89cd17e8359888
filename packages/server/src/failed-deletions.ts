import { fragment } from './sql.ts'

/**
 * A subselect of the persons who still exist although their last deletion failed, with that job. The
 * two are joined by externalId: a person has no reference to a failed job. Without `projectId`, of all
 * projects.
 */
export const failedDeletions = (projectId?: number) => {
  const ofProject = projectId === undefined ? fragment`true` : fragment`project_id = ${projectId}`
  return fragment`(
    select p.project_id, p.id as person_id, j.id as job_id
    from (
      select distinct on (project_id, external_id) project_id, external_id, id, created_at
      from deletion_jobs
      where ${ofProject} and status = 'failed'
      order by project_id, external_id, created_at desc, id desc
    ) j
    join (select * from persons where ${ofProject}) p
      on p.project_id = j.project_id and p.external_id = j.external_id
    where p.deletion_job_id is null and p.created_at <= j.created_at
  )`
}
