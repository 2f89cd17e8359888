import { type Static, Type } from 'typebox'
import { ErrorBody, type ErrorCode, errorStatus } from './errors.ts'

/*
 * What browsers speak. The public key travels as the query parameter `key`, and bodies as
 * text/plain or application/octet-stream: a cross-origin request of that kind needs no preflight,
 * so it also works as a beacon while a page goes away.
 */

const Id = Type.String({ format: 'uuid' })

/**
 * What the SDK does next, in every answer of the ingestion endpoints, refusals included:
 * `continue` go on (after a 4xx: drop what was refused); `retry` send the same again after
 * `retryAfterSeconds`; `new_browser` forget browser and session, start anew; `stop` record no more
 * on this page.
 */
export const Next = Type.Unsafe<'continue' | 'retry' | 'new_browser' | 'stop'>(
  Type.String({ enum: ['continue', 'retry', 'new_browser', 'stop'] }),
)
export type Next = Static<typeof Next>

/** A refusal or fault of the ingestion: the one error shape, and beside it what the SDK does next. */
export const IngestErrorBody = Type.Object(
  {
    error: ErrorBody.properties.error,
    next: Next,
    retryAfterSeconds: Type.Optional(
      Type.Integer({ description: 'With `retry`; the same as the header Retry-After.' }),
    ),
  },
  { description: 'The one error shape, and what the SDK does next.' },
)
export type IngestErrorBody = Static<typeof IngestErrorBody>

function ingestErrors<C extends ErrorCode>(...named: C[]) {
  return Object.fromEntries(named.map((code) => [errorStatus[code], IngestErrorBody])) as Record<
    (typeof errorStatus)[C],
    typeof IngestErrorBody
  >
}

export const Masking = Type.Unsafe<'open' | 'balanced' | 'strict'>(
  Type.String({ enum: ['open', 'balanced', 'strict'] }),
)

/** What the project decides for its browsers. `masking` can only tighten what the page asked for. */
export const RecordingSettings = Type.Object({
  masking: Masking,
  sampleRate: Type.Number({ minimum: 0, maximum: 1 }),
  sessionIdleSeconds: Type.Integer(),
  sessionMaximumSeconds: Type.Integer(),
  chunkBytesMaximum: Type.Integer({ description: 'As sent, compressed or not.' }),
})
export type RecordingSettings = Static<typeof RecordingSettings>

const KeyQuery = Type.Object({ key: Type.String({ description: 'The public key, pk_…' }) })

export const startSession = {
  method: 'POST',
  url: '/ingest/v1/start',
  schema: {
    operationId: 'startSession',
    summary: 'Start a session, as a known browser or a new one',
    description: 'A body is optional. A browser that is unknown or retired is answered 410.',
    tags: ['ingestion'],
    querystring: KeyQuery,
    body: Type.Object({
      browserId: Type.Optional(Id),
      url: Type.Optional(Type.String({ maxLength: 2048, description: 'Already masked.' })),
      sdkVersion: Type.Optional(Type.String({ maxLength: 40 })),
    }),
    response: {
      200: Type.Object({
        next: Next,
        browserId: Id,
        sessionId: Id,
        settings: RecordingSettings,
      }),
      ...ingestErrors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'browser_retired',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const identifyBrowser = {
  method: 'POST',
  url: '/ingest/v1/identify',
  schema: {
    operationId: 'identifyBrowser',
    summary: 'Tie a browser to the person with this externalId',
    description:
      "Creates the person at the first call and sets no properties. `new_browser`: this browser is another person's; start anew and identify again. While the person is being deleted nothing is written, and the answer is the same.",
    tags: ['ingestion'],
    querystring: KeyQuery,
    body: Type.Object({
      browserId: Id,
      userId: Type.String({ minLength: 1, maxLength: 200 }),
      userHash: Type.Optional(
        Type.String({
          description: 'HMAC-SHA256 of userId in hex, where the project asks for it.',
        }),
      ),
    }),
    response: {
      200: Type.Object({ next: Next }),
      ...ingestErrors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'browser_retired',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

/**
 * One chunk: recorded events as ndjson, one JSON object a line (so a line begins with `{` and ends
 * with `}`; an end of the last line is optional), in UTF-8, plain or gzip (told by the first two
 * bytes). At most 1 MiB as sent and 8 MiB expanded. Idempotent by (session, tab, number): a
 * repeated one is answered as done. A session that is unknown, ended or another browser's is
 * answered as a retired browser is.
 */
export const uploadChunk = {
  method: 'POST',
  url: '/ingest/v1/chunks',
  schema: {
    operationId: 'uploadChunk',
    summary: 'Upload recorded events',
    tags: ['ingestion'],
    querystring: Type.Object({
      key: Type.String(),
      browser: Id,
      session: Id,
      tab: Type.String({ pattern: '^[A-Za-z0-9_-]{1,32}$' }),
      number: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
      pages: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 1_000, description: 'Pages entered in this chunk.' }),
      ),
    }),
    response: {
      200: Type.Object({ next: Next }),
      ...ingestErrors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'chunk_in_flight',
        'browser_retired',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const
