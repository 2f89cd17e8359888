import { invalid } from '../api-error.ts'

/** An instant of a URL, `2026-11-27` or `2026-11-27T22:58:33.120Z`, in the second form. */
export function instantOf(text: string, path: string): string {
  const isInstant = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/.test(text)
  const instant = new Date(isInstant ? text : Number.NaN)
  if (Number.isNaN(instant.getTime())) {
    throw invalid(path, 'is no instant, as in 2026-11-27T22:58:33.120Z')
  }
  return instant.toISOString()
}
