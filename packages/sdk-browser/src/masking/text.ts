/** A card number: 13 to 19 digits, alone or in groups. Bounded, so it is linear on any text. */
const CARD = /\d(?:(?:[ \u00a0.+-]|%20)?\d){12,18}/g
const LOCAL_PART = /[^\s<>()[\]{},;:"`\\/=?&#|@]/
const DOMAIN = /[\p{L}\p{N}.-]/u
const TOP_LEVEL = /\.[^\s\d.-]{2,}/
/** `logo@2x.png` is an image for sharp screens, not somebody's address. */
const SHARP_IMAGE = /^\d(\.\d)?x\./

/** Stars for every character that is not white space, so that lines break where they did. */
export const stars = (text: string) => text.replace(/\S/gu, '*')

/** Hides what looks like an e-mail address or a card number and leaves the rest of the text. */
export function maskPatterns(text: string) {
  return maskEmails(/\d{4}/.test(text) ? text.replace(CARD, stars) : text)
}

/**
 * Walks from each @ outwards instead of using one regular expression, which would take quadratic
 * time on long runs without an @, such as embedded images. `%40` is an @ inside a URL.
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
    if (start === at.index || !TOP_LEVEL.test(domain) || SHARP_IMAGE.test(domain)) continue
    masked += text.slice(done, start) + stars(text.slice(start, end))
    done = end
  }
  return masked + text.slice(done)
}
