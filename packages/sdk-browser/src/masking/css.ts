import { maskEmails } from './text.ts'
import { maskTokens, maskUrl } from './url.ts'

/**
 * A comment, `url(…)` or a string. An unclosed comment or `url(…)` extends to the end of the text,
 * as in a browser.
 */
const URL_REFERENCE =
  /\/\*.*?(?:\*\/|$)|url\(\s*(?:"((?:[^"\\]|\\.)*)(?:"\s*\)?|$)|'((?:[^'\\]|\\.)*)(?:'\s*\)?|$)|((?:[^)\\]|\\.)*)\)?)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/gis
/** A string that may be a URL, as in `image-set("/a.png" 1x)`. */
const ADDRESS = /^[^\s]*\/[^\s]*$/

/** Keeps styles, so that the replay looks right, but masks the URLs and displayed text in them. */
export function maskCss(css: string, level: number) {
  const masked = css.replace(URL_REFERENCE, (whole, double, single, bare, ...texts) => {
    const url: string | undefined = double ?? single ?? bare?.trim()
    if (url !== undefined) return url[0] === '#' ? whole : `url("${maskedAddress(url, level)}")`
    const text: string = texts[0] ?? texts[1] ?? ''
    return ADDRESS.test(text) ? whole.replace(text, () => maskedUrl(text, level)) : whole
  })
  return level ? maskEmails(level === 2 ? maskDisplayed(masked) : masked) : masked
}

/** Returns a URL as it stands in masked CSS. */
export function maskedAddress(url: string, level: number) {
  return level === 2 ? 'data:,' : maskedUrl(url, level).replace(/(?<!\\)"/g, '%22')
}

const maskedUrl = (url: string, level: number) => (level ? maskUrl : maskTokens)(url, 'asset')

export const addressesIn = (css: string) =>
  Array.from(
    css.matchAll(URL_REFERENCE),
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  )

/** A comment, a whole `url(…)`, a string, a statement delimiter or a bracket of a selector. */
const TOKEN =
  /\/\*[\s\S]*?(?:\*\/|$)|url\([^)]*\)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S])*(?:'|$)|[{};[\]]/gi

/** Where strings are never displayed: names of fonts, files and grid areas. */
const NOT_DISPLAYED =
  /^\s*(?:@(?:import|charset|namespace)\b|(?:font(?:-[\w-]+)?|src|grid[\w-]*)\s*:)/i

/** Empties every string that may be displayed: in `content`, custom properties and list markers. */
function maskDisplayed(css: string) {
  let start = 0
  let brackets = 0
  let notDisplayed: boolean | undefined
  return css.replace(TOKEN, (token, at: number) => {
    if (token[0] === '/') return ''
    if (token === '[') brackets++
    else if (token === ']') brackets = Math.max(0, brackets - 1)
    else if (token.length === 1 && '{};'.includes(token)) {
      start = at + 1
      brackets = 0
      notDisplayed = undefined
    } else if ((token[0] === '"' || token[0] === "'") && !brackets) {
      notDisplayed ??= NOT_DISPLAYED.test(
        css.slice(start, Math.min(at, start + 300)).replace(COMMENT, ''),
      )
      if (!notDisplayed) return '""'
    }
    return token
  })
}

const COMMENT = /\/\*[\s\S]*?\*\//g
