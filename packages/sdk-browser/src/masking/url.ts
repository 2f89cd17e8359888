import type { Options } from '../api.ts'
import { maskEmails, maskPatterns } from './text.ts'

export type UrlKind = 'page' | 'asset' | 'symbol'

type UrlRules = Pick<Options, 'maskUrl' | 'maskUuids'>

let rules: UrlRules = {}

/** Sets the URL options of the page. */
export function setUrlRules(given: UrlRules) {
  rules = given
}

/**
 * Removes what may be personal from a URL: the values of its query, its hash, credentials, secrets
 * (`maskTokens`) and patterns of personal data in its path. An `asset` (images, styles) keeps long
 * numbers in its path, which are more often file names than card numbers. A `symbol` keeps its
 * hash, which names a part of an SVG file.
 */
export function maskUrl(given: string, kind: UrlKind = 'page'): string {
  const url = maskedByPage(given)
  const scheme = schemeOf(url)
  if (scheme === 'data') return /^\s*data:(image|font)\//i.test(url) ? maskEmails(url) : 'data:,'
  if (scheme && !/^(https?|blob|about)$/.test(scheme)) return `${scheme}:*`
  const { address, query, hash } = partsOf(url)
  const path = maskSecrets(address, kind)
  return (
    (kind === 'page' ? maskPatterns(path) : maskEmails(path)) +
    (query ? maskQuery(query) : '') +
    (!hash || kind === 'symbol' ? hash : hash.length > 1 ? '#*' : hash)
  )
}

/** The same for the preset `open`: after the page's `maskUrl`, only secrets are removed. */
export function maskTokens(given: string, kind: UrlKind = 'page'): string {
  const url = maskedByPage(given)
  const scheme = schemeOf(url)
  if (scheme && !/^(https?|blob|about)$/.test(scheme)) return url
  const { address, query, hash } = partsOf(url)
  return (
    maskSecrets(address, kind) +
    query.replace(/(?<=[=?&])[^&]+/g, (value) => (isSecret(value, 'page') ? '*' : value)) +
    hash.replace(/[^#/?&=]+/g, (part) => (isSecret(part, 'page') ? '*' : part))
  )
}

/** Applies the page's `maskUrl`. If it fails, the whole URL is masked. */
function maskedByPage(url: string): string {
  const { maskUrl } = rules
  if (!maskUrl || schemeOf(url) === 'data') return url
  try {
    const masked = maskUrl(url)
    return typeof masked === 'string' ? masked : '*'
  } catch {
    return '*'
  }
}

const schemeOf = (url: string) => /^\s*([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase()

function partsOf(url: string) {
  const [, address = '', query = '', hash = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url) ?? []
  return { address, query, hash }
}

/** Removes credentials, matrix parameters (`;jsessionid=…`) and path segments that are secrets. */
function maskSecrets(address: string, kind: UrlKind) {
  const [, origin = '', path = ''] = /^(\s*(?:[a-z]+:)?\/\/[^/]*)?(.*)$/is.exec(address) ?? []
  const segments = path.split('/').map((segment, at, all) => {
    const [name = '', ...matrix] = segment.split(';')
    // The last segment of an asset's path is a file name: a hash in it is one of its content.
    const isFile = kind !== 'page' && at === all.length - 1 && /\.\w{2,5}$/.test(name)
    return (isSecret(name, isFile ? 'file' : kind) ? '*' : name) + (matrix.length ? ';*' : '')
  })
  return origin.replace(/[^/]*@/, '') + segments.join('/')
}

const JWT = /(?:^|[^\w-])eyJ[\w-]{5,}(?:\.|%2e|$)/i
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/gi
const HEX = /[\da-f]{32,}/i
/** Runs of base64 or base64url that are long enough to be a key. */
const BASE64 = /(?:[\w+=~-]|%2b|%2f|%3d){20,}/gi

/**
 * Whether a part of a URL looks like a secret: a JWT, 32 or more hex digits, a UUID, or a long run
 * of base64 that looks random.
 */
function isSecret(given: string, kind: UrlKind | 'file') {
  if (given.length < 16) return false
  const text = given.replace(UUID, rules.maskUuids === false ? '' : '\0')
  if (JWT.test(text)) return true
  if (kind === 'file') return false
  return text.includes('\0') || HEX.test(text) || (text.match(BASE64) ?? []).some(isRandom)
}

/** Masks the words of a text that look like secrets. */
export const maskSecretWords = (text: string) =>
  text.replace(/[^\s"'`,()<>{}[\]]{16,}/g, (word) => (isSecret(word, 'page') ? '*' : word))

/** A part of a readable path between hyphens: a word, also in camel case, a number, `256GB`. */
const WORD =
  /^(?:[a-z]*(?:[A-Z][a-z]{2,})*\d{0,4}|[A-Z]+|\d{1,8}|[a-zA-Z]{0,4}\d{1,4}[a-zA-Z]{0,2})$/

/**
 * Whether a run of base64 looks random: at least 12 characters are not words, and they contain
 * letters with digits or with mixed case.
 */
function isRandom(run: string) {
  const rest = run
    .split(/[-_~+=]/)
    .filter((part) => !WORD.test(part))
    .join('')
  return rest.length >= 12 && /[a-zA-Z]/.test(rest) && (/\d/.test(rest) || /[a-z][A-Z]/.test(rest))
}

/** Masks every URL of a `srcset`; masking keeps widths such as `640w` as they are. */
export function maskUrls(srcset: string, mask: typeof maskUrl = maskUrl) {
  return srcset.replace(/\S+?(?=,?(?:\s|$))/g, (url) => mask(url, 'asset'))
}

/**
 * Keeps the names of parameters, unless the name may itself be data: if it has no value
 * (`?aGVsbG8=`) or is unusual.
 */
function maskQuery(query: string) {
  const parameters = query.slice(1).split('&')
  return `?${parameters.map((each) => each && `${NAME.exec(each)?.[0] ?? ''}*`).join('&')}`
}

const NAME = /^[\w.[\]-]{1,40}=(?=.)/s
