import type { Endpoint, Input } from '@lethe/contract/client.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { sayFailed } from '../design/toast.tsx'
import { type Body, send } from './call.ts'

/**
 * Something the member does: afterwards every page looks again at what it shows. Where nothing else
 * would say that it failed, `failed` is said.
 */
export function useAction<E extends Endpoint>(
  endpoint: E,
  onDone?: (body: Body<E>) => void,
  failed?: string,
) {
  const queryClient = useQueryClient()
  const send = useSending()
  return useMutation({
    mutationFn: (input: Input<E>) => send(endpoint, input),
    onSuccess: onDone ? (body: Body<E>) => onDone(body) : () => {},
    onError: (error) => failed && sayFailed(failed, error),
    onSettled: () => queryClient.invalidateQueries(),
  })
}

/**
 * Sends requests that are cancelled when what has asked for them goes away: a dialog that was
 * closed carries nothing out.
 */
export function useSending() {
  const running = useRef(new Set<AbortController>())
  useEffect(() => {
    const { current } = running
    return () => {
      for (const one of current) one.abort()
    }
  }, [])
  return async <E extends Endpoint>(endpoint: E, input: Input<E>): Promise<Body<E>> => {
    const controller = new AbortController()
    running.current.add(controller)
    try {
      return await send(endpoint, input, controller.signal)
    } finally {
      running.current.delete(controller)
    }
  }
}
