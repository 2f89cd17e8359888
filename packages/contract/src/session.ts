import { type Static, Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { apiErrors } from './errors.ts'
import {
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  OrNull,
  PageQuery,
  TextOrNull,
} from './schemas.ts'

export const Session = Exactly({
  id: Type.String({ format: 'uuid' }),
  browserId: Type.String({ format: 'uuid' }),
  startedAt: Instant,
  lastChunkAt: OrNull(Instant, {
    description: 'When its last chunk (an upload of events) was stored; null before the first.',
  }),
  firstEventAt: OrNull(Instant, {
    description:
      "When its first event happened, by the server's clock; null before the first chunk.",
  }),
  lastEventAt: OrNull(Instant, {
    description: 'When its last event happened; it may have arrived much later.',
  }),
  errors: Type.Integer({ description: 'Uncaught errors, and errors written to the console.' }),
  failedRequests: Type.Integer({
    description: 'Requests of the page that failed: no response, 4xx or 5xx.',
  }),
  rageClicks: Type.Integer({
    description: 'Series of quick clicks on one spot; each series counts once.',
  }),
  deadClicks: Type.Integer({ description: 'Clicks that changed nothing.' }),
  beforeIdentification: Type.Boolean({
    description: 'Whether it started before its browser was first identified.',
  }),
  chunks: Type.Integer(),
  bytes: Type.Integer({ description: 'As stored: compressed and encrypted.' }),
  pages: Type.Integer({ description: 'Page views, as counted by the SDK.' }),
  url: OrNull(Type.String(), {
    description: 'The URL of its first page, as masked by the SDK.',
  }),
  userAgent: TextOrNull,
  country: OrNull(Type.String(), {
    description:
      'The country of the IP address it started from, as ISO 3166-1 alpha-2; null unless the setting COUNTRY_DATABASE is set.',
  }),
  sdkVersion: TextOrNull,
})
export type Session = Static<typeof Session>

/** A tab of the browser that recorded into a session: a document stream of its own for a player. */
export const SessionTab = Exactly({
  tab: Type.String(),
  chunks: Type.Integer(),
  missingChunks: Type.Integer({
    description:
      'Chunks that are missing between stored ones; they may still arrive. The events have a `lethe.gap` there.',
  }),
  bytes: Type.Integer(),
  firstChunkAt: InstantOrNull,
  lastChunkAt: InstantOrNull,
})
export type SessionTab = Static<typeof SessionTab>

const SessionPath = Type.Object({ id: Type.String() })

export const listSessionsOfPerson = endpoint(
  'listSessionsOfPerson',
  'GET',
  '/v1/persons/:externalId/sessions',
  {
    summary: "List a person's sessions, latest start first",
    description:
      'The recordings of all browsers identified as this person, including those from before identification. Readable until the person is deleted.',
    tags: ['sessions'],
    params: Type.Object({
      externalId: Type.String({ description: '1 to 200 characters, URL-encoded.' }),
    }),
    querystring: Exactly(PageQuery),
    response: {
      200: Type.Object({ sessions: Type.Array(Session), nextCursor: NextCursor }),
      ...apiErrors('invalid_request', 'person_not_found'),
    },
  },
)

export const getSession = endpoint('getSession', 'GET', '/v1/sessions/:id', {
  summary: 'Read a session',
  tags: ['sessions'],
  params: SessionPath,
  querystring: Exactly({}),
  response: {
    200: Type.Object({ session: Session, tabs: Type.Array(SessionTab) }),
    ...apiErrors('invalid_request', 'session_not_found'),
  },
})

export const readSessionEvents = endpoint('readSessionEvents', 'GET', '/v1/sessions/:id/events', {
  summary: 'Read the recorded events of a session',
  description:
    'One event per line (application/x-ndjson), tab by tab, and within a tab in the order of recording. If chunks are missing or cannot be read, there is an event of type 5 with the tag `lethe.gap` in their place, with their number in `data.payload.chunks`. If the session becomes unreadable while it is sent, the response breaks off, without the final chunk of its transfer encoding.',
  tags: ['sessions'],
  params: SessionPath,
  querystring: Exactly({
    tab: Type.Optional(Type.String({ maxLength: 32, description: 'Only the events of this tab.' })),
  }),
  response: {
    200: Type.String({ description: 'Recorded events, one JSON object per line.' }),
    ...apiErrors('invalid_request', 'session_not_found'),
  },
})
