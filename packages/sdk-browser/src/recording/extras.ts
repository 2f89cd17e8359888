import type { eventWithTime } from '@rrweb/types'
import { now } from './clock.ts'
import { onStyleSource } from './css-source.ts'
import { listen, together } from './page-natives.ts'
import type { Rrweb } from './rrweb.ts'
import { spyOnSetter } from './spies.ts'

/** The `media` recorded for an element whose sheet is disabled: no attribute says so. */
const OFF = 'not all'

let toggled: (event: Event) => void = () => {}

/** Follows the popovers of a document or shadow root: `toggle` neither bubbles nor leaves it. */
export const watchPopovers = (root: Node) =>
  listen(root, 'toggle', (event) => toggled(event), { capture: true })

/**
 * Records what rrweb does not see as attribute changes: style sheets whose text loaded late or that
 * are disabled, and popovers, which the page shows by a call. Returns a function that ends this.
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
      // The event comes late: the page may have moved the popover since, which hides it.
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
