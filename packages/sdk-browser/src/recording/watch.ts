import type { Platform } from '../platform.ts'
import type { Sessions } from '../sessions.ts'
import { onPage } from './page.ts'
import type { Recording } from './recording.ts'

const TICK_MILLISECONDS = 5_000
const PAUSE_MILLISECONDS = 5 * 60_000
/** Pointer moves count once per second, not sixty times. */
const ACTION_MILLISECONDS = 1_000

export interface WatchOptions {
  platform: Platform
  sessions: Sessions
  recording: Recording
  /** Ensures that there is a session and records into it, after pending work. */
  recordAgain(): void
  /** Whether this tab records the same as the others. If not, it does from now on. */
  still(): boolean
  isDenied(): boolean
  /** The visitor has withdrawn consent in another tab. */
  forget(): void
}

/** Follows the visitor and the clock: pauses, ends of sessions, other tabs, leaving the page. */
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
      // No more ticks until the next action.
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
