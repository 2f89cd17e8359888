import {
  type AuditAction,
  auditActions,
  listAuditEntries,
} from '@lethe/contract/dashboard-system.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present } from '../api/search.ts'

export interface AuditSearch {
  action?: AuditAction
  pages?: number
}

export function auditSearch(search: Record<string, unknown>): AuditSearch {
  return present({
    action: oneOf<AuditAction>(search.action, ...auditActions),
    pages: pagesOf(search.pages),
  })
}

export function auditList({ action }: AuditSearch) {
  return listing(listAuditEntries, { query: present({ action }) })
}
