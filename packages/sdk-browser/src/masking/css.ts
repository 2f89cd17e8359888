import { maskEmails } from './text.ts'
import { maskTokens, maskUrl } from './url.ts'

/**
 * A comment, `url(…)`, or a string. Of what is not closed the end of the text is the end, as it is
 * for a browser.
 */
const URL_REFERENCE =
  /\/\*.*?(?:\*\/|$)|url\(\s*(?:"((?:[^"\\]|\\.)*)(?:"\s*\)?|$)|'((?:[^'\\]|\\.)*)(?:'\s*\)?|$)|((?:[^)\\]|\\.)*)\)?)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/gis
/** What a string is that may be an address, as in `image-set("/a.png" 1x)`. */
const ADDRESS = /^[^\s]*\/[^\s]*$/

/** Styles stay, or the replay would show another page; what they fetch or print is masked. */
export function maskCss(css: string, level: number) {
  const masked = css.replace(URL_REFERENCE, (whole, double, single, bare, ...texts) => {
    const url: string | undefined = double ?? single ?? bare?.trim()
    if (url !== undefined) return url[0] === '#' ? whole : `url("${maskedAddress(url, level)}")`
    const text: string = texts[0] ?? texts[1] ?? ''
    return ADDRESS.test(text) ? whole.replace(text, () => maskedUrl(text, level)) : whole
  })
  return level ? maskEmails(level === 2 ? maskPrinted(masked) : masked) : masked
}

/** What is left of an address in CSS. */
export function maskedAddress(url: string, level: number) {
  return level === 2 ? 'data:,' : maskedUrl(url, level).replace(/(?<!\\)"/g, '%22')
}

const maskedUrl = (url: string, level: number) => (level ? maskUrl : maskTokens)(url, 'asset')

export const addressesIn = (css: string) =>
  Array.from(
    css.matchAll(URL_REFERENCE),
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  )

/** A comment, a whole `url(…)`, a string, or what begins or ends a statement or a selector's brackets. */
const TOKEN =
  /\/\*[\s\S]*?(?:\*\/|$)|url\([^)]*\)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S])*(?:'|$)|[{};[\]]/gi

/** Where a string is never printed: names of fonts, files, areas of a grid, parts of a selector. */
const SILENT = /^\s*(?:@(?:import|charset|namespace)\b|(?:font(?:-[\w-]+)?|src|grid[\w-]*)\s*:)/i

/** Empties every string that a page may print: in `content`, in a custom property, in list marks. */
function maskPrinted(css: string) {
  let start = 0
  let brackets = 0
  let silent: boolean | undefined
  return css.replace(TOKEN, (token, at: number) => {
    if (token[0] === '/') return ''
    if (token === '[') brackets++
    else if (token === ']') brackets = Math.max(0, brackets - 1)
    else if (token.length === 1 && '{};'.includes(token)) {
      start = at + 1
      brackets = 0
      silent = undefined
    } else if ((token[0] === '"' || token[0] === "'") && !brackets) {
      silent ??= SILENT.test(css.slice(start, Math.min(at, start + 300)).replace(COMMENT, ''))
      if (!silent) return '""'
    }
    return token
  })
}

const COMMENT = /\/\*[\s\S]*?\*\//g
