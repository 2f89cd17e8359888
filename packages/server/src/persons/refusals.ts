import { ApiError, invalid } from '../api-error.ts'
import type { WriteOutcome } from './store.ts'

/** Refuses what writePerson did not write, in the same words wherever it was asked to. */
export function refuseUnlessWritten(outcome: WriteOutcome): void {
  switch (outcome) {
    case 'deleting':
      throw new ApiError('person_being_deleted', 'A deletion of this person is in progress.')
    case 'missing':
      throw personNotFound()
    case 'too_many_keys':
      throw invalid('/body/properties', 'would have more than 1000 keys after the merge')
    case 'too_large':
      throw invalid('/body/properties', 'would be larger than 256 KiB after the merge')
  }
}

export function personNotFound(): ApiError {
  return new ApiError('person_not_found', 'No person with this externalId.')
}
