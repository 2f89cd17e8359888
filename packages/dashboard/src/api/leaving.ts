import type { Endpoint, Input } from '@lethe/contract/client.ts'
import { useEffect, useRef } from 'react'
import { type Body, send } from './call.ts'

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
