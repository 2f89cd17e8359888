import type { Endpoint, Input, Reply } from '@lethe/contract/client.ts'
import { RequestFailed } from '@lethe/contract/client.ts'
import { dashboardClient, pathOf } from '@lethe/contract/dashboard-client.ts'
import type { ErrorCode } from '@lethe/contract/errors.ts'

export const { call, forget } = dashboardClient()

/** The body an endpoint answers with when all went well. */
export type Body<E extends Endpoint> = Reply<E>['body']

export async function send<E extends Endpoint>(
  endpoint: E,
  input: Input<E>,
  signal?: AbortSignal,
): Promise<Body<E>> {
  return (await call(endpoint, input, signal ? { signal } : {})).body
}

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof RequestFailed ? error.code : undefined
}

export { pathOf, RequestFailed }
