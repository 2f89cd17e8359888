import { Type } from 'typebox'
import { endpoint } from './endpoint.ts'
import { apiErrors } from './errors.ts'
import { Exactly } from './schemas.ts'

export const liftSuppression = endpoint('liftSuppression', 'DELETE', '/v1/suppressions', {
  summary: 'Let identify create an erased person again',
  description:
    'For projects that suppress erased people: identify ignores an erased externalId until its suppression is lifted here, or the person is created with POST /v1/persons.',
  tags: ['deletion jobs'],
  querystring: Exactly({
    externalId: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Write a plus as %2B and a space as %20: a raw + is refused.',
    }),
  }),
  response: {
    200: Type.Object({ lifted: Type.Boolean({ description: 'Whether it was suppressed.' }) }),
    ...apiErrors('invalid_request'),
  },
})
