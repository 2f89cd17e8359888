import type { Pool } from '../sql.ts'
import type { BetterAuth } from './better-auth.ts'
import { cookiePath, cookiePrefix } from './cookies.ts'

/** Returns the sign-in of members; loads it where nobody has asked for it yet. */
export type SignIn = () => Promise<BetterAuth>

/**
 * The sign-in of members, over a pool of its own: better-auth speaks to it by itself. It is loaded
 * with the first request that needs it: it takes more memory than all else of the service, and a
 * service that only serves the API never needs it.
 */
export function openSignIn(pool: Pool, secret: string, publicUrl = ''): SignIn {
  let loading: Promise<BetterAuth> | undefined
  return () => {
    loading ??= import('./better-auth.ts').then(({ betterAuthOver }) =>
      betterAuthOver(pool, secret, {
        prefix: cookiePrefix(publicUrl),
        path: cookiePath(publicUrl),
      }),
    )
    return loading
  }
}
