import type { Pool } from '../sql.ts'
import type { BetterAuth } from './better-auth.ts'
import { cookiePath, cookiePrefix } from './cookies.ts'

/** Returns the library of the sign-in, which the first call loads. */
export type SignIn = () => Promise<BetterAuth>

/**
 * The sign-in of members by better-auth, with its own pool. It is loaded by the first request that
 * needs it, because it takes more memory than the rest of the service, and the API never needs it.
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
