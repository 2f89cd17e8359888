/** A separator inside a number, also URL-encoded. */
const GAP = '(?:[ \\u00a0.+-]|%20)'
/**
 * Numbers that identify a person or an account, with bounded lengths so that matching takes linear
 * time: cards (13 to 19 digits), IBANs, phone numbers (international; (555) 123-4567;
 * 06 12 34 56 78; 020 7946 0958), and national numbers of the USA, the United Kingdom, Spain and
 * Italy. Those of most other countries are as long as cards.
 */
const NUMBERS = new RegExp(
  [
    `\\d(?:${GAP}?\\d){12,18}`,
    `\\b[A-Z]{2}\\d\\d(?:${GAP}?[A-Z\\d]{4}){2,7}(?:${GAP}?[A-Z\\d]{1,3})?\\b`,
    `(?:\\+|\\b00|%2B)[1-9](?:[ \\u00a0./()-]{0,2}\\d){7,14}`,
    `(?<![\\d.])(?:\\(\\d{3}\\) ?|\\d{3}[ \\u00a0.-])\\d{3}[ \\u00a0.-]\\d{4}(?![\\d.]\\d)\\b`,
    `(?<![\\d.,])0\\d(?:[ \\u00a0.]\\d\\d){4}\\b`,
    `(?<![\\d.,])\\(?0[1-9]\\d{1,3}\\)?[ \\u00a0/-]\\d{3,4}[ \\u00a0-]?\\d{3,5}\\b`,
    `(?<![\\d.,/-])0[1-9]\\d{8,9}\\b`,
    `(?<![\\d-])\\d{3}-\\d\\d-\\d{4}(?![\\d-])`,
    `\\b[A-Z]{2} ?\\d\\d ?\\d\\d ?\\d\\d ?[A-D]\\b`,
    `\\b[\\dXYZ]\\d{7}-?[A-Z]\\b`,
    `\\b[A-Z]{6}\\d\\d[A-Z]\\d\\d[A-Z]\\d{3}[A-Z]\\b`,
  ].join('|'),
  'g',
)
const LOCAL_PART = /[^\s<>()[\]{},;:"`\\/=?&#|@]/
const DOMAIN = /[\p{L}\p{N}.-]/u
const TOP_LEVEL = /\.[^\s\d.-]{2,}/
/** `logo@2x.png` is an image for high-resolution screens, not an email address. */
const HIGH_RESOLUTION_IMAGE = /^\d(\.\d)?x\./

/** Replaces every character except white space with a star, so that lines break as before. */
export const stars = (text: string) => text.replace(/\S/gu, '*')

/** The length of the shortest numbers matched above, such as `+12345678` and `AB123456C`. */
const NUMBER_CHARACTERS_MINIMUM = 9

/** Masks email addresses and the numbers above, and keeps the rest of the text. */
export function maskPatterns(text: string) {
  const isLongEnough = text.length >= NUMBER_CHARACTERS_MINIMUM
  return maskEmails(isLongEnough && /\d\d/.test(text) ? text.replace(NUMBERS, stars) : text)
}

/**
 * Masks email addresses. Searches outwards from each @, because a single regular expression would
 * take quadratic time on long texts such as embedded images. `%40` is an @ inside a URL.
 */
export function maskEmails(text: string): string {
  if (!text.includes('@') && !text.includes('%40')) return text
  let masked = ''
  let done = 0
  for (const at of text.matchAll(/@|%40/g)) {
    const right = at.index + at[0].length
    const earliest = Math.max(done, at.index - 100)
    let start = at.index
    while (start > earliest && LOCAL_PART.test(text[start - 1] as string)) start--
    let end = right
    while (end < text.length && DOMAIN.test(text[end] as string)) end++
    const domain = text.slice(right, end).replace(/[.-]+$/, '')
    end = right + domain.length
    if (start === at.index || !TOP_LEVEL.test(domain) || HIGH_RESOLUTION_IMAGE.test(domain))
      continue
    masked += text.slice(done, start) + stars(text.slice(start, end))
    done = end
  }
  return masked + text.slice(done)
}
