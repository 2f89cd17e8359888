import type { eventWithTime } from '@rrweb/types'
import type { MaskingPreset } from '../api.ts'
import { maskTokens, maskUrl } from '../masking/url.ts'
import { now } from './clock.ts'

/**
 * Follows the routes of a single-page application, whose address changes without a page load. Calls
 * `routed` for each new route except the first.
 */
export function createAddress(preset: MaskingPreset, routed: () => void) {
  let href = ''
  /** Call it after a snapshot, which contains the address. */
  const noted = () => {
    if (href && routeOf(href) !== routeOf(location.href)) routed()
    href = location.href
  }
  return {
    noted,
    /** An event with the page's address, if it has changed. */
    moved(): eventWithTime[] {
      if (href === location.href) return []
      noted()
      const payload = { href: (preset === 'open' ? maskTokens : maskUrl)(href) }
      return [{ type: 5, data: { tag: 'lethe:url', payload }, timestamp: now() }]
    },
  }
}

/** An address without the parts that change within a page: the query and a scroll anchor. */
const routeOf = (url: string) => url.replace(/\?[^#]*/, '').replace(/#(?![!/]).*/s, '')
