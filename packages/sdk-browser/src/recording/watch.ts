import type { Platform } from '../platform.ts'
import type { Sessions } from '../sessions.ts'
import { onPage } from './page.ts'
import type { Recording } from './recording.ts'

const TICK_MILLISECONDS = 5_000
const PAUSE_MILLISECONDS = 5 * 60_000
/** Moving the pointer is one action, not sixty a second. */
const ACTION_MILLISECONDS = 1_000

export interface WatchOptions {
  platform: Platform
  sessions: Sessions
  recording: Recording
  /** Makes sure of the session and records into it, after what is under way. */
  recordAgain(): void
  /** Whether this tab still records as the others do; if not, it does from now on. */
  still(): boolean
  isDenied(): boolean
  /** Another tab has taken back the visitor's consent. */
  forget(): void
}

/** Follows the visitor and the clock: pauses, ends of sessions, other tabs, the page's end. */
export function watch(options: WatchOptions, listen = onPage) {
  const { platform, sessions, recording, recordAgain, still } = options
  let actedAt = platform.now()
  let cancelTick: (() => void) | undefined

  const tick = () => {
    cancelTick = undefined
    if (options.isDenied()) return options.forget()
    still()
    sessions.save()
    if (platform.now() - actedAt >= PAUSE_MILLISECONDS) {
      // No more ticks until somebody does something.
      recording.pause('idle')
      recording.flush()
      return
    }
    const isOther = sessions.current()?.sessionId !== recording.session()
    if (recording.state() === 'on' && (isOther || sessions.isOver())) recordAgain()
    schedule()
  }
  const schedule = () => {
    cancelTick ??= platform.after(TICK_MILLISECONDS, tick)
  }
  const endPage = listen({
    act() {
      const now = platform.now()
      if (now - actedAt < ACTION_MILLISECONDS) return
      actedAt = now
      schedule()
      still()
      if (recording.state() === 'idle' || sessions.isOver()) recordAgain()
      else sessions.touch()
    },
    hide(leaving) {
      recording.finish()
      sessions.save()
      recording.hide(leaving)
    },
    restore() {
      recording.show()
      if (recording.state() !== 'on') return
      recording.pause()
      recordAgain()
    },
    store: () => void (options.isDenied() ? options.forget() : still()),
    online: () => recording.wake(),
  })
  schedule()
  return () => {
    endPage()
    cancelTick?.()
  }
}
