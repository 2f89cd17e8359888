/* Reading values that may be anything at all. */

/** Further from the first event than a session can last, in milliseconds. */
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

/** Ids are whole numbers; -1 is rrweb's word for a node that is not there. */
export function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1
}

/** The records of a list that `read` makes something of. */
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
