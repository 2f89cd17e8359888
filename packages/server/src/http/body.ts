import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import type { ReadBody } from './arrivals.ts'

// In V8 since 11.4, but not yet in TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): unknown
    isRawJSON(value: unknown): boolean
  }
}

/** How deeply properties may nest; the properties object is the first level. */
const depthMaximum = 20

/** PostgreSQL writes exponents out as digits: more of them would exceed the stored maximum. */
const exponentDigitsMaximum = 262_144

const utf8 = new TextDecoder('utf-8', { fatal: true })

export const bodyBytesMaximum = 1_048_576

/** Takes bodies of application/json in UTF-8, and no others. */
export function addJsonParser(app: FastifyInstance, readBody: ReadBody): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    (request: FastifyRequest, payload: IncomingMessage, done) => {
      try {
        requireJson(request)
      } catch (error) {
        done(error as Error)
        return
      }
      readBody(request, payload, bodyBytesMaximum, (error, bytes) => {
        if (!bytes) return done(error)
        let body: unknown
        try {
          // Many clients send a Content-Type without a body.
          if (bytes.length > 0) body = parseJsonBody(bytes)
        } catch (refusal) {
          return done(refusal as Error)
        }
        done(null, body)
      })
    },
  )
}

function requireJson({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  const charset = /charset="?([^";]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8'
  if (encoding !== 'identity' || !/^utf-?8$/i.test(charset)) {
    throw new ApiError('unsupported_media_type', 'Send the body as application/json in UTF-8.')
  }
}

/**
 * Parses a JSON body. Numbers that a double would change are kept as written, as `JSON.rawJSON` values,
 * which `JSON.stringify` prints exactly; but the fields of the body itself become doubles, because
 * validation takes a rawJSON value for an object. Refuses a number beyond the range of a double: it
 * would turn into null, which means "remove" in this API.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  refuseDeep(bytes)
  const text = decode(bytes)
  const value = withPlainFields(parse(text))
  // U+0000 and unpaired surrogates can only be written as an escape.
  checkValue(value, /\\u(?:0000|[dD][89a-fA-F])/.test(text))
  return value
}

const quote = 0x22
const backslash = 0x5c

/** Checked before parsing: a megabyte of nested arrays takes the parser 200 ms. */
function refuseDeep(bytes: Buffer): void {
  let depth = 0
  let isInText = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number
    if (byte === quote) isInText = !isInText
    else if (isInText) {
      if (byte === backslash) i += 1
    } else if (byte === 0x5b || byte === 0x7b) depth += 1
    else if (byte === 0x5d || byte === 0x7d) depth -= 1
    // The body itself is a level too.
    if (depth > depthMaximum + 1) {
      throw invalid('/body', `is nested deeper than ${depthMaximum} levels`)
    }
  }
}

function withPlainFields(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body
  if (isExactNumber(body)) return Number(body.rawJSON)
  for (const [name, value] of Object.entries(body)) {
    if (isExactNumber(value)) (body as Record<string, unknown>)[name] = Number(value.rawJSON)
  }
  return body
}

function isExactNumber(value: unknown): value is { rawJSON: string } {
  return JSON.isRawJSON(value)
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new ApiError('invalid_request', 'The body is not valid UTF-8.')
  }
}

function parse(text: string): unknown {
  try {
    return hasDelicateNumber.test(text) ? JSON.parse(text, exactNumbers()) : JSON.parse(text)
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('invalid_request', 'The body is not valid JSON.')
  }
}

/** A number of 16 or more digits, with an exponent, or with a fraction that ends in 0. */
const hasDelicateNumber = /(?:^|[[:,\s])-?(?:[\d.]{16}|[\d.]+[eE]|\d+\.\d*0(?!\d))/

function exactNumbers() {
  let exponentDigits = 0
  return (_key: string, value: unknown, context?: { source?: string }): unknown => {
    const source = context?.source
    if (typeof value !== 'number' || source === undefined) return value
    const [mantissa = '', exponent] = source.split(/[eE]/)
    if (!Number.isFinite(value) || (value === 0 && /[1-9]/.test(mantissa))) {
      throw invalid('/body', 'has a number that is too large or too small to be stored')
    }
    // 1e300 takes five characters here and three hundred in the database.
    if (exponent !== undefined) exponentDigits += Math.abs(Number(exponent))
    if (exponentDigits > exponentDigitsMaximum) {
      throw invalid('/body', 'has more digits in its numbers than can be stored')
    }
    return String(value) === source ? value : JSON.rawJSON(source)
  }
}

function checkValue(value: unknown, checkText: boolean): void {
  if (typeof value === 'string') {
    if (checkText) checkString(value)
  } else if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) {
      for (const item of value) checkValue(item, checkText)
      return
    }
    for (const key in value) {
      if (checkText) checkString(key)
      checkValue((value as Record<string, unknown>)[key], checkText)
    }
  }
}

function checkString(text: string): void {
  if (!isStorable(text)) {
    throw invalid('/body', 'has U+0000 or an unpaired surrogate, which cannot be stored')
  }
}

/** Whether PostgreSQL and URLs can represent a text. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}
