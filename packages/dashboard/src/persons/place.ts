import type { PersonsSearch } from './query.ts'

/* Where the list of persons was left, for the way back from a person. */

const places = new Map<string, PersonsSearch>()

export function keepPlace(projectId: string, search: PersonsSearch): void {
  places.set(projectId, search)
}

export function placeOf(projectId: string): PersonsSearch {
  return places.get(projectId) ?? {}
}
