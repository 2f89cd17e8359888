/*
 * CSS of a recording without anything that would be fetched. The text is tokenized according to the
 * CSS Syntax standard (comments, strings, escapes, unquoted url()), because a search for "url("
 * misses `u\72l(` and finds matches in comments.
 */

/** Functions whose strings are URLs. */
const addressFunctions = new Set([
  'url',
  'src',
  'image',
  'image-set',
  '-webkit-image-set',
  'cross-fade',
  '-webkit-cross-fade',
])

const mayFetch = /\\|url|src|image|cross-fade|import|expression/i
const harmlessAddress =
  /^(?:#|data:(?:image\/[\w.+-]+|font\/[\w.+-]+|application\/(?:x-)?(?:font[\w.+-]*|octet-stream|vnd\.ms-fontobject))[;,])/i
const nothing = '"data:,"'

/** The property for the image with this address, if the recording contains it (`assets.ts`). */
export function propertyOf(address: string): string {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < address.length; at++) {
    high = Math.imul(high ^ address.charCodeAt(at), 0x9e3779b1)
    low = Math.imul(low ^ address.charCodeAt(at), 0x5f356495)
  }
  return `--lethe-${(high >>> 0).toString(36)}${(low >>> 0).toString(36)}`
}

/**
 * Removes `@import` and all addresses except fragments and data URLs. In declarations, an address
 * becomes a property, which may get the recorded image at any time.
 */
export function harmlessCss(text: string, isDeclared = true): string {
  if (!mayFetch.test(text)) return text
  const reader: Reader = {
    // Preprocessing by the standard: otherwise only the browser would end a string at a form feed.
    text: text.replace(/\r\n|\r|\f/g, '\n').replaceAll('\0', '\ufffd'),
    at: 0,
    out: [],
    functions: [],
    addressDepth: 0,
    isDeclared,
    plainUntil: undefined,
  }
  while (reader.at < reader.text.length) reader.at = readToken(reader)
  return reader.out.join('')
}

interface Reader {
  text: string
  at: number
  out: string[]
  /** The open functions and parentheses, innermost last. */
  functions: string[]
  /** How many of them take addresses. */
  addressDepth: number
  isDeclared: boolean
  /** The end of an at-rule in which `var()` is not supported. */
  plainUntil: string | undefined
}

/** Each reader outputs what may stay of the token at `at`, and returns the end of the token. */
function readToken(reader: Reader): number {
  const { text, at } = reader
  const character = text[at] as string
  if (character === '/' && text[at + 1] === '*') return copy(reader, endOfComment(text, at))
  if (character === '"' || character === "'") return readString(reader)
  if (character === '@' && startsName(text, at + 1)) return readAtKeyword(reader)
  if (startsName(text, at)) return readName(reader)
  if (character === '(') open(reader, '')
  if (character === ')') close(reader)
  if (character === reader.plainUntil) reader.plainUntil = undefined
  return copy(reader, at + 1)
}

function open(reader: Reader, name: string): void {
  reader.functions.push(name)
  if (addressFunctions.has(name)) reader.addressDepth++
}

function close(reader: Reader): void {
  if (addressFunctions.has(reader.functions.pop() ?? '')) reader.addressDepth--
}

function copy(reader: Reader, end: number): number {
  reader.out.push(reader.text.slice(reader.at, end))
  return end
}

function endOfComment(text: string, at: number): number {
  const end = text.indexOf('*/', at + 2)
  return end === -1 ? text.length : end + 2
}

function readString(reader: Reader): number {
  const { end, value } = stringAt(reader.text, reader.at)
  if (reader.addressDepth === 0 || harmlessAddress.test(value.trim())) return copy(reader, end)
  reader.out.push(nothing)
  return end
}

function stringAt(text: string, at: number): { end: number; value: string } {
  const quote = text[at]
  let value = ''
  let i = at + 1
  while (i < text.length && text[i] !== quote && text[i] !== '\n') {
    if (text[i] !== '\\') {
      value += text[i++]
    } else if (text[i + 1] === '\n') {
      i += 2
    } else {
      const escaped = escapeAt(text, i)
      value += escaped.value
      i = escaped.end
    }
  }
  return { end: text[i] === quote ? i + 1 : i, value }
}

const plainUntil: Record<string, string> = { 'font-face': '}', namespace: ';' }

/** Drops `@import …;`. The rest of any other at-rule is read as usual. */
function readAtKeyword(reader: Reader): number {
  const { end, value } = nameAt(reader.text, reader.at + 1)
  const name = value.toLowerCase()
  reader.plainUntil ??= plainUntil[name]
  if (name !== 'import') return copy(reader, end)
  let i = end
  while (i < reader.text.length && !';{}'.includes(reader.text[i] as string)) {
    const character = reader.text[i]
    if (character === '"' || character === "'") i = stringAt(reader.text, i).end
    else if (character === '/' && reader.text[i + 1] === '*') i = endOfComment(reader.text, i)
    else if (startsName(reader.text, i)) i = endOfImportName(reader.text, i)
    else i++
  }
  return reader.text[i] === ';' ? i + 1 : i
}

/** Returns the end of a name, or of an unquoted url(), which may contain semicolons. */
function endOfImportName(text: string, at: number): number {
  const { end, value } = nameAt(text, at)
  const isUnquoted =
    value.toLowerCase() === 'url' && /^\(\s*[^\s"']/.test(text.slice(end, end + 99))
  return isUnquoted ? unquotedAt(text, end + 1).end : end
}

function readName(reader: Reader): number {
  const { end, value } = nameAt(reader.text, reader.at)
  if (reader.text[end] !== '(') return copy(reader, end)
  const name = value.toLowerCase()
  const url = name === 'url' && urlAt(reader.text, end + 1)
  if (url) {
    reader.out.push(urlFor(reader, url.value))
    return url.end
  }
  open(reader, name)
  if (name === 'expression') reader.out.push('x-')
  return copy(reader, end + 1)
}

/** Returns the address of a `url(` that contains nothing else. */
function urlAt(text: string, at: number): { end: number; value: string } | undefined {
  const start = at + (/^\s*/.exec(text.slice(at, at + 99))?.[0].length ?? 0)
  if (text[start] !== '"' && text[start] !== "'") return unquotedAt(text, at)
  const { end, value } = stringAt(text, start)
  const [closing] = /^\s*\)/.exec(text.slice(end, end + 99)) ?? []
  return closing ? { end: end + closing.length, value: value.trim() } : undefined
}

function urlFor({ isDeclared, plainUntil }: Reader, address: string): string {
  if (harmlessAddress.test(address)) return `url(${quoted(address)})`
  const isRecorded = isDeclared && !plainUntil && address && address !== 'data:,'
  return isRecorded ? `var(${propertyOf(address)},url(${nothing}))` : `url(${nothing})`
}

function unquotedAt(text: string, at: number): { end: number; value: string } {
  let value = ''
  let i = at
  while (i < text.length && text[i] !== ')') {
    if (text[i] === '\\' && text[i + 1] !== '\n') {
      const escaped = escapeAt(text, i)
      value += escaped.value
      i = escaped.end
    } else {
      value += text[i++]
    }
  }
  return { end: Math.min(i + 1, text.length), value: value.trim() }
}

function quoted(address: string): string {
  return `"${address.replace(/["\\\n]/g, (character) => `\\${character.charCodeAt(0).toString(16)} `)}"`
}

function startsName(text: string, at: number): boolean {
  const hyphens = text[at] === '-' ? 1 : 0
  const character = text[at + hyphens]
  if (character === undefined) return false
  if (character === '-') return hyphens === 1
  if (character === '\\') return text[at + hyphens + 1] !== '\n'
  return /[a-z_\u0080-\uffff]/i.test(character)
}

function nameAt(text: string, at: number): { end: number; value: string } {
  let value = ''
  let i = at
  for (;;) {
    const character = text[i]
    if (character === undefined) break
    if (character === '\\' && text[i + 1] !== '\n' && i + 1 < text.length) {
      const escaped = escapeAt(text, i)
      value += escaped.value
      i = escaped.end
    } else if (/[\w\u0080-\uffff-]/.test(character)) {
      value += character
      i++
    } else break
  }
  // A backslash at the end of the text is no name, but must be passed.
  return { end: Math.max(i, at + 1), value }
}

function escapeAt(text: string, at: number): { end: number; value: string } {
  const hex = /^[0-9a-f]{1,6}/i.exec(text.slice(at + 1, at + 7))?.[0]
  if (hex === undefined) {
    const character = String.fromCodePoint(text.codePointAt(at + 1) ?? 0xfffd)
    return { end: at + 1 + character.length, value: character }
  }
  const code = Number.parseInt(hex, 16)
  const end = at + 1 + hex.length
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
  return {
    end: /\s/.test(text[end] ?? '') ? end + 1 : end,
    value: isCharacter ? String.fromCodePoint(code) : '\ufffd',
  }
}
