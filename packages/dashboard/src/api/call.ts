import type { Endpoint, Input, Reply } from '@lethe/contract/client.ts'
import { RequestFailed } from '@lethe/contract/client.ts'
import { dashboardClient, pathOf as pathBelow } from '@lethe/contract/dashboard-client.ts'
import { checkProof } from '@lethe/contract/dashboard-members.ts'
import type { ErrorCode } from '@lethe/contract/errors.ts'
import { basePath } from './base-path.ts'

export const { call, forget } = dashboardClient(basePath)

/** The body of a successful response. */
export type Body<E extends Endpoint> = Reply<E>['body']

/** What has to be proved before a request is served: that the user is signed in, or who they are. */
export type Asked = 'sign-in' | 'proof'
type Ask = (what: Asked) => Promise<boolean>

let ask: Ask = async () => false

/** How the page asks the member over whatever is shown; false: the member would not. */
export function askWith(asking: Ask): void {
  ask = asking
}

/** A request; where the sign-in has ended or a proof is too old, the member is asked, and it is repeated. */
export async function send<E extends Endpoint>(
  endpoint: E,
  input: Input<E>,
  signal?: AbortSignal,
): Promise<Body<E>> {
  const once = async () => (await call(endpoint, input, signal ? { signal } : {})).body
  try {
    return await once().catch(async (error) => {
      if (codeOf(error) !== 'unauthorized') throw error
      await new Promise((resolve) => setTimeout(resolve, newCookieMs))
      return once()
    })
  } catch (error) {
    const code = codeOf(error)
    const what =
      code === 'unauthorized'
        ? 'sign-in'
        : code === 'reauthentication_required'
          ? 'proof'
          : undefined
    if (what === undefined || !(await ask(what))) throw error
    signal?.throwIfAborted()
    return once()
  }
}

/**
 * A change of the password or of the second factor, in another tab too, replaces the cookie: a request
 * that is on its way meanwhile is refused once.
 */
const newCookieMs = 500

/** Asks for a proof unless there is a recent one: before what the browser requests by itself. */
export async function isProven(): Promise<boolean> {
  const { isRecent } = await send(checkProof, {})
  return isRecent || ask('proof')
}

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof RequestFailed ? error.code : undefined
}

/** The path and query of a call, for links (`download`) and streams (`fetch`) too. */
export const pathOf: typeof pathBelow = (endpoint, input) => basePath + pathBelow(endpoint, input)

export { RequestFailed }
