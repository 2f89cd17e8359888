// The standard has these since 2024; the compiler's library does not know them yet.
declare global {
  interface JSON {
    rawJSON(text: string): unknown
    isRawJSON(value: unknown): boolean
  }
}

/**
 * As JSON.parse, with each number that a double would change kept as it was written: such a value
 * is one of `JSON.rawJSON`, which `JSON.stringify` prints back digit by digit. In a browser that
 * does not know those yet it is the nearest double.
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
