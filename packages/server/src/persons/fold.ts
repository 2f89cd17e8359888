/** Joins the folded fields in person_search; no folded text contains it. */
export const fieldSeparator = '\uffff'

/**
 * The form in which texts are compared by the search: two texts match where their folded forms do.
 *
 * Canonical composition, then lower, upper, lower: the first lower is for ẞ, the upper for ß and
 * ligatures. Final and other sigma are one, and the dot above that lower-casing İ leaves is dropped.
 * Closed under upper- and lower-casing and idempotent for every code point (fold.test.ts tries them all).
 */
export function fold(text: string): string {
  if (isPlain.test(text)) return text.toLowerCase()
  return text
    .normalize('NFC')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replace(/\u03c2/g, '\u03c3')
    .replace(/i\u0307/g, 'i')
    .normalize('NFC')
    .replaceAll(fieldSeparator, '\ufffe')
}

const isPlain = /^[\x20-\x7e]*$/
