/** Joins the folded fields in person_search; no folded text contains it. */
export const fieldSeparator = '\uffff'

/**
 * The form in which texts are compared by the search: two texts match where their folded forms do.
 *
 * Decomposed, then lower, upper, lower: the first lower is for ẞ, the upper for ß and ligatures.
 * Final and other sigma are one, so are i with and without a dot: a dot above an i is dropped, for
 * lower-casing İ leaves one. At the end composed, so that e does not find é. It is the same for the
 * capitals and the small letters of a text, and folding it again changes nothing.
 */
export function fold(text: string): string {
  if (isPlain.test(text)) return text.toLowerCase()
  return text
    .normalize('NFD')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .normalize('NFD')
    .replaceAll('\u03c2', '\u03c3')
    .replace(/i\p{M}+/gu, (letter) => letter.replaceAll('\u0307', ''))
    .normalize('NFC')
    .replaceAll(fieldSeparator, '\ufffe')
}

const isPlain = /^[\x20-\x7e]*$/
