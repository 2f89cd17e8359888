import { type Static, Type } from 'typebox'

/** Every code of an error response, and its HTTP status. */
export const errorStatus = {
  invalid_request: 400,
  unauthorized: 401,
  credentials_wrong: 401,
  forbidden: 403,
  reauthentication_required: 403,
  not_found: 404,
  person_not_found: 404,
  deletion_job_not_found: 404,
  receipt_not_found: 404,
  session_not_found: 404,
  project_not_found: 404,
  key_not_found: 404,
  member_not_found: 404,
  webhook_not_found: 404,
  delivery_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  person_being_deleted: 409,
  deletion_in_progress: 409,
  chunk_in_flight: 409,
  member_exists: 409,
  last_owner: 409,
  browser_retired: 410,
  link_invalid: 410,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  expectation_failed: 417,
  rate_limited: 429,
  headers_too_large: 431,
  internal_error: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof errorStatus

const codes = Object.keys(errorStatus) as ErrorCode[]

/**
 * The shape of every error response. `details` names the places in the request that are wrong;
 * neither `message` nor `details` ever repeats a value or a property key that was sent.
 */
export const ErrorBody = Type.Object(
  {
    error: Type.Object({
      code: Type.Unsafe<ErrorCode>(Type.String({ enum: codes })),
      message: Type.String(),
      details: Type.Optional(
        Type.Array(Type.Object({ path: Type.String(), issue: Type.String() })),
      ),
      requestId: Type.String(),
    }),
  },
  { description: 'Every 4xx and 5xx response has this shape.' },
)
export type ErrorBody = Static<typeof ErrorBody>
export type ErrorDetail = NonNullable<ErrorBody['error']['details']>[number]

type StatusOf<C extends ErrorCode> = (typeof errorStatus)[C]

/** The response schemas of the errors an endpoint names, keyed by status as Fastify wants them. */
export function errors<C extends ErrorCode>(...named: C[]) {
  return Object.fromEntries(named.map((code) => [errorStatus[code], ErrorBody])) as Record<
    StatusOf<C>,
    typeof ErrorBody
  >
}

/** The responses that every endpoint of the server API can give, and the others of this one. */
export function apiErrors<C extends ErrorCode>(...named: C[]) {
  return memberErrors<C | 'rate_limited' | 'internal_error' | 'unavailable'>(
    'rate_limited',
    'internal_error',
    'unavailable',
    ...named,
  )
}

/** The errors of dashboard endpoints that need a member. */
export function memberErrors<C extends ErrorCode>(...named: C[]) {
  return errors<C | 'unauthorized' | 'forbidden'>('unauthorized', 'forbidden', ...named)
}

/** The errors of dashboard endpoints of a project. */
export function projectErrors<C extends ErrorCode>(...named: C[]) {
  return memberErrors<C | 'project_not_found'>('project_not_found', ...named)
}
