import type { eventWithTime } from '@rrweb/types'
import { now } from './clock.ts'
import { onStyleSource } from './css-source.ts'
import { listen } from './page-natives.ts'
import type { Rrweb } from './rrweb.ts'

/**
 * Records what rrweb does not see, as changes of attributes: style sheets whose text came late, and
 * popovers, which the page shows by a call. Returns how to end that.
 */
export function recordExtras(rrweb: () => Rrweb | undefined, emit: (event: eventWithTime) => void) {
  const change = (node: Node, attributes: Record<string, string | null>) => {
    const id = rrweb()?.mirror.getId(node) ?? -1
    if (id < 1) return
    const data = { source: 0, adds: [], removes: [], texts: [], attributes: [{ id, attributes }] }
    emit({ type: 3, data, timestamp: now() } as eventWithTime)
  }
  const toggled = ({ target }: Event) => {
    if (target instanceof HTMLElement && target.popover) {
      // The event comes later than what it tells of: the page may have moved it since, which hides it.
      change(target, { 'data-lethe-popover': target.matches(':popover-open') ? '' : null })
    }
  }
  onStyleSource((sheet) => {
    const css = rrweb()?.stringifyStylesheet(sheet)
    if (css && sheet.ownerNode) change(sheet.ownerNode, { _cssText: css })
  })
  // It does not bubble.
  const end = listen(document, 'toggle', toggled, { capture: true })
  return () => {
    end()
    onStyleSource(() => {})
  }
}
