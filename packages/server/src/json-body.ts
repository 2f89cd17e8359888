import { ApiError, invalid } from './api-error.ts'

// The standard has it since V8 11.4; the compiler's library does not know it yet.
declare global {
  interface JSON {
    rawJSON(text: string): unknown
    isRawJSON(value: unknown): boolean
  }
}

/** The levels properties may nest, the properties object itself being the first. */
const depthMaximum = 20

/** The digits PostgreSQL may have to write out for exponents: more would not fit the stored maximum. */
const exponentDigitsMaximum = 262_144

/** The entries an object or list of the first two levels may have: what is stored has 1,000. */
const entriesMaximum = 10_000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A list or object that is only passed on: its JSON text, checked and never parsed here. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Prints a value that parseJsonBody answered, or that was read of it by readLargeJsonBody. */
export function jsonOf(value: unknown): string {
  return value instanceof JsonText ? value.text : JSON.stringify(value)
}

/**
 * Reads a JSON body. Numbers that a double would change are kept as they were written (they become
 * `JSON.rawJSON` values, which `JSON.stringify` prints back exactly); a number beyond the range of
 * a double is refused, as it would turn into null, which in this API means "remove".
 */
export function parseJsonBody(bytes: Buffer): unknown {
  const text = decode(bytes)
  const value = parse(text)
  // What a body may hold besides well-formed text can only have come in as an escape.
  checkValue(value, 0, /\\u(?:0000|[dD][89a-fA-F])/.test(text))
  return value
}

/**
 * As parseJsonBody, with every list and object below the first two levels as its text: so little
 * is left of a large body that another thread can hand it over at once.
 */
export function condenseJsonBody(bytes: Buffer): unknown {
  return condense(parseJsonBody(bytes), 0)
}

function condense(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 2) return new JsonText(JSON.stringify(value))
  const entries = Object.entries(value)
  if (entries.length > entriesMaximum) {
    throw invalid('/body', `has an object or list of more than ${entriesMaximum} entries`)
  }
  const condensed = entries.map(([key, one]) => [key, condense(one, depth + 1)] as const)
  if (Array.isArray(value)) return condensed.map(([, one]) => one)
  return Object.fromEntries(condensed)
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

/** A number of 16 digits and more, or with an exponent, somewhere that is not within a word. */
const hasDelicateNumber = /(?:^|[[:,\s])-?(?:[\d.]{16}|[\d.]+[eE])/

function exactNumbers() {
  let exponentDigits = 0
  return (_key: string, value: unknown, context?: { source?: string }): unknown => {
    const source = context?.source
    if (typeof value !== 'number' || source === undefined) return value
    const [mantissa = '', exponent] = source.split(/[eE]/)
    if (!Number.isFinite(value) || (value === 0 && /[1-9]/.test(mantissa))) {
      throw invalid('/body', 'has a number outside of what can be stored')
    }
    // 1e300 takes five characters here and three hundred in the database.
    if (exponent !== undefined) exponentDigits += Math.abs(Number(exponent))
    if (exponentDigits > exponentDigitsMaximum) {
      throw invalid('/body', 'has more digits in its numbers than can be stored')
    }
    return String(value) === source ? value : JSON.rawJSON(source)
  }
}

function checkValue(value: unknown, depth: number, checkText: boolean): void {
  if (typeof value === 'string') {
    if (checkText) checkString(value)
  } else if (typeof value === 'object' && value !== null) {
    if (depth > depthMaximum) {
      throw invalid('/body', `is nested deeper than ${depthMaximum} levels`)
    }
    if (Array.isArray(value)) {
      for (const item of value) checkValue(item, depth + 1, checkText)
      return
    }
    for (const key in value) {
      if (checkText) checkString(key)
      checkValue((value as Record<string, unknown>)[key], depth + 1, checkText)
    }
  }
}

function checkString(text: string): void {
  if (!isStorable(text)) {
    throw invalid('/body', 'has U+0000 or an unpaired surrogate, which cannot be stored')
  }
}

/** Whether a text can go to PostgreSQL and through a URL and come back unchanged. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}
