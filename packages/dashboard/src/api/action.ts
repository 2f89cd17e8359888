import type { Endpoint, Input } from '@lethe/contract/client.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Body } from './call.ts'
import { useSending } from './leaving.ts'

/** Something the member does: afterwards every page looks again at what it shows. */
export function useAction<E extends Endpoint>(endpoint: E, onDone?: (body: Body<E>) => void) {
  const queryClient = useQueryClient()
  const send = useSending()
  return useMutation({
    mutationFn: (input: Input<E>) => send(endpoint, input),
    onSuccess: onDone ? (body: Body<E>) => onDone(body) : () => {},
    onSettled: () => queryClient.invalidateQueries(),
  })
}
