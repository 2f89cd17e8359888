import { quiet } from '../quiet.ts'
import { listen } from '../recording/page-natives.ts'
import type { MoreOptions } from './more.ts'

const RENEW_MILLISECONDS = 30_000

/** Waits for what a recording is held back for, and keeps about the last minute until then. */
export function watchStart({ start = {}, platform, sessions, begin, renew }: MoreOptions) {
  const { on, minimumSeconds } = start
  let cancel = () => {}
  const ends: (() => void)[] = []
  const started = quiet(() => {
    cancel()
    begin()
  })
  if (on === 'error') {
    const again = () => {
      renew()
      cancel = platform.after(RENEW_MILLISECONDS, again)
    }
    cancel = platform.after(RENEW_MILLISECONDS, again)
    const failed = ({ message, reason }: ErrorEvent & PromiseRejectionEvent) => {
      if (typeof message === 'string' || reason !== undefined) started()
    }
    ends.push(listen(window, 'error', failed), listen(window, 'unhandledrejection', failed))
  } else if (minimumSeconds) {
    // The session may have begun on pages before, and another may follow it on this one.
    const look = () => {
      const identity = sessions.current()
      const left = identity ? identity.startedAt + minimumSeconds * 1000 - platform.now() : 1_000
      if (left <= 0) begin()
      cancel = platform.after(Math.max(left, 1_000), look)
    }
    look()
  }
  return () => {
    cancel()
    for (const end of ends) end()
  }
}
