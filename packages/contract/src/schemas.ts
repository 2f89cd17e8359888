import { type TProperties, type TSchema, type TSchemaOptions, Type } from 'typebox'

/** An object with these fields and no others. */
export function Exactly<Fields extends TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false })
}

export function OrNull<Schema extends TSchema>(schema: Schema, options: TSchemaOptions = {}) {
  return Type.Union([schema, Type.Null()], options)
}

export const TextOrNull = OrNull(Type.String())

/** One of these texts. */
export function choice<const Text extends string>(...texts: readonly Text[]) {
  return Type.Unsafe<Text>(Type.String({ enum: texts as unknown as string[] }))
}

/** ISO 8601 UTC with milliseconds, as in 2026-11-27T22:58:33.120Z. */
export const Instant = Type.String({ format: 'date-time' })

export const InstantOrNull = OrNull(Instant)

export const PageQuery = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  cursor: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'The nextCursor of the previous page of the same list.',
    }),
  ),
}

export const NextCursor = OrNull(Type.String(), { description: 'null on the last page.' })

export const NoBody = Exactly({})
export const Done = Type.Object({})
