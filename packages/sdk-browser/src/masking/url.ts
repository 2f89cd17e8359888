import { maskEmails, maskPatterns } from './text.ts'

/**
 * A URL without what may be personal in it: the values of its query, its hash, credentials, and
 * patterns of personal data in its path. An `asset` (images, styles) keeps long numbers in its
 * path, which are names of files more often than cards; a `symbol` keeps its hash, which names a
 * part of an SVG file.
 */
export function maskUrl(url: string, kind: 'page' | 'asset' | 'symbol' = 'page'): string {
  const scheme = /^\s*([a-z][a-z\d+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === 'data') return /^\s*data:(image|font)\//i.test(url) ? maskEmails(url) : 'data:,'
  if (scheme && !/^(https?|blob|about)$/.test(scheme)) return `${scheme}:*`
  const [, address = '', query, hash] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(url) ?? []
  const path = address.replace(/^(\s*(?:[a-z]+:)?\/\/)[^/]*@/i, '$1')
  return (
    (kind === 'page' ? maskPatterns(path) : maskEmails(path)) +
    (query ? maskQuery(query) : '') +
    (!hash || kind === 'symbol' ? (hash ?? '') : hash.length > 1 ? '#*' : hash)
  )
}

/** Every URL of a `srcset`; a width such as `640w` is none and stays as it is. */
export function maskUrls(srcset: string) {
  return srcset.replace(/\S+?(?=,?(?:\s|$))/g, (url) => maskUrl(url, 'asset'))
}

/**
 * Keeps the names of parameters. One without a value may itself be the value (`?aGVsbG8=`), and a
 * strange name may be one too: those go.
 */
function maskQuery(query: string) {
  const parameters = query.slice(1).split('&')
  return `?${parameters.map((each) => each && `${NAME.exec(each)?.[0] ?? ''}*`).join('&')}`
}

const NAME = /^[\w.[\]-]{1,40}=(?=.)/s
