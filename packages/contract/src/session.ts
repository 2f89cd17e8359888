import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Cursor, Instant, InstantOrNull, Limit, NextCursor } from './page.ts'

export const Session = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    browserId: Type.String({ format: 'uuid' }),
    startedAt: Instant,
    lastChunkAt: Type.Union([Instant, Type.Null()], {
      description: 'When its last chunk was stored; null while there is none.',
    }),
    beforeIdentification: Type.Boolean({
      description: 'Whether it started before its browser was first identified.',
    }),
    chunks: Type.Integer(),
    bytes: Type.Integer({ description: 'As stored: compressed and sealed.' }),
    pages: Type.Integer({ description: 'Pages entered, as the SDK counted them.' }),
    url: Type.Union([Type.String(), Type.Null()], {
      description: 'Where it started, as the SDK masked it.',
    }),
    userAgent: Type.Union([Type.String(), Type.Null()]),
    sdkVersion: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
)
export type Session = Static<typeof Session>

/** A tab of the browser that recorded into a session: a document stream of its own for a player. */
export const SessionTab = Type.Object(
  {
    tab: Type.String(),
    chunks: Type.Integer(),
    bytes: Type.Integer(),
    firstChunkAt: InstantOrNull,
    lastChunkAt: InstantOrNull,
  },
  { additionalProperties: false },
)
export type SessionTab = Static<typeof SessionTab>

const SessionPath = Type.Object({ id: Type.String() })

export const listSessionsOfPerson = {
  method: 'GET',
  url: '/v1/persons/:externalId/sessions',
  schema: {
    operationId: 'listSessionsOfPerson',
    summary: "List a person's sessions, newest started first",
    description:
      'What the browsers identified as this person recorded, before their identification too. Readable until the person is gone.',
    tags: ['sessions'],
    params: Type.Object({
      externalId: Type.String({ description: '1 to 200 characters, URL-encoded.' }),
    }),
    querystring: Type.Object({ limit: Limit, cursor: Cursor }, { additionalProperties: false }),
    response: {
      200: Type.Object({ sessions: Type.Array(Session), nextCursor: NextCursor }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'person_not_found',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const getSession = {
  method: 'GET',
  url: '/v1/sessions/:id',
  schema: {
    operationId: 'getSession',
    summary: 'Read a session',
    tags: ['sessions'],
    params: SessionPath,
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: Type.Object({ session: Session, tabs: Type.Array(SessionTab) }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'session_not_found',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const readSessionEvents = {
  method: 'GET',
  url: '/v1/sessions/:id/events',
  schema: {
    operationId: 'readSessionEvents',
    summary: 'Read the recorded events of a session',
    description:
      'One event a line (application/x-ndjson), tab by tab and in each in the order of recording. What is no longer readable breaks the answer off: it ends without the last chunk of its transfer encoding.',
    tags: ['sessions'],
    params: SessionPath,
    querystring: Type.Object(
      {
        tab: Type.Optional(
          Type.String({ maxLength: 32, description: 'Only the events of this tab.' }),
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      200: Type.String({ description: 'Recorded events, one JSON object a line.' }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'session_not_found',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const
