import { type Static, Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { ErrorBody, type ErrorCode, errorStatus } from './errors.ts'
import { choice } from './schemas.ts'

/*
 * The API for browsers. The public key is sent as the query parameter `key`, and bodies as
 * text/plain or application/octet-stream: a cross-origin request of that kind needs no preflight,
 * so it also works as a beacon while a page is closed.
 */

const Id = Type.String({ format: 'uuid' })

/**
 * What the SDK does next, in every response of the ingestion endpoints, refusals included:
 * `continue`: go on (after a 4xx, drop what was refused); `retry`: send the same again after
 * `retryAfterSeconds`; `new_browser`: forget browser and session, and start again; `stop`: record no
 * more on this page.
 */
export const Next = choice('continue', 'retry', 'new_browser', 'stop')
export type Next = Static<typeof Next>

/** An error of the ingestion: the common error shape, and what the SDK does next. */
export const IngestErrorBody = Type.Object(
  {
    error: ErrorBody.properties.error,
    next: Next,
    retryAfterSeconds: Type.Optional(
      Type.Integer({
        description: 'Only with `retry`: seconds to wait, as in the header Retry-After.',
      }),
    ),
  },
  { description: 'The common error shape, and what the SDK should do next.' },
)
export type IngestErrorBody = Static<typeof IngestErrorBody>

/** The responses that every request of a browser can get. */
const ofEveryRequest = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'browser_retired',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'internal_error',
  'unavailable',
] as const

function ingestErrors<C extends ErrorCode = never>(...named: C[]) {
  const codes = [...ofEveryRequest, ...named]
  return Object.fromEntries(codes.map((code) => [errorStatus[code], IngestErrorBody])) as Record<
    (typeof errorStatus)[C | (typeof ofEveryRequest)[number]],
    typeof IngestErrorBody
  >
}

export const Masking = choice('open', 'balanced', 'strict')

/** The project's settings for its browsers. They can only be stricter than the page's. */
export const RecordingSettings = Type.Object({
  masking: Masking,
  assets: Type.Boolean({ description: 'Whether images and fonts may be part of a recording.' }),
  sampleRate: Type.Number({ minimum: 0, maximum: 1 }),
  sessionIdleSeconds: Type.Integer(),
  sessionMaximumSeconds: Type.Integer(),
  chunkBytesMaximum: Type.Integer({ description: 'As sent, compressed or not.' }),
})
export type RecordingSettings = Static<typeof RecordingSettings>

/** A counter of problems in a chunk. */
const Count = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 }))

const KeyQuery = Type.Object({ key: Type.String({ description: 'The public key, pk_…' }) })

export const startSession = endpoint('startSession', 'POST', '/ingest/v1/start', {
  summary: 'Start a session, as a known browser or a new one',
  description: 'The body is optional. An unknown or retired browser gets 410.',
  tags: ['ingestion'],
  querystring: KeyQuery,
  body: Type.Object({
    browserId: Type.Optional(Id),
    url: Type.Optional(Type.String({ maxLength: 2048, description: 'Already masked.' })),
    sdkVersion: Type.Optional(Type.String({ maxLength: 40 })),
    pending: Type.Optional(
      Type.Boolean({ description: 'true lists the session only from its first chunk on.' }),
    ),
  }),
  response: {
    200: Type.Object({
      next: Next,
      browserId: Id,
      sessionId: Id,
      settings: RecordingSettings,
    }),
    ...ingestErrors(),
  },
})

export const withdrawBrowser = endpoint('withdrawBrowser', 'POST', '/ingest/v1/withdraw', {
  summary: 'Erase what this browser recorded, if the project allows it',
  description:
    'The data key of the browser is destroyed before the response, so no copy of its recordings can be read; they are deleted within minutes. The browser is retired and records nothing more. You can repeat the call; for an unknown browser the response is the same.',
  tags: ['ingestion'],
  querystring: KeyQuery,
  body: Type.Object({ browserId: Id }),
  response: { 200: Type.Object({ next: Next }), ...ingestErrors() },
})

export const identifyBrowser = endpoint('identifyBrowser', 'POST', '/ingest/v1/identify', {
  summary: 'Link a browser to the person with this externalId',
  description:
    'The first call creates the person, without properties. `new_browser`: this browser is linked to another person; start a new browser and identify again. While the person is being deleted, nothing is written and the response is the same. `stop`: the person has the maximum number of browsers; this one is no longer recorded.',
  tags: ['ingestion'],
  querystring: KeyQuery,
  body: Type.Object({
    browserId: Id,
    userId: Type.String({ minLength: 1, maxLength: 200 }),
    userHash: Type.Optional(
      Type.String({
        description:
          'If the project requires a proof: a JWT (EdDSA or HS256) with the userId as `sub` and an `exp`, or an HMAC-SHA256 of the userId in hex, which never expires.',
      }),
    ),
  }),
  response: { 200: Type.Object({ next: Next }), ...ingestErrors() },
})

/**
 * Uploads a chunk: recorded events as ndjson in UTF-8, plain or gzip (recognized by the first two
 * bytes). Each line is a JSON object, so it begins with `{` and ends with `}`; the last end of line is
 * optional. At most 1 MiB as sent and 8 MiB expanded. Gzip is expanded only by readers: where it is
 * damaged or larger than stated, they get the event `lethe.gap`. Idempotent by (session, tab, number).
 * A session that is unknown, ended or another browser's gets the response of a retired browser.
 */
export const uploadChunk = endpoint('uploadChunk', 'POST', '/ingest/v1/chunks', {
  summary: 'Upload recorded events',
  tags: ['ingestion'],
  querystring: Type.Object({
    key: Type.String(),
    browser: Id,
    session: Id,
    tab: Type.String({ pattern: '^[A-Za-z0-9_-]{1,32}$' }),
    number: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
    pages: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000, description: 'Page views in this chunk.' }),
    ),
    from: Type.Optional(
      Type.Integer({
        minimum: -1_000_000_000,
        maximum: 1_000_000_000,
        description: "Milliseconds from the session's start to its first event.",
      }),
    ),
    to: Type.Optional(
      Type.Integer({
        minimum: -1_000_000_000,
        maximum: 1_000_000_000,
        description: "Milliseconds from the session's start to its last event.",
      }),
    ),
    errors: Count,
    failedRequests: Count,
    rageClicks: Count,
    deadClicks: Count,
  }),
  response: { 200: Type.Object({ next: Next }), ...ingestErrors('chunk_in_flight') },
})
