import { type Static, Type } from 'typebox'
import { DeletionJob } from './deletion-job.ts'
import { errors } from './errors.ts'
import { Cursor, Instant, Limit, NextCursor } from './page.ts'

/** 1 to 200 characters (Unicode code points), taken as given: nothing is trimmed, folded or normalised. */
export const ExternalId = Type.String({
  minLength: 1,
  maxLength: 200,
  description: "The person's identifier in the customer's own system, taken as given.",
})

export const Properties = Type.Record(Type.String(), Type.Unknown(), {
  propertyNames: { minLength: 1, maxLength: 200 },
  description:
    'Any JSON values. A key sent replaces its value, a key sent as null is removed, a key not sent is kept.',
})
export type Properties = Static<typeof Properties>

export const Person = Type.Object(
  {
    externalId: ExternalId,
    properties: Type.Record(Type.String(), Type.Unknown()),
    createdAt: Instant,
    updatedAt: Type.String({
      format: 'date-time',
      description: 'Moves when the stored properties change, and only then.',
    }),
  },
  { additionalProperties: false },
)
export type Person = Static<typeof Person>

const PersonPath = Type.Object({
  externalId: Type.String({ description: '1 to 200 characters, URL-encoded.' }),
})
const PersonReply = Type.Object({ person: Person })

export const createPerson = {
  method: 'POST',
  url: '/v1/persons',
  schema: {
    operationId: 'createPerson',
    summary: 'Create a person, or merge properties into an existing one',
    tags: ['persons'],
    body: Type.Object(
      { externalId: ExternalId, properties: Type.Optional(Properties) },
      { additionalProperties: false },
    ),
    response: {
      200: PersonReply,
      201: PersonReply,
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'person_being_deleted',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const listPersons = {
  method: 'GET',
  url: '/v1/persons',
  schema: {
    operationId: 'listPersons',
    summary: 'List persons, newest created first',
    tags: ['persons'],
    querystring: Type.Object(
      {
        limit: Limit,
        cursor: Cursor,
        search: Type.Optional(
          Type.String({
            maxLength: 200,
            description:
              'Text contained in the externalId, the name or the email; case-insensitive, taken literally.',
          }),
        ),
        externalId: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 200,
            description: 'Only the person with exactly this externalId.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({ persons: Type.Array(Person), nextCursor: NextCursor }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const getPerson = {
  method: 'GET',
  url: '/v1/persons/:externalId',
  schema: {
    operationId: 'getPerson',
    summary: 'Read a person',
    tags: ['persons'],
    params: PersonPath,
    querystring: Type.Object({}, { additionalProperties: false }),
    response: {
      200: PersonReply,
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

export const updatePerson = {
  method: 'PATCH',
  url: '/v1/persons/:externalId',
  schema: {
    operationId: 'updatePerson',
    summary: 'Merge properties into an existing person',
    tags: ['persons'],
    params: PersonPath,
    querystring: Type.Object({}, { additionalProperties: false }),
    body: Type.Object(
      {
        properties: Properties,
        externalId: Type.Optional(
          Type.String({
            description: 'Not needed; where sent, it has to equal the one of the path.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      200: PersonReply,
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'person_not_found',
        'person_being_deleted',
        'payload_too_large',
        'unsupported_media_type',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const

export const deletePerson = {
  method: 'DELETE',
  url: '/v1/persons/:externalId',
  schema: {
    operationId: 'deletePerson',
    summary: 'Request the erasure of a person',
    tags: ['persons'],
    params: PersonPath,
    querystring: Type.Object(
      {
        keepRecordings: Type.Boolean({
          default: false,
          description:
            'true keeps the sessions, anonymous; absent or false deletes the recordings too.',
        }),
      },
      { additionalProperties: false },
    ),
    response: {
      202: Type.Object({ job: DeletionJob }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'forbidden',
        'person_not_found',
        'deletion_in_progress',
        'rate_limited',
        'internal_error',
        'unavailable',
      ),
    },
  },
} as const
