import { type Static, Type } from 'typebox'
import { DeletionJob } from './deletion-job.ts'
import { endpoint } from './endpoint.ts'
import { apiErrors } from './errors.ts'
import { Exactly, Instant, NextCursor, PageQuery } from './schemas.ts'

/** 1 to 200 Unicode code points, stored exactly as sent: not trimmed, folded or normalized. */
export const ExternalId = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "The person's identifier in your own system, stored as it is sent.",
})

export const Properties = Type.Record(Type.String(), Type.Unknown(), {
  propertyNames: { minLength: 1, maxLength: 200 },
  description:
    'Any JSON values. A key that is sent replaces its value, a key sent as null is removed, and other keys are kept.',
})
export type Properties = Static<typeof Properties>

export const Person = Exactly({
  externalId: ExternalId,
  properties: Type.Record(Type.String(), Type.Unknown()),
  createdAt: Instant,
  updatedAt: Type.String({
    format: 'date-time',
    description: 'Changes only when the stored properties change.',
  }),
})
export type Person = Static<typeof Person>

const PersonPath = Type.Object({
  externalId: Type.String({ description: '1 to 200 characters, URL-encoded.' }),
})
const PersonReply = Type.Object({ person: Person })

export const createPerson = endpoint('createPerson', 'POST', '/v1/persons', {
  summary: 'Create a person, or merge properties into an existing one',
  tags: ['persons'],
  body: Exactly({ externalId: ExternalId, properties: Type.Optional(Properties) }),
  response: {
    200: PersonReply,
    201: PersonReply,
    ...apiErrors(
      'invalid_request',
      'person_being_deleted',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
})

export const listPersons = endpoint('listPersons', 'GET', '/v1/persons', {
  summary: 'List persons, newest first',
  tags: ['persons'],
  querystring: Exactly({
    ...PageQuery,
    search: Type.Optional(
      Type.String({
        maxLength: 200,
        description:
          'Text contained in the externalId, the name or the email. Case is ignored, and there are no wildcards. In a query a + is a space: write a plus as %2B.',
      }),
    ),
    externalId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description:
          'Only the person with exactly this externalId. Write a plus as %2B and a space as %20: a raw + is refused.',
      }),
    ),
  }),
  response: {
    200: Type.Object({ persons: Type.Array(Person), nextCursor: NextCursor }),
    ...apiErrors('invalid_request'),
  },
})

export const getPerson = endpoint('getPerson', 'GET', '/v1/persons/:externalId', {
  summary: 'Read a person',
  tags: ['persons'],
  params: PersonPath,
  querystring: Exactly({}),
  response: { 200: PersonReply, ...apiErrors('invalid_request', 'person_not_found') },
})

export const updatePerson = endpoint('updatePerson', 'PATCH', '/v1/persons/:externalId', {
  summary: 'Merge properties into an existing person',
  tags: ['persons'],
  params: PersonPath,
  querystring: Exactly({}),
  body: Exactly({
    properties: Properties,
    externalId: Type.Optional(
      Type.String({
        description: 'Not needed. If sent, it must equal the one in the path.',
      }),
    ),
  }),
  response: {
    200: PersonReply,
    ...apiErrors(
      'invalid_request',
      'person_not_found',
      'person_being_deleted',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
})

export const deletePerson = endpoint('deletePerson', 'DELETE', '/v1/persons/:externalId', {
  summary: 'Request the erasure of a person',
  tags: ['persons'],
  params: PersonPath,
  querystring: Exactly({
    keepRecordings: Type.Boolean({
      default: false,
      description:
        'true keeps the recordings and makes them anonymous; absent or false deletes them too.',
    }),
  }),
  response: {
    202: Type.Object({ job: DeletionJob }),
    ...apiErrors('invalid_request', 'person_not_found', 'deletion_in_progress'),
  },
})
