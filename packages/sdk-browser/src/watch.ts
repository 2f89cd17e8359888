import { rememberedConsent } from './consent.ts'
import type { PageEvents } from './page.ts'
import type { Platform } from './platform.ts'
import type { Recording } from './recording/recording.ts'
import type { Sessions } from './sessions.ts'

const TICK_MILLISECONDS = 5_000
const PAUSE_MILLISECONDS = 5 * 60_000
/** Moving the pointer is one action, not sixty a second. */
const ACTION_MILLISECONDS = 1_000

export interface WatchOptions {
  platform: Platform
  onPage(events: PageEvents): () => void
  sessions: Sessions
  /** Nothing until the late part is there. */
  recording(): Recording | undefined
  /** Makes sure of the session and records into it, after what is under way. */
  recordAgain(): void
  /** Another tab has taken back the visitor's consent. */
  forget(): void
}

/** Follows the visitor and the clock: pauses, ends of sessions, other tabs, the page's end. */
export function watch(options: WatchOptions) {
  const { platform, sessions, recording, recordAgain } = options
  let actedAt = platform.now()
  let cancelTick: (() => void) | undefined

  const tick = () => {
    cancelTick = undefined
    if (rememberedConsent(platform.shared) === 'denied') return options.forget()
    sessions.save()
    if (platform.now() - actedAt >= PAUSE_MILLISECONDS) {
      // No more ticks until somebody does something.
      recording()?.pause('idle')
      recording()?.flush()
      return
    }
    const isOther = sessions.current()?.sessionId !== recording()?.session()
    if (recording()?.state() === 'on' && (isOther || sessions.isOver())) recordAgain()
    schedule()
  }
  const schedule = () => {
    cancelTick ??= platform.after(TICK_MILLISECONDS, tick)
  }
  const endPage = options.onPage({
    act() {
      const now = platform.now()
      if (now - actedAt < ACTION_MILLISECONDS) return
      actedAt = now
      schedule()
      if (recording()?.state() === 'idle' || sessions.isOver()) recordAgain()
      else sessions.touch()
    },
    hide(leaving) {
      recording()?.finish()
      sessions.save()
      recording()?.hide(leaving)
    },
    restore() {
      recording()?.show()
      if (recording()?.state() === 'on') recordAgain()
    },
    online: () => recording()?.wake(),
  })
  schedule()
  return () => {
    endPage()
    cancelTick?.()
  }
}
