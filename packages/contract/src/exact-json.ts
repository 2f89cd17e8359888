// Standard since 2024, but not yet in TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): unknown
    isRawJSON(value: unknown): boolean
  }
}

/**
 * Like JSON.parse, but keeps a number that a double would change as written, in a `JSON.rawJSON` value,
 * which `JSON.stringify` prints exactly. In browsers without rawJSON it becomes the nearest double.
 */
export function parseExactly(text: string): unknown {
  if (typeof JSON.rawJSON !== 'function') return JSON.parse(text)
  const revive = (_key: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source
    const isExact = typeof value !== 'number' || source === undefined || String(value) === source
    return isExact ? value : JSON.rawJSON(source)
  }
  return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
}

/** Whether a value that parseExactly returned is a number. */
export function isNumber(value: unknown): boolean {
  return typeof value === 'number' || (JSON.isRawJSON?.(value) ?? false)
}
