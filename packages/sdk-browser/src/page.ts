import { quiet } from './quiet.ts'

const ACTIONS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'scroll', 'touchstart']

/** Calls back whenever the visitor does something; answers how to end that. */
export function onActivity(act: () => void) {
  const options = { capture: true, passive: true }
  for (const action of ACTIONS) addEventListener(action, act, options)
  return () => {
    for (const action of ACTIONS) removeEventListener(action, act, options)
  }
}

export interface PageEvents {
  act(): void
  /** The page is hidden, or going away; `leaving` if that is all but certain. */
  hide(leaving: boolean): void
  /** The page came back out of the browser's memory (bfcache). */
  restore(): void
  online(): void
}

/** Listens to the page. No `unload`: it would keep the page out of the bfcache. */
export function onPage({ act, hide, restore, online }: PageEvents) {
  const hidden = quiet(() => document.visibilityState === 'hidden' && hide(false))
  const left = quiet(() => hide(true))
  const shown = quiet((event: PageTransitionEvent) => event.persisted && restore())
  const connected = quiet(online)
  document.addEventListener('visibilitychange', hidden)
  addEventListener('pagehide', left)
  addEventListener('pageshow', shown)
  addEventListener('online', connected)
  const endActivity = onActivity(quiet(act))
  return () => {
    document.removeEventListener('visibilitychange', hidden)
    removeEventListener('pagehide', left)
    removeEventListener('pageshow', shown)
    removeEventListener('online', connected)
    endActivity()
  }
}
