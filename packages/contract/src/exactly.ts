import { type TProperties, Type } from 'typebox'

/** An object with these fields and no others. */
export function Exactly<Fields extends TProperties>(fields: Fields) {
  return Type.Object(fields, { additionalProperties: false })
}
