import { type Static, Type } from 'typebox'
import { Deletion } from './dashboard-deletions.ts'
import { ofProject } from './endpoint.ts'
import { projectErrors } from './errors.ts'
import { Properties } from './person.ts'
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

/*
 * Persons are addressed by their internal id, a decimal number as text, and not by externalId: that is
 * often an email address, and paths end up in histories and logs.
 */

export const PersonState = choice('present', 'deleting', 'deletion_failed')
export type PersonState = Static<typeof PersonState>

export const PersonSummary = Type.Object({
  id: Type.String(),
  externalId: Type.String(),
  /** The properties name and email, if they are text. */
  name: TextOrNull,
  email: TextOrNull,
  createdAt: Instant,
  updatedAt: Instant,
  state: PersonState,
  /** Counted up to 1000: that many or more. */
  sessions: Type.Integer(),
  lastSeenAt: InstantOrNull,
})
export type PersonSummary = Static<typeof PersonSummary>

export const PersonDetail = Type.Object({
  ...PersonSummary.properties,
  properties: Type.Record(Type.String(), Type.Unknown()),
  browsers: Type.Integer(),
})
export type PersonDetail = Static<typeof PersonDetail>

const PersonPath = Type.Object({ projectId: Type.String(), personId: Type.String() })

/** Newest created first. */
export const listPersons = ofProject('listPersonSummaries', 'GET', '/persons', {
  querystring: Exactly({
    search: Type.Optional(Type.String({ maxLength: 200 })),
    state: Type.Optional(choice('all', 'deleting', 'deletion_failed')),
    ...PageQuery,
  }),
  response: {
    200: Type.Object({ persons: Type.Array(PersonSummary), nextCursor: NextCursor }),
    ...projectErrors('invalid_request'),
  },
})

/**
 * A person, or the deletion that erased them. With both, the deletion is in progress or has failed.
 * Only an id that never existed gets person_not_found.
 */
export const getPerson = ofProject('getPersonDetail', 'GET', '/persons/:personId', {
  params: PersonPath,
  response: {
    200: Type.Object({
      person: OrNull(PersonDetail),
      deletion: OrNull(Deletion),
    }),
    ...projectErrors('person_not_found'),
  },
})

/** Merges like PATCH /v1/persons/:externalId: null removes a key, other keys are kept. */
export const updatePerson = ofProject('updatePersonDetail', 'PATCH', '/persons/:personId', {
  params: PersonPath,
  body: Exactly({ properties: Properties }),
  response: {
    200: Type.Object({ person: PersonDetail }),
    ...projectErrors(
      'invalid_request',
      'person_not_found',
      'person_being_deleted',
      'payload_too_large',
    ),
  },
})

export const PersonBrowser = Type.Object({
  id: Type.String(),
  createdAt: Instant,
  linkedAt: Instant,
  /** Of its newest session. */
  userAgent: TextOrNull,
  sessions: Type.Integer(),
  lastSeenAt: InstantOrNull,
})
export type PersonBrowser = Static<typeof PersonBrowser>

/** Newest linked first. */
export const listPersonBrowsers = ofProject(
  'listPersonBrowsers',
  'GET',
  '/persons/:personId/browsers',
  {
    params: PersonPath,
    querystring: Exactly(PageQuery),
    response: {
      200: Type.Object({
        browsers: Type.Array(PersonBrowser),
        nextCursor: NextCursor,
        /** The limit, if this person has reached it; otherwise null. */
        limitReached: OrNull(Type.Integer()),
      }),
      ...projectErrors('invalid_request', 'person_not_found'),
    },
  },
)

/** An event in the history of a person, as far as it is known. */
export const PersonActivity = Type.Union([
  Type.Object({ kind: Type.Literal('created'), at: Instant }),
  Type.Object({ kind: Type.Literal('browser_linked'), at: Instant, browserId: Type.String() }),
  Type.Object({ kind: Type.Literal('session'), at: Instant, sessionId: Type.String() }),
  Type.Object({
    /** By a member. Changes by the server API are not recorded. */
    kind: Type.Literal('properties_edited'),
    at: Instant,
    memberName: TextOrNull,
  }),
  Type.Object({
    kind: Type.Literal('deletion_requested'),
    at: Instant,
    jobId: Type.String(),
    keepRecordings: Type.Boolean(),
  }),
  Type.Object({ kind: Type.Literal('deletion_failed'), at: Instant, jobId: Type.String() }),
])
export type PersonActivity = Static<typeof PersonActivity>

/** The newest hundred events, newest first. */
export const listPersonActivity = ofProject(
  'listPersonActivity',
  'GET',
  '/persons/:personId/activity',
  {
    params: PersonPath,
    response: {
      200: Type.Object({ activity: Type.Array(PersonActivity) }),
      ...projectErrors('person_not_found'),
    },
  },
)
