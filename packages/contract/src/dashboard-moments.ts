import { type Static, Type } from 'typebox'
import { SessionPath, SessionTabs } from './dashboard-sessions.ts'
import { ofDashboard, ofProject } from './endpoint.ts'
import { errors, projectErrors } from './errors.ts'
import { Done, Exactly, Instant, TextOrNull } from './schemas.ts'

/* Moments of a recording: what members wrote at them, and links to them for people without an account. */

/** Milliseconds since the beginning of the recording. */
const Moment = Type.Integer({ minimum: 0, maximum: 93_600_000 })
const Author = Type.Object({
  id: Type.String(),
  /** null if the member was removed. */
  name: TextOrNull,
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

/** Notes in the order of their times, and valid links, for members who may revoke them. */
export const listMoments = ofProject('listMoments', 'GET', '/sessions/:sessionId/moments', {
  params: SessionPath,
  response: {
    200: Type.Object({ notes: Type.Array(SessionNote), links: Type.Array(SessionLink) }),
    ...projectErrors('session_not_found'),
  },
})

/** Refused for a recording whose person was or is being erased. */
export const addNote = ofProject('addNote', 'POST', '/sessions/:sessionId/notes', {
  params: SessionPath,
  body: Exactly({ at: Moment, text: Type.String({ minLength: 1, maxLength: 2_000 }) }),
  response: {
    201: SessionNote,
    ...projectErrors('invalid_request', 'session_not_found', 'person_being_deleted'),
  },
})

/** Members delete their own; those who may manage members delete any. */
export const removeNote = ofProject('removeNote', 'DELETE', '/sessions/:sessionId/notes/:noteId', {
  params: Type.Object({ ...SessionPath.properties, noteId: Type.String() }),
  response: { 200: Done, ...projectErrors('not_found', 'session_not_found') },
})

/** The link is only in this response. It shows the recording, and nothing else of its person. */
export const makeSessionLink = ofProject('makeSessionLink', 'POST', '/sessions/:sessionId/links', {
  params: SessionPath,
  body: Exactly({ at: Moment, days: Type.Integer({ minimum: 1, maximum: 30 }) }),
  response: {
    201: Type.Object({ ...SessionLink.properties, link: Type.String() }),
    ...projectErrors('invalid_request', 'session_not_found', 'person_being_deleted'),
  },
})

export const withdrawSessionLink = ofProject(
  'withdrawSessionLink',
  'DELETE',
  '/sessions/:sessionId/links/:linkId',
  {
    params: Type.Object({ ...SessionPath.properties, linkId: Type.String() }),
    response: { 200: Done, ...projectErrors('not_found', 'session_not_found') },
  },
)

const Token = Type.String({ minLength: 1, maxLength: 100 })

/** What a shared link shows: no person, no address, no other session. */
export const openShared = ofDashboard('openShared', 'POST', '/shared', {
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
})

/** Like getSessionEvents, for a shared link. */
export const getSharedEvents = ofDashboard('getSharedEvents', 'POST', '/shared/events', {
  body: Exactly({ token: Token, tab: Type.String({ minLength: 1, maxLength: 32 }) }),
  response: {
    200: Type.String(),
    ...errors('invalid_request', 'link_invalid', 'session_not_found'),
  },
})
