import {
  type AuditAction,
  auditActions,
  exportAuditEntries,
  listAuditEntries,
} from '@lethe/contract/dashboard-system.ts'
import { pathOf } from '../api/call.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present, textOf } from '../api/search.ts'
import { dayOf, startOfDay } from '../deletions/query.ts'

export interface AuditSearch {
  action?: AuditAction
  /** The id of a member, also of a former one. */
  member?: string
  /** The internal id of a person of the project. */
  person?: string
  from?: string
  to?: string
  pages?: number
}

export function auditSearch(search: Record<string, unknown>): AuditSearch {
  return present({
    action: oneOf<AuditAction>(search.action, ...auditActions),
    member: textOf(search.member, 36),
    person: textOf(search.person, 20),
    from: dayOf(search.from),
    to: dayOf(search.to),
    pages: pagesOf(search.pages),
  })
}

/** The filters as the server takes them; a person is one of the project that is shown. */
function auditQuery(projectId: string, { action, member, person, from, to }: AuditSearch) {
  return present({
    action,
    memberId: member,
    personId: person,
    projectId: person && projectId,
    from: from && startOfDay(from, 0),
    to: to && startOfDay(to, 1),
  })
}

export function auditList(projectId: string, search: AuditSearch) {
  return listing(listAuditEntries, { query: auditQuery(projectId, search) })
}

export function auditExport(projectId: string, search: AuditSearch): string {
  return pathOf(exportAuditEntries, { query: auditQuery(projectId, search) })
}
