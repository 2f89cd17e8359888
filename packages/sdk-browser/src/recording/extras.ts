import type { eventWithTime } from '@rrweb/types'
import { now } from './clock.ts'
import { onStyleSource } from './css-source.ts'
import { listen } from './page-natives.ts'
import type { Rrweb } from './rrweb.ts'
import { spyOnSetter, together } from './spies.ts'

/** What an element says whose sheet is turned off, which no attribute does. */
const OFF = 'not all'

let toggled: (event: Event) => void = () => {}

/** Follows the popovers of a document or a shadow root: the event neither bubbles nor leaves it. */
export const watchPopovers = (root: Node) =>
  listen(root, 'toggle', (event) => toggled(event), { capture: true })

/**
 * Records what rrweb does not see, as changes of attributes: style sheets whose text came late or
 * that are turned off, and popovers, which the page shows by a call. Returns how to end that.
 */
export function recordExtras(rrweb: () => Rrweb | undefined, emit: (event: eventWithTime) => void) {
  const change = (node: Node, attributes: Record<string, string | null>) => {
    const id = rrweb()?.mirror.getId(node) ?? -1
    if (id < 1) return
    const data = { source: 0, adds: [], removes: [], texts: [], attributes: [{ id, attributes }] }
    emit({ type: 3, data, timestamp: now() } as eventWithTime)
  }
  toggled = ({ target }) => {
    if (target instanceof HTMLElement && target.popover) {
      // The event comes later than what it tells of: the page may have moved it since, which hides it.
      change(target, { 'data-lethe-popover': target.matches(':popover-open') ? '' : null })
    }
  }
  onStyleSource((sheet) => {
    const css = rrweb()?.stringifyStylesheet(sheet)
    if (css && sheet.ownerNode) change(sheet.ownerNode, { _cssText: css })
  })
  const turned = (of: object) => {
    const { ownerNode, disabled } = of as CSSStyleSheet
    const element = (ownerNode ?? of) as HTMLStyleElement
    change(element, { media: disabled ? OFF : element.getAttribute('media') })
  }
  const owners = [StyleSheet, HTMLStyleElement, HTMLLinkElement]
  const end = together([
    watchPopovers(document),
    ...owners.map(({ prototype }) => spyOnSetter(prototype, 'disabled', turned)),
  ])
  return () => {
    end()
    onStyleSource(() => {})
  }
}
