import { listPersons } from '@lethe/contract/dashboard-persons.ts'
import { listing } from '../api/queries.ts'
import { oneOf, pagesOf, present, textOf } from '../api/search.ts'

export interface PersonsSearch {
  search?: string
  state?: 'deleting' | 'deletion_failed'
  pages?: number
}

export function personsSearch(search: Record<string, unknown>): PersonsSearch {
  return present({
    search: textOf(search.search),
    state: oneOf(search.state, 'deleting', 'deletion_failed'),
    pages: pagesOf(search.pages),
  })
}

export function personsList(projectId: string, { search, state }: PersonsSearch) {
  return listing(listPersons, {
    params: { projectId },
    query: present({ search, state }),
  })
}

/* Where the list of persons was left, for the way back from a person. */

const places = new Map<string, PersonsSearch>()

export function keepPlace(projectId: string, search: PersonsSearch): void {
  places.set(projectId, search)
}

export function placeOf(projectId: string): PersonsSearch {
  return places.get(projectId) ?? {}
}
