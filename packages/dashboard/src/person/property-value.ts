/*
 * A property's value as text to be edited, and back. The rules are the API's: any JSON value, but
 * null, which there means "remove this key".
 */

import { isNumber, parseExactly } from '@lethe/contract/exact-json.ts'

export const kinds = ['text', 'number', 'boolean', 'json'] as const
export type Kind = (typeof kinds)[number]

export const kindNames: Record<Kind, string> = {
  text: 'Text',
  number: 'Number',
  boolean: 'True/false',
  json: 'JSON',
}

export function kindOf(value: unknown): Kind {
  if (typeof value === 'string') return 'text'
  if (isNumber(value)) return 'number'
  if (typeof value === 'boolean') return 'boolean'
  return 'json'
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}

export type Parsed = { value: unknown } | { error: string }

export function parse(kind: Kind, text: string): Parsed {
  switch (kind) {
    case 'text':
      return { value: text }
    case 'boolean':
      return { value: text === 'true' }
    case 'number':
      return parseNumber(text.trim())
    case 'json':
      return parseJson(text)
  }
}

function parseNumber(text: string): Parsed {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) {
    return { error: 'Enter a number, for example 12, -0.5 or 1e6.' }
  }
  if (!Number.isFinite(Number(text))) return { error: 'This number is too large.' }
  const value = parseExactly(text)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return { error: 'This browser can’t store whole numbers above 2⁵³ exactly. Store it as text.' }
  }
  return { value }
}

function parseJson(text: string): Parsed {
  try {
    const value = parseExactly(text)
    if (value === null) return { error: 'null removes the key. Use “Remove” instead.' }
    return { value }
  } catch {
    return { error: 'This is not valid JSON.' }
  }
}

/** What is wrong with a new key; undefined: nothing. Characters are Unicode code points. */
export function keyError(key: string, taken: readonly string[]): string | undefined {
  const length = [...key].length
  if (length < 1 || length > 200) return 'A key must have 1 to 200 characters.'
  if (key.includes('\0') || !key.isWellFormed()) return 'A key can’t contain this character.'
  return taken.includes(key) ? 'A property with this key already exists.' : undefined
}
