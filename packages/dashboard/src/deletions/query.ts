import { listDeletions } from '@lethe/contract/dashboard-deletions.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present, textOf } from '../api/search.ts'

export interface DeletionsSearch {
  status?: 'open' | 'completed' | 'failed'
  externalId?: string
  keep?: 'yes' | 'no'
  from?: string
  to?: string
  pages?: number
  /** The job whose drawer is open. */
  job?: string
}

export function deletionsSearch(search: Record<string, unknown>): DeletionsSearch {
  return present({
    status: oneOf(search.status, 'open', 'completed', 'failed'),
    externalId: textOf(search.externalId),
    keep: oneOf(search.keep, 'yes', 'no'),
    from: dayOf(search.from),
    to: dayOf(search.to),
    pages: pagesOf(search.pages),
    job: textOf(search.job, 36),
  })
}

/** A day as a date field gives it: 2026-11-27. */
export function dayOf(value: unknown): string | undefined {
  const text = textOf(value, 10)
  return text && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined
}

/** The filters as the server takes them; days are in the viewer's time zone. */
export function deletionQuery({ status, externalId, keep, from, to }: DeletionsSearch) {
  return present({
    status,
    externalId,
    keepRecordings: keep && keep === 'yes',
    from: from && startOfDay(from, 0),
    to: to && startOfDay(to, 1),
  })
}

export function startOfDay(day: string, daysLater: number): string {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number]
  return new Date(year, month - 1, date + daysLater).toISOString()
}

export function deletionsList(projectId: string, search: DeletionsSearch) {
  return listing(listDeletions, { params: { projectId }, query: deletionQuery(search) })
}
