import { listSessions } from '@lethe/contract/dashboard-sessions.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present, textOf } from '../api/search.ts'
import { dayOf, startOfDay } from '../deletions/query.ts'

export interface SessionsSearch {
  who?: 'identified' | 'anonymous'
  /** Seconds, at least. */
  length?: '10' | '60' | '300'
  from?: string
  to?: string
  browser?: string
  pages?: number
}

export function sessionsSearch(search: Record<string, unknown>): SessionsSearch {
  return present({
    who: oneOf(search.who, 'identified', 'anonymous'),
    length: oneOf(search.length, '10', '60', '300'),
    from: dayOf(search.from),
    to: dayOf(search.to),
    browser: textOf(search.browser, 36),
    pages: pagesOf(search.pages),
  })
}

export function sessionsList(projectId: string, search: SessionsSearch) {
  const { who, length, from, to, browser } = search
  return listing(listSessions, {
    params: { projectId },
    query: present({
      isIdentified: who && who === 'identified',
      minimumSeconds: length && Number(length),
      from: from && startOfDay(from, 0),
      to: to && startOfDay(to, 1),
      browserId: browser,
    }),
  })
}

export function personSessionsSearch({ pages }: Record<string, unknown>): { pages?: number } {
  return present({ pages: pagesOf(pages) })
}

export function personSessionsList(projectId: string, personId: string) {
  return listing(listSessions, { params: { projectId }, query: { personId } })
}
