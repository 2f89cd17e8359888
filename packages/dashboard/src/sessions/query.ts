import {
  browserFamilies,
  devices,
  type getSession,
  listSessions,
  sessionSorts,
  troubles,
} from '@lethe/contract/dashboard-sessions.ts'
import type { Body } from '../api/call.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present, textOf } from '../api/search.ts'
import { dayOf, startOfDay } from '../deletions/query.ts'

export type SessionDetail = Body<typeof getSession>

export interface SessionsSearch {
  who?: 'identified' | 'anonymous' | 'before' | 'after'
  /** Seconds, at least. */
  length?: '10' | '60' | '300'
  from?: string
  to?: string
  /** The id of one browser. */
  browser?: string
  /** A part of the address a session started at. */
  page?: string
  family?: (typeof browserFamilies)[number]
  device?: (typeof devices)[number]
  /** ISO 3166-1 alpha-2. */
  country?: string
  property?: string
  with?: (typeof troubles)[number]
  sort?: (typeof sessionSorts)[number]
  pages?: number
}

export function sessionsSearch(search: Record<string, unknown>): SessionsSearch {
  return present({
    who: oneOf(search.who, 'identified', 'anonymous', 'before', 'after'),
    length: oneOf(search.length, '10', '60', '300'),
    from: dayOf(search.from),
    to: dayOf(search.to),
    browser: textOf(search.browser, 36),
    page: textOf(search.page),
    family: oneOf(search.family, ...browserFamilies),
    device: oneOf(search.device, ...devices),
    country: textOf(search.country, 2),
    property: textOf(search.property, 400),
    with: oneOf(search.with, ...troubles),
    sort: oneOf(search.sort, ...sessionSorts),
    pages: pagesOf(search.pages),
  })
}

export function sessionsList(projectId: string, search: SessionsSearch) {
  const { who, length, from, to, browser, family, page, device, property, sort } = search
  return listing(listSessions, {
    params: { projectId },
    query: present({
      isIdentified: who === 'identified' || who === 'anonymous' ? who === 'identified' : undefined,
      isBeforeIdentification: who === 'before' || who === 'after' ? who === 'before' : undefined,
      page,
      browser: family,
      device,
      // One that is still being typed names no country yet.
      country: search.country && /^[A-Z]{2}$/.test(search.country) ? search.country : undefined,
      // One that is still being typed names no value yet.
      property: property && /^[^=]+=/.test(property) ? property : undefined,
      with: search.with,
      sort,
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

/** A moment as it may stand in an address, in milliseconds: 90, 1:30 and 0:01:30 are the same. */
export function momentOf(text: string | undefined): number {
  const parts = (text ?? '').split(':')
  if (parts.length > 3 || !parts.every((part) => /^\d{1,6}(?:\.\d{1,3})?$/.test(part))) return 0
  return parts.reduce((seconds, part) => seconds * 60 + Number(part), 0) * 1_000
}
