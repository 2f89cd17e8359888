import type { QueryClient } from '@tanstack/react-query'
import type { Asked } from '../api/call.ts'
import { memberOfPage, meQuery } from '../api/me.ts'

/**
 * Asks for the password over the page, once for all requests that wait for it: what was typed into
 * the page stays, and the requests are repeated. Pages without a member have nobody to ask.
 */
export function makeAsking(queryClient: QueryClient): (what: Asked) => Promise<boolean> {
  let asking: Promise<boolean> | undefined
  let isDeclined = false
  return async (what) => {
    const member = memberOfPage()
    if (!member || isDeclined) return false
    asking ??= import('../sign-in/again.tsx')
      .then(({ askAgain }) => askAgain(what, member))
      .then(async (isGiven) => {
        // A member who does not sign in again is on the way to the sign-in page.
        isDeclined = !isGiven && what === 'sign-in'
        if (isGiven) await queryClient.invalidateQueries({ queryKey: meQuery.queryKey })
        return isGiven
      })
      .finally(() => {
        asking = undefined
      })
    return asking
  }
}
