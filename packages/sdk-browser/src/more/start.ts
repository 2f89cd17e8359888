import { quiet } from '../quiet.ts'
import { listen } from '../recording/page-natives.ts'
import type { MoreOptions } from './more.ts'

const RENEW_MILLISECONDS = 30_000

/** Starts sending a held recording once its condition is met. Holds about a minute until an error. */
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
    // The session may have started on an earlier page, and another may start on this one.
    const check = () => {
      const identity = sessions.current()
      const left = identity ? identity.startedAt + minimumSeconds * 1000 - platform.now() : 1_000
      if (left <= 0) begin()
      cancel = platform.after(Math.max(left, 1_000), check)
    }
    check()
  }
  return () => {
    cancel()
    for (const end of ends) end()
  }
}
