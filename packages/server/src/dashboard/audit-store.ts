import type { AuditAction, AuditEntry } from '@lethe/contract/dashboard-system.ts'
import { fragment, join, type Sql } from '../sql.ts'

export interface AuditNote {
  action: AuditAction
  memberId: string | null
  projectId?: number
  subject?: { kind: NonNullable<AuditEntry['subject']>['kind']; id: string }
  /** Names of settings and plain facts; never a property, nor anything of a person but its id. */
  details?: AuditEntry['details']
}

/** Writes down what a member did, in the transaction that does it where there is one. */
export async function writeAudit(sql: Sql, note: AuditNote): Promise<void> {
  const { action, memberId, projectId = null, subject, details = {} } = note
  await sql`
    insert into audit_log (action, member_id, project_id, subject_kind, subject_id, details)
    values (${action}, ${memberId}, ${projectId}, ${subject?.kind ?? null}, ${subject?.id ?? null},
      ${JSON.stringify(details)})`
}

export interface AuditFilter {
  projectId?: number
  memberId?: string
  action?: AuditAction
}

interface AuditRow extends Omit<AuditEntry, 'member' | 'subject'> {
  memberId: string | null
  memberName: string | null
  subjectKind: NonNullable<AuditEntry['subject']>['kind'] | null
  subjectId: string | null
}

/** Newest first, those older than the entry `beforeId`, or from the newest on. */
export async function listAudit(
  sql: Sql,
  { projectId, memberId, action }: AuditFilter,
  beforeId: string | null,
  limit: number,
): Promise<AuditEntry[]> {
  const conditions = [fragment`a.id < coalesce(${beforeId}::bigint, 9223372036854775807)`]
  if (projectId !== undefined) conditions.push(fragment`a.project_id = ${projectId}`)
  if (memberId !== undefined) conditions.push(fragment`a.member_id = ${memberId}`)
  if (action !== undefined) conditions.push(fragment`a.action = ${action}`)
  const rows = await sql<AuditRow>`
    select a.id, a.at, a.action, a.member_id as "memberId", m.name as "memberName",
      a.project_id::text as "projectId", a.subject_kind as "subjectKind",
      a.subject_id as "subjectId", a.details
    from audit_log a left join auth.members m on m.id = a.member_id
    where ${join(conditions, ' and ')}
    order by a.id desc
    limit ${limit}`
  return rows.map(({ memberId, memberName, subjectKind, subjectId, ...entry }) => ({
    ...entry,
    member: memberId === null ? null : { id: memberId, name: memberName },
    subject: subjectKind === null ? null : { kind: subjectKind, id: subjectId },
  }))
}
