import { type Static, Type } from 'typebox'
import { ofProject } from './endpoint.ts'
import { projectErrors } from './errors.ts'
import {
  choice,
  Exactly,
  Instant,
  InstantOrNull,
  NextCursor,
  OrNull,
  PageQuery,
  TextOrNull,
} from './schemas.ts'

export const SessionSummary = Type.Object({
  id: Type.String(),
  browserId: Type.String(),
  startedAt: Instant,
  /** When its last chunk arrived; null where nothing did. */
  lastChunkAt: InstantOrNull,
  /** From the start to the last chunk. */
  seconds: Type.Integer(),
  pages: Type.Integer(),
  chunks: Type.Integer(),
  bytes: Type.Integer(),
  /** Where it started, as the SDK masked it. */
  url: TextOrNull,
  userAgent: TextOrNull,
  /** ISO 3166-1 alpha-2; null where the service has no database of countries. */
  country: TextOrNull,
  errors: Type.Integer(),
  failedRequests: Type.Integer(),
  rageClicks: Type.Integer(),
  deadClicks: Type.Integer(),
  /** Whether chunks may still come: the last one is younger than a minute. */
  isLive: Type.Boolean(),
  /** Started before its browser was linked to the person. */
  isBeforeIdentification: Type.Boolean(),
  /** Whose browser it is; null for an anonymous one. */
  person: OrNull(
    Type.Object({
      id: Type.String(),
      externalId: Type.String(),
      name: TextOrNull,
      isBeingDeleted: Type.Boolean(),
    }),
  ),
})
export type SessionSummary = Static<typeof SessionSummary>

export const browserFamilies = ['chrome', 'edge', 'firefox', 'safari'] as const
export const devices = ['desktop', 'mobile'] as const
/** What went wrong in a session. */
export const troubles = ['errors', 'failed_requests', 'rage_clicks', 'dead_clicks'] as const
export const sessionSorts = ['longest', 'most_pages', 'most_errors'] as const

/**
 * Newest started first; also the sessions of one person. With isIdentified or minimumSeconds a page
 * may be shorter than the limit, or empty, and not the last one: nextCursor tells.
 */
export const listSessions = ofProject('listSessions', 'GET', '/sessions', {
  querystring: Exactly({
    personId: Type.Optional(Type.String({ maxLength: 20 })),
    browserId: Type.Optional(Type.String({ maxLength: 36 })),
    isIdentified: Type.Optional(Type.Boolean()),
    from: Type.Optional(Type.String({ maxLength: 30, description: 'ISO 8601.' })),
    to: Type.Optional(Type.String({ maxLength: 30, description: 'ISO 8601.' })),
    minimumSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 86_400 })),
    isBeforeIdentification: Type.Optional(Type.Boolean()),
    /** A part of the address it started at, in small or capital letters. */
    page: Type.Optional(Type.String({ maxLength: 200 })),
    browser: Type.Optional(choice(...browserFamilies)),
    device: Type.Optional(choice(...devices)),
    country: Type.Optional(Type.String({ pattern: '^[A-Z]{2}$' })),
    /** A property of its person and its value, as in `plan=pro`. */
    property: Type.Optional(Type.String({ maxLength: 400, pattern: '^[^=]+=.*$' })),
    with: Type.Optional(choice(...troubles)),
    /** Other than newest first: the first ones of the newest 5,000 that match, on one page. */
    sort: Type.Optional(choice(...sessionSorts)),
    ...PageQuery,
  }),
  response: {
    200: Type.Object({ sessions: Type.Array(SessionSummary), nextCursor: NextCursor }),
    ...projectErrors('invalid_request'),
  },
})

/** The tabs it was recorded in, in the order they began. Each is a recording of its own. */
export const SessionTabs = Type.Array(
  Type.Object({
    id: Type.String(),
    chunks: Type.Integer(),
    bytes: Type.Integer(),
    firstChunkAt: Instant,
    lastChunkAt: Instant,
  }),
)

export const SessionPath = Type.Object({ projectId: Type.String(), sessionId: Type.String() })

export const getSession = ofProject('getSession', 'GET', '/sessions/:sessionId', {
  params: SessionPath,
  response: {
    200: Type.Object({
      session: SessionSummary,
      tabs: SessionTabs,
      /** The same person's (an anonymous one's: the same browser's) sessions around it. */
      previousId: TextOrNull,
      nextId: TextOrNull,
    }),
    ...projectErrors('session_not_found'),
  },
})

/**
 * The recorded events of one tab, streamed as application/x-ndjson in the order they were recorded
 * in: one rrweb event a line. Read it with fetch and a reader; no typed call. `fromChunk` skips the
 * chunks before that number, for a session that goes on.
 *
 * A stream that breaks off before its end (an erasure began, a blob is not to be had) ends with the
 * connection aborted: `fetch` reports it as a network error in the body.
 */
export const getSessionEvents = ofProject(
  'getSessionEvents',
  'GET',
  '/sessions/:sessionId/events',
  {
    params: SessionPath,
    querystring: Exactly({
      tab: Type.String({ minLength: 1, maxLength: 32 }),
      fromChunk: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_001 })),
    }),
    response: { 200: Type.String(), ...projectErrors('invalid_request', 'session_not_found') },
  },
)
