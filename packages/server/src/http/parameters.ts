import { invalid } from '../api-error.ts'

/** Whether a text has the form of an id; other texts match no row. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

/** Whether a text can be the internal id of a person: a number that PostgreSQL's bigint takes. */
export function isPersonId(text: string): boolean {
  return /^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n
}

/** Reads a date or time of a URL; returns it as in `2026-11-27T22:58:33.120Z`. */
export function instantOf(text: string, path: string): string {
  const isInstant = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/.test(text)
  const instant = new Date(isInstant ? text : Number.NaN)
  if (Number.isNaN(instant.getTime())) {
    throw invalid(path, 'is not a valid time, e.g. 2026-11-27T22:58:33.120Z')
  }
  return instant.toISOString()
}
