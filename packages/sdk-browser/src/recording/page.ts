import { quiet } from '../quiet.ts'
import { listen, together } from './page-natives.ts'

const ACTIONS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'scroll', 'touchstart']

export interface PageEvents {
  act(): void
  /** The page is hidden or being left; `leaving` if the latter is almost certain. */
  hide(leaving: boolean): void
  /** The page was restored from the back/forward cache (bfcache). */
  restore(): void
  online(): void
  /** Another tab has written to the storage. */
  store(): void
}

/** Listens to the page. Not to `unload`, which would keep the page out of the bfcache. */
export function onPage({ act, hide, restore, online, store }: PageEvents) {
  const ends = [
    listen(
      document,
      'visibilitychange',
      quiet(() => document.visibilityState === 'hidden' && hide(false)),
    ),
    listen(
      window,
      'pagehide',
      quiet(() => hide(true)),
    ),
    listen(
      window,
      'pageshow',
      quiet((event: PageTransitionEvent) => event.persisted && restore()),
    ),
    listen(window, 'online', quiet(online)),
    listen(window, 'storage', quiet(store)),
  ]
  const options = { capture: true, passive: true }
  for (const action of ACTIONS) ends.push(listen(window, action, quiet(act), options))
  return together(ends)
}
