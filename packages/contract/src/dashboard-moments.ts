import { type Static, Type } from 'typebox'
import { SessionPath, SessionTabs } from './dashboard-sessions.ts'
import { errors, projectErrors } from './errors.ts'
import { Exactly } from './exactly.ts'
import { Instant } from './page.ts'

/* Moments of a recording: what members wrote at them, and links to them for people without an account. */

/** Milliseconds since the recording's beginning; no longer than a session lasts. */
const Moment = Type.Integer({ minimum: 0, maximum: 93_600_000 })
const Author = Type.Object({
  id: Type.String(),
  /** null where that member was removed since. */
  name: Type.Union([Type.String(), Type.Null()]),
})

export const SessionNote = Type.Object({
  id: Type.String(),
  at: Moment,
  text: Type.String(),
  member: Author,
  createdAt: Instant,
})
export type SessionNote = Static<typeof SessionNote>

export const SessionLink = Type.Object({
  id: Type.String(),
  at: Moment,
  member: Author,
  createdAt: Instant,
  expiresAt: Instant,
})
export type SessionLink = Static<typeof SessionLink>

/** Notes in the order of their moments, and valid links, for members who may revoke them. */
export const listMoments = {
  method: 'GET',
  url: '/dashboard/v1/projects/:projectId/sessions/:sessionId/moments',
  schema: {
    operationId: 'listMoments',
    params: SessionPath,
    response: {
      200: Type.Object({ notes: Type.Array(SessionNote), links: Type.Array(SessionLink) }),
      ...projectErrors('session_not_found'),
    },
  },
} as const

/** Refused for a recording whose person was or is being erased. */
export const addNote = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/sessions/:sessionId/notes',
  schema: {
    operationId: 'addNote',
    params: SessionPath,
    body: Exactly({ at: Moment, text: Type.String({ minLength: 1, maxLength: 2_000 }) }),
    response: {
      201: SessionNote,
      ...projectErrors('invalid_request', 'session_not_found', 'person_being_deleted'),
    },
  },
} as const

/** Members delete their own; those who may manage members delete any. */
export const removeNote = {
  method: 'DELETE',
  url: '/dashboard/v1/projects/:projectId/sessions/:sessionId/notes/:noteId',
  schema: {
    operationId: 'removeNote',
    params: Type.Object({ ...SessionPath.properties, noteId: Type.String() }),
    response: { 200: Type.Object({}), ...projectErrors('not_found', 'session_not_found') },
  },
} as const

/** The link is only in this response. It shows the recording, and nothing else of its person. */
export const makeSessionLink = {
  method: 'POST',
  url: '/dashboard/v1/projects/:projectId/sessions/:sessionId/links',
  schema: {
    operationId: 'makeSessionLink',
    params: SessionPath,
    body: Exactly({ at: Moment, days: Type.Integer({ minimum: 1, maximum: 30 }) }),
    response: {
      201: Type.Object({ ...SessionLink.properties, link: Type.String() }),
      ...projectErrors('invalid_request', 'session_not_found', 'person_being_deleted'),
    },
  },
} as const

export const withdrawSessionLink = {
  method: 'DELETE',
  url: '/dashboard/v1/projects/:projectId/sessions/:sessionId/links/:linkId',
  schema: {
    operationId: 'withdrawSessionLink',
    params: Type.Object({ ...SessionPath.properties, linkId: Type.String() }),
    response: { 200: Type.Object({}), ...projectErrors('not_found', 'session_not_found') },
  },
} as const

const Token = Type.String({ minLength: 1, maxLength: 100 })

/** What a shared link shows: no person, no address, no other session. */
export const openShared = {
  method: 'POST',
  url: '/dashboard/v1/shared',
  schema: {
    operationId: 'openShared',
    body: Exactly({ token: Token }),
    response: {
      200: Type.Object({
        at: Moment,
        startedAt: Instant,
        seconds: Type.Integer(),
        expiresAt: Instant,
        tabs: SessionTabs,
      }),
      ...errors('invalid_request', 'link_invalid', 'rate_limited'),
    },
  },
} as const

/** Like getSessionEvents, for a shared link. */
export const getSharedEvents = {
  method: 'POST',
  url: '/dashboard/v1/shared/events',
  schema: {
    operationId: 'getSharedEvents',
    body: Exactly({ token: Token, tab: Type.String({ minLength: 1, maxLength: 32 }) }),
    response: {
      200: Type.String(),
      ...errors('invalid_request', 'link_invalid', 'session_not_found'),
    },
  },
} as const
