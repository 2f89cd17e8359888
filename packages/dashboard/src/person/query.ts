import { getPerson, updatePerson } from '@lethe/contract/dashboard-persons.ts'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { useAction } from '../api/action.ts'
import { codeOf } from '../api/call.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'

export function usePersonPath(): { projectId: string; personId: string } {
  return useParams({ from: '/signed-in/projects/$projectId/persons/$personId' })
}

/** The person of the address, live until it is gone. */
export function usePerson() {
  const params = usePersonPath()
  return useQuery({
    ...reading(getPerson, { params }),
    refetchInterval: ({ state }) =>
      state.data?.person === null || codeOf(state.error) ? false : liveMilliseconds,
  })
}

/** Merges properties into the person: a key that is null goes, one that is not named stays. */
export function useUpdate(onDone: () => void) {
  const params = usePersonPath()
  const updating = useAction(updatePerson, onDone)
  const mutate = (properties: Record<string, unknown>) =>
    updating.mutate({ params, body: { properties } })
  return { ...updating, mutate }
}
