import type { Next } from '@lethe/contract/ingest.ts'

/** What the server said to a request, or `status` 0 where nothing came back. */
export interface Answer {
  status: number
  next: Next
  /** How long the server wants to be left alone at least. */
  retrySeconds: number
  body: Record<string, unknown>
}

export const unanswered: Answer = { status: 0, next: 'retry', retrySeconds: 0, body: {} }

/** Reads a response, also one that is not the server's own (a proxy's error page). */
export async function readAnswer(response: Response): Promise<Answer> {
  const { status } = response
  const body = await response.json().catch(() => undefined)
  const seconds = Number(body?.retryAfterSeconds ?? response.headers.get('retry-after'))
  return {
    status,
    next: NEXTS.find((next) => next === body?.next) ?? nextByStatus(status),
    retrySeconds: Math.min(seconds, 3600) || 0,
    body: body ?? {},
  }
}

const NEXTS: Next[] = ['continue', 'retry', 'new_browser', 'stop']

/** A 2xx that does not say `next` did not come from Lethe, so what was sent is not confirmed. */
function nextByStatus(status: number): Next {
  if (status === 410) return 'new_browser'
  if (status === 401 || status === 403) return 'stop'
  if (status < 400 || status >= 500 || /4(0[89]|2[59])/.test(`${status}`)) return 'retry'
  return 'continue'
}

const FIRST_WAIT_MILLISECONDS = 1_000
const WAIT_MAXIMUM_MILLISECONDS = 60_000

/** How long to wait after the nth failure in a row (from 1): doubled each time, half of it chance. */
export function backoff(failures: number, retrySeconds: number, random: number) {
  const ceiling = Math.min(FIRST_WAIT_MILLISECONDS * 2 ** failures, WAIT_MAXIMUM_MILLISECONDS)
  return Math.max(ceiling / 2, retrySeconds * 1000) + (random * ceiling) / 2
}
