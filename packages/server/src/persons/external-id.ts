import { invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { personNotFound } from './store.ts'

export const externalIdMaximum = 200

/** The path's externalId. One that no person can have is nobody's, and so a 404 like any other. */
export function externalIdOf({ externalId }: { externalId: string }): string {
  if (!isStorable(externalId)) throw invalid('/params/externalId', 'has U+0000')
  // Code points are at least half as many as UTF-16 units: most ids need no counting.
  const isTooLong =
    externalId.length > externalIdMaximum && [...externalId].length > externalIdMaximum
  if (externalId === '' || isTooLong) throw personNotFound()
  return externalId
}
