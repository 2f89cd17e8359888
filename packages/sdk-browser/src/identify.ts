import { backoff } from './answer.ts'
import type { Platform } from './platform.ts'
import type { Server } from './request.ts'
import type { Sessions } from './sessions.ts'

/** One call of the application. It is sent for that call alone, and never again by the SDK. */
export interface IdentifyCall {
  userId: string
  userHash: string | undefined
  calledAt: number
}

/** A call older than this when a browser turns out retired may have come before the erasure. */
const STALE_MILLISECONDS = 10_000

export type Outcome = 'done' | 'stale' | 'retired' | 'stop' | 'another_browser'

/**
 * Tells the server who is using this browser. `another_browser`: the browser is somebody else's
 * already, and this call is to go with a new one. `retired`, `stale`: an erasure came between, and
 * only a new call of the application may name the person again.
 */
export async function sendIdentify(
  { userId, userHash, calledAt }: IdentifyCall,
  sessions: Sessions,
  server: Server,
  platform: Platform,
  halted: () => boolean,
): Promise<Outcome> {
  if (sessions.retiredAt() - calledAt > STALE_MILLISECONDS) return 'stale'
  const browserId = sessions.current()?.browserId
  for (let failures = 1; ; failures++) {
    const body = JSON.stringify({ browserId, userId, userHash })
    const { next, status, retryAfterSeconds } = await server.post('identify', body)
    if (halted()) return 'stop'
    if (next === 'stop') return 'stop'
    if (next === 'new_browser') return status === 410 ? 'retired' : 'another_browser'
    if (next === 'continue') return 'done'
    const wait = backoff(failures, retryAfterSeconds, platform.random())
    await new Promise<void>((resolve) => platform.after(wait, resolve))
    if (halted()) return 'stop'
  }
}
