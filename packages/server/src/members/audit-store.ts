import type { AuditAction, AuditEntry } from '@lethe/contract/dashboard-system.ts'
import { isUuid } from '../http/parameters.ts'
import { fragment, join, type Sql } from '../sql.ts'

const entriesAPart = 1_000

/** Deletes expired entries of the audit log, and references to deleted persons and recordings. */
export async function keepAudit(sql: Sql, days: number): Promise<void> {
  while ((await deleteOldAudit(sql, days, entriesAPart)) === entriesAPart);
  while ((await forgetWhatIsGone(sql, entriesAPart)) === entriesAPart);
}

export interface AuditNote {
  action: AuditAction
  memberId: string | null
  /** The API key, if the action was not a member's. */
  keyId?: string
  /** null for the command line. */
  addressRange: string | null
  projectId?: number
  /** The internal id of the person it is about; removed when the person is erased. */
  personId?: string | null
  subject?: { kind: NonNullable<AuditEntry['subject']>['kind']; id: string }
  /** Names of settings and plain facts; never personal data. */
  details?: AuditEntry['details']
}

/** Logs an action. Call it in the transaction of the action, if there is one. */
export async function writeAudit(sql: Sql, note: AuditNote): Promise<void> {
  const { action, memberId, keyId = null, addressRange, projectId = null } = note
  const { personId = null, subject, details = {} } = note
  await sql`
    insert into audit_log (action, member_id, key_id, address_range, project_id, person_id,
      subject_kind, subject_id, details)
    values (${action}, ${memberId}, ${keyId}::uuid, ${addressRange}, ${projectId},
      ${personId}::bigint, ${subject?.kind ?? null}, ${subject?.id ?? null},
      ${JSON.stringify(details)})`
}

export type NoteOfProject = Omit<AuditNote, 'subject' | 'personId'> & { projectId: number }

/**
 * Logs who requested deletions. Locks the jobs: if one is being completed, either its person is already
 * removed from it, or the completion also removes the person from this entry.
 */
export async function writeAuditOfDeletions(
  sql: Sql,
  jobIds: readonly string[],
  { action, memberId, keyId, addressRange, projectId, details = {} }: NoteOfProject,
): Promise<void> {
  await sql`
    with asked as (
      select id, person_id
      from deletion_jobs
      where project_id = ${projectId} and id = any (${jobIds}::uuid[])
      for share
    )
    insert into audit_log (action, member_id, key_id, address_range, project_id, person_id,
      subject_kind, subject_id, details)
    select ${action}, ${memberId}::uuid, ${keyId ?? null}::uuid, ${addressRange}, ${projectId}::integer,
      person_id, 'deletion_job', id::text, ${JSON.stringify(details)}::jsonb
    from asked`
}

/** Watching the same recording again within this time adds no entry. */
const watchingSeconds = 3_600

/** Logs who watches a recording, and of which person it is. */
export async function writeAuditOfWatching(
  sql: Sql,
  sessionId: string,
  { memberId, keyId, addressRange, projectId, details = {} }: Omit<NoteOfProject, 'action'>,
): Promise<void> {
  if (!isUuid(sessionId)) return
  await sql`
    with watched as materialized (
      select s.id::text as id, b.person_id
      from sessions s
      left join person_browsers b on b.project_id = ${projectId} and b.browser_id = s.browser_id
      where s.project_id = ${projectId} and s.id = ${sessionId}::uuid
    )
    insert into audit_log (action, member_id, key_id, address_range, project_id, person_id,
      subject_kind, subject_id, details)
    select 'session.watched', ${memberId}::uuid, ${keyId ?? null}::uuid, ${addressRange},
      ${projectId}::integer, w.person_id, 'session', w.id, ${JSON.stringify(details)}::jsonb
    from watched w
    where not exists (
        select from audit_log a
        where a.project_id = ${projectId} and a.subject_kind = 'session'
          and a.subject_id = w.id and a.action = 'session.watched'
          and a.member_id is not distinct from ${memberId}::uuid
          and a.key_id is not distinct from ${keyId ?? null}::uuid
          and a.details = ${JSON.stringify(details)}::jsonb
          and a.at > app_now() - ${watchingSeconds} * interval '1 second')`
}

export interface AuditFilter {
  projectId?: number
  memberId?: string
  personId?: string
  action?: AuditAction
  from?: string
  to?: string
}

interface AuditRow extends Omit<AuditEntry, 'member' | 'key' | 'subject'> {
  memberId: string | null
  memberName: string | null
  keyId: string | null
  keyName: string | null
  subjectKind: NonNullable<AuditEntry['subject']>['kind'] | null
  subjectId: string | null
}

/** Newest first, from the entry before `beforeId`, or from the newest. */
export async function listAudit(
  sql: Sql,
  filter: AuditFilter,
  beforeId: string | null,
  limit: number,
): Promise<AuditEntry[]> {
  const rows = await sql<AuditRow>`
    select a.id, a.at, a.action, a.member_id as "memberId", m.name as "memberName",
      a.key_id as "keyId", k.name as "keyName", a.address_range as "addressRange",
      a.project_id::text as "projectId", a.person_id as "personId",
      a.subject_kind as "subjectKind", a.subject_id as "subjectId", a.details
    from audit_log a
    left join auth.members m on m.id = a.member_id
    left join keys k on k.project_id = a.project_id and k.id = a.key_id
    where a.id < coalesce(${beforeId}::bigint, 9223372036854775807)
      and ${join([fragment`true`, ...conditionsOf(filter)], ' and ')}
    order by a.id desc
    limit ${limit}`
  return rows.map(({ memberId, memberName, keyId, keyName, subjectKind, subjectId, ...entry }) => ({
    ...entry,
    member: memberId === null ? null : { id: memberId, name: memberName },
    key: keyId === null ? null : { id: keyId, name: keyName },
    subject: subjectKind === null ? null : { kind: subjectKind, id: subjectId },
  }))
}

function conditionsOf({ projectId, memberId, personId, action, from, to }: AuditFilter) {
  const conditions = []
  if (projectId !== undefined) conditions.push(fragment`a.project_id = ${projectId}`)
  if (memberId !== undefined) conditions.push(fragment`a.member_id = ${memberId}`)
  if (personId !== undefined) conditions.push(fragment`a.person_id = ${personId}::bigint`)
  if (action !== undefined) conditions.push(fragment`a.action = ${action}`)
  if (from !== undefined) conditions.push(fragment`a.at >= ${from}::timestamptz`)
  if (to !== undefined) conditions.push(fragment`a.at < ${to}::timestamptz`)
  return conditions
}

/** An archived entry: without the person it is about. */
export interface ArchivedEntry {
  id: string
  at: string
  action: AuditAction
  memberId: string | null
  keyId: string | null
  addressRange: string | null
  projectId: string | null
  subjectKind: NonNullable<AuditEntry['subject']>['kind'] | null
  subjectId: string | null
  details: AuditEntry['details']
}

/** The oldest entries, if they are older than `seconds`. */
export async function readAuditToArchive(
  sql: Sql,
  seconds: number,
  limit: number,
): Promise<ArchivedEntry[]> {
  return sql<ArchivedEntry>`
    select id, at, action, member_id as "memberId", key_id as "keyId",
      address_range as "addressRange", project_id::text as "projectId",
      subject_kind as "subjectKind",
      case when subject_kind in ('person', 'session') then null else subject_id end as "subjectId",
      details
    from audit_log
    where at < app_now() - ${seconds} * interval '1 second'
    order by id
    limit ${limit}`
}

export async function deleteAudit(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql`delete from audit_log where id = any(${ids}::bigint[])`
}

/** Deletes up to `limit` entries older than `days`; returns the number. */
async function deleteOldAudit(sql: Sql, days: number, limit: number): Promise<number> {
  const deleted = await sql`
    delete from audit_log
    where id in (
      select id
      from audit_log
      where at < app_now() - ${days} * interval '1 day'
      order by at
      limit ${limit}
    )
    returning id`
  return deleted.length
}

/**
 * Removes from up to `limit` entries the ids of persons and recordings that no longer exist; returns
 * the number. (A deletion job removes its person itself, but not from entries written later.)
 */
async function forgetWhatIsGone(sql: Sql, limit: number): Promise<number> {
  const forgotten = await sql`
    with gone as (
      select id
      from audit_log a
      where (a.person_id is not null and not exists (
          select from persons p where p.project_id = a.project_id and p.id = a.person_id))
        or (a.subject_kind = 'session' and a.subject_id is not null and not exists (
          select from sessions s
          where s.project_id = a.project_id
            and s.id = case when a.subject_kind = 'session' then a.subject_id::uuid end))
      limit ${limit}
    )
    update audit_log a
    set person_id = null,
        subject_id = case when subject_kind in ('person', 'session') then null else subject_id end
    from gone
    where a.id = gone.id
    returning a.id`
  return forgotten.length
}
