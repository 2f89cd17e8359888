import { Type } from 'typebox'

/** ISO 8601 UTC with milliseconds, as in 2026-11-27T22:58:33.120Z. */
export const Instant = Type.String({ format: 'date-time' })

export const InstantOrNull = Type.Union([Instant, Type.Null()])

export const Limit = Type.Integer({ minimum: 1, maximum: 100, default: 50 })

export const Cursor = Type.Optional(
  Type.String({
    maxLength: 200,
    description: 'The nextCursor of the previous page of the same list.',
  }),
)

export const NextCursor = Type.Union([Type.String(), Type.Null()], {
  description: 'null on the last page.',
})
