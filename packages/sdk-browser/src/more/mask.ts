import type { RecordedEvents, RecordedTag } from '@lethe/contract/recorded-events.ts'
import type { MaskingPreset } from '../api.ts'
import { LEVELS } from '../masking/preset.ts'
import { maskPatterns, stars } from '../masking/text.ts'
import { maskSecretWords, maskTokens, maskUrl, type UrlKind } from '../masking/url.ts'

const READ_CHARACTERS_MAXIMUM = 10_000
const CHARACTERS_MAXIMUM = 2_000
const STACK_LINES_MAXIMUM = 20

/** The name of an error: it comes from code and contains no data. */
const NAME = /^(?:Uncaught )?(?:\(in promise\) )?[A-Z]\w*(?:Error|Exception)(?::|$)/
const FRAME = /^\s*at |@.*:\d+:\d+$/
const URL_IN_TEXT =
  /((?:https?|wss?|ftp|file|blob):[^\s"'`()<>]+?|[^\s"'`()<>]*\?[^\s"'`()<>]*?)((?::\d+){0,2})(?=[.,;:!]?(?:[\s"'`()<>]|$))/g
/** A URL whose scheme is not that of a page, or text that only looks like a URL. */
const OTHER_SCHEME = /^\s*(?!https?:|blob:)[a-z][a-z\d+.-]*:/i
const SCRIPT = /\.(?:m?js|css|wasm|html)$/

/**
 * Returns a copy of a signal with only what the preset shows: texts are masked like the page's, and
 * under `strict` only the names of errors remain. Every preset hides the values in `typed`. Fields
 * that are not in the contract are dropped.
 */
export function maskSignal<T extends RecordedTag>(
  _tag: T,
  payload: RecordedEvents[T],
  preset: MaskingPreset,
  typed: readonly string[],
): RecordedEvents[T] {
  const level = LEVELS[preset]
  const masked: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(payload)) {
    if (typeof value === 'number') masked[name] = value
    if (typeof value !== 'string') continue
    const text = hideTyped(cut(value), typed)
    if (/^(?:message|text)$/.test(name)) masked[name] = maskWords(text, level)
    else if (/^(?:url|source)$/.test(name)) masked[name] = maskLocation(text, level)
    else if (name === 'stack') masked[name] = maskStack(text, level)
    else if (/^(?:method|kind|level|name)$/.test(name)) masked[name] = code(value)
  }
  return masked as unknown as RecordedEvents[T]
}

/** Allows only a short word, because a page can use any text as a request's method. */
const code = (value: string) => (/^[A-Za-z]{1,10}$/.test(value) ? value : '*')

/** Cuts at white space: part of an email address would no longer be recognized. */
const cut = (text: string) =>
  text.length > READ_CHARACTERS_MAXIMUM
    ? text.slice(0, READ_CHARACTERS_MAXIMUM).replace(/\S*$/, '')
    : text

function hideTyped(text: string, typed: readonly string[]) {
  for (const value of typed) if (text.includes(value)) text = text.split(value).join(stars(value))
  return text
}

function maskWords(text: string, level: number) {
  const [name = ''] = NAME.exec(text) ?? []
  const rest = text.slice(name.length)
  return (name + (level === 2 ? stars(rest) : maskUrlsIn(rest, level))).slice(0, CHARACTERS_MAXIMUM)
}

/** Masks URLs, secrets and patterns of personal data in a text. */
function maskUrlsIn(text: string, level: number) {
  let masked = ''
  let done = 0
  for (const { 0: whole, 1: url = '', 2: place = '', index } of text.matchAll(URL_IN_TEXT)) {
    masked += maskOther(text.slice(done, index), level) + maskLocation(url, level) + place
    done = index + whole.length
  }
  return masked + maskOther(text.slice(done), level)
}

function maskOther(text: string, level: number) {
  const masked = maskSecretWords(text)
  return level ? maskPatterns(masked) : masked
}

function maskLocation(url: string, level: number) {
  const [, address = '', place = ''] = /^(.*?)((?::\d+){0,2})$/s.exec(url) ?? []
  const kind: UrlKind = SCRIPT.test(address) ? 'asset' : 'page'
  const masked = level ? maskUrl(address, kind) : maskTokens(address, kind)
  return (OTHER_SCHEME.test(masked) ? maskSecretWords(masked) : masked) + place
}

/** Keeps only the frames: the lines above them repeat the message. */
function maskStack(stack: string, level: number) {
  return stack
    .split('\n')
    .filter((line) => FRAME.test(line))
    .slice(0, STACK_LINES_MAXIMUM)
    .map((line) => {
      if (level < 2) return maskUrlsIn(line, level)
      const [url] = line.match(URL_IN_TEXT) ?? []
      return url ? `    at ${maskLocation(url, level)}` : ''
    })
    .filter(Boolean)
    .join('\n')
    .slice(0, CHARACTERS_MAXIMUM)
}
