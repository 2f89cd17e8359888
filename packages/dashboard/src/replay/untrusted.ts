/* Reads values of any type. */

/** The longest time from the first event to another, in milliseconds: no session is longer. */
export const spanMaximum = 26 * 3_600_000

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function finite(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** IDs are integers; rrweb uses -1 for a missing node. */
export function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1
}

/** Maps the records of a list with `read`, without those it returns undefined for. */
export function listOf<T>(
  list: unknown,
  read: (record: Record<string, unknown>) => T | undefined,
): T[] {
  if (!Array.isArray(list)) return []
  const kept: T[] = []
  for (const record of list) {
    const item = isRecord(record) ? read(record) : undefined
    if (item !== undefined) kept.push(item)
  }
  return kept
}
