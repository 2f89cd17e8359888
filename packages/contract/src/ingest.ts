import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'

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

const KeyQuery = Type.Object({ key: Type.String({ description: 'The public key, pk_…' }) })

export const startSession = {
  method: 'POST',
  url: '/ingest/v1/start',
  schema: {
    operationId: 'startSession',
    summary: 'Start a session, as a known browser or a new one',
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
      ...errors('invalid_request', 'unauthorized', 'forbidden', 'browser_retired', 'rate_limited'),
    },
  },
} as const

export const identifyBrowser = {
  method: 'POST',
  url: '/ingest/v1/identify',
  schema: {
    operationId: 'identifyBrowser',
    summary: 'Tie a browser to the person with this externalId',
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
      ...errors('invalid_request', 'unauthorized', 'forbidden', 'browser_retired', 'rate_limited'),
    },
  },
} as const

/**
 * One chunk: recorded events as ndjson, one JSON object a line, plain or gzip (told by the first
 * two bytes). Idempotent by (session, tab, number): a repeated one is answered as done.
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
    }),
    response: {
      200: Type.Object({ next: Next }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'chunk_in_flight',
        'browser_retired',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
      ),
    },
  },
} as const
