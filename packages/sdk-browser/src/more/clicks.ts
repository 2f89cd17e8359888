import type { eventWithTime } from '@rrweb/types'
import { quiet } from '../quiet.ts'
import { elapsed, listen } from '../recording/page-natives.ts'
import type { MoreOptions } from './more.ts'
import type { Tell } from './signals.ts'

const RAGE_CLICKS = 3
const RAGE_MILLISECONDS = 1_000
const RAGE_PIXELS = 30
const DEAD_MILLISECONDS = 2_000

/** Elements that users expect to do something when clicked. */
const CONTROL =
  'a[href],button,summary,[role=button],[role=link],[role=menuitem],[role=tab],[role=switch],[onclick],input[type=button],input[type=submit]'
/** Elements that are often clicked repeatedly, or whose reaction can't be observed. */
const QUIET =
  'input:not([type=button],[type=submit]),textarea,select,canvas,video,audio,iframe,[contenteditable],[data-lethe-block],[data-lethe-ignore]'
/** Links that leave the page or start a download: the page itself does not change. */
const LEAVING = 'a[href][target],a[download],a[href^="mailto:"],a[href^="tel:"],a[href^="sms:"]'

/** The rrweb sources that count as a reaction to a click: not the pointer or the selection. */
const REACTIONS = new Set<number>([0, 3, 4, 5, 7, 8, 13, 15])
/** Events that show a reaction to a click even if the page does not change. */
const ACTIONS = ['submit', 'invalid', 'popstate', 'hashchange', 'copy', 'fullscreenchange']

interface Click {
  at: number
  x: number
  y: number
}

/**
 * Reports rage clicks (three within a second in one place) and dead clicks (on a control, followed
 * by two seconds without a page change, request or navigation).
 */
export function watchClicks(
  { platform, idOf }: Pick<MoreOptions, 'platform' | 'idOf'>,
  tell: Tell,
) {
  let row: Click[] = []
  let actedAt = 0
  const waiting = new Set<() => void>()

  const report = (kind: 'rage' | 'dead', node: Node) => {
    const id = idOf(node)
    if (id > 0) tell('lethe.click', { kind, id })
  }
  const isRage = ({ clientX: x, clientY: y }: MouseEvent) => {
    const at = elapsed()
    const isNear = (each: Click) =>
      at - each.at < RAGE_MILLISECONDS && Math.hypot(each.x - x, each.y - y) < RAGE_PIXELS
    row = [...row.filter(isNear), { at, x, y }]
    return row.length === RAGE_CLICKS && document.getSelection()?.isCollapsed !== false
  }
  const awaitReaction = (control: Element, event: MouseEvent) => {
    const at = elapsed()
    const cancel = platform.after(DEAD_MILLISECONDS, () => {
      waiting.delete(cancel)
      if (actedAt < at && !isFollowed(control, event)) report('dead', control)
    })
    waiting.add(cancel)
  }
  const clicked = quiet((event: MouseEvent) => {
    const target = event.composedPath()[0]
    // The keyboard also causes click events, with a detail of 0.
    if (!event.isTrusted || !event.detail || !(target instanceof Element)) return
    if (target.closest(QUIET)) return
    if (isRage(event)) report('rage', target)
    const control = target.closest(CONTROL)
    if (control && !control.matches(LEAVING)) awaitReaction(control, event)
  })
  const act = () => {
    actedAt = elapsed()
  }
  const options = { capture: true, passive: true }
  const ends = [
    listen(window, 'click', clicked, options),
    ...ACTIONS.map((type) => listen(window, type, act, options)),
    // The window loses focus to a dialog or another window. On a field, blur only moves the focus.
    listen(window, 'blur', ({ target }) => target === window && act(), options),
  ]
  return {
    act,
    seen(event: eventWithTime) {
      if (event.type === 3 && REACTIONS.has(event.data.source)) act()
    },
    end() {
      for (const end of [...ends, ...waiting]) end()
    },
  }
}

/** Whether the browser follows the link itself: a slow page is not a dead click. */
function isFollowed(control: Element, { defaultPrevented }: MouseEvent) {
  const href = control instanceof HTMLAnchorElement ? control.href : ''
  const here = location.href.replace(/#.*/s, '')
  return Boolean(href) && !defaultPrevented && /^https?:/.test(href) && !href.startsWith(`${here}#`)
}
