import type { eventWithTime } from '@rrweb/types'
import { quiet } from '../quiet.ts'
import { elapsed, listen } from '../recording/page-natives.ts'
import type { MoreOptions } from './more.ts'
import type { Tell } from './signals.ts'

const RAGE_CLICKS = 3
const RAGE_MILLISECONDS = 1_000
const RAGE_PIXELS = 30
const DEAD_MILLISECONDS = 2_000

/** What promises to do something when clicked. */
const CONTROL =
  'a[href],button,summary,[role=button],[role=link],[role=menuitem],[role=tab],[role=switch],[onclick],input[type=button],input[type=submit]'
/** Where several clicks are usual, or what follows is not seen from here. */
const QUIET =
  'input:not([type=button],[type=submit]),textarea,select,canvas,video,audio,iframe,[contenteditable],[data-lethe-block],[data-lethe-ignore]'
/** Leads out of the page, or to a download: the page itself does not change. */
const LEAVING = 'a[href][target],a[download],a[href^="mailto:"],a[href^="tel:"],a[href^="sms:"]'

/** rrweb's sources of changes that are a reaction to a click: not the pointer, nor the selection. */
const ANSWERS = new Set<number>([0, 3, 4, 5, 7, 8, 13, 15])
/** What shows that something came of a click, though nothing changed in the page. */
const ACTIONS = ['submit', 'invalid', 'popstate', 'hashchange', 'copy', 'fullscreenchange']

interface Click {
  at: number
  x: number
  y: number
}

/**
 * Tells of rage clicks (three in a second on one place) and of dead ones: on a control, and then
 * for two seconds no change of the page, no request and no navigation.
 */
export function watchClicks(
  { platform, idOf }: Pick<MoreOptions, 'platform' | 'idOf'>,
  tell: Tell,
) {
  let row: Click[] = []
  let actedAt = 0
  const waiting = new Set<() => void>()

  const say = (kind: 'rage' | 'dead', node: Node) => {
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
  const awaitAnswer = (control: Element, event: MouseEvent) => {
    const at = elapsed()
    const cancel = platform.after(DEAD_MILLISECONDS, () => {
      waiting.delete(cancel)
      if (actedAt < at && !isFollowed(control, event)) say('dead', control)
    })
    waiting.add(cancel)
  }
  const clicked = quiet((event: MouseEvent) => {
    const target = event.composedPath()[0]
    // Keys click too.
    if (!event.isTrusted || !event.detail || !(target instanceof Element)) return
    if (target.closest(QUIET)) return
    if (isRage(event)) say('rage', target)
    const control = target.closest(CONTROL)
    if (control && !control.matches(LEAVING)) awaitAnswer(control, event)
  })
  const act = () => {
    actedAt = elapsed()
  }
  const options = { capture: true, passive: true }
  const ends = [
    listen(window, 'click', clicked, options),
    ...ACTIONS.map((type) => listen(window, type, act, options)),
    // Of the window itself: a dialog, another window. One of a field is a change of focus.
    listen(window, 'blur', ({ target }) => target === window && act(), options),
  ]
  return {
    act,
    seen(event: eventWithTime) {
      if (event.type === 3 && ANSWERS.has(event.data.source)) act()
    },
    end() {
      for (const end of [...ends, ...waiting]) end()
    },
  }
}

/** Whether the browser itself follows a link: a slow page is no dead link. */
function isFollowed(control: Element, { defaultPrevented }: MouseEvent) {
  const href = control instanceof HTMLAnchorElement ? control.href : ''
  const here = location.href.replace(/#.*/s, '')
  return Boolean(href) && !defaultPrevented && /^https?:/.test(href) && !href.startsWith(`${here}#`)
}
