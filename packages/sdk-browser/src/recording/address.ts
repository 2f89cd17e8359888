import type { eventWithTime } from '@rrweb/types'
import type { MaskingPreset } from '../api.ts'
import { maskTokens, maskUrl } from '../masking/url.ts'
import { now } from './clock.ts'

/**
 * Follows the routes of a single-page application: the address changes and no page is loaded. Each
 * new route, other than the first, is told to `routed`.
 */
export function createAddress(preset: MaskingPreset, routed: () => void) {
  let href = ''
  /** A snapshot contains the address itself. */
  const told = () => {
    if (href && routeOf(href) !== routeOf(location.href)) routed()
    href = location.href
  }
  return {
    told,
    /** An event with the page's address, if it has changed. */
    moved(): eventWithTime[] {
      if (href === location.href) return []
      told()
      const payload = { href: (preset === 'open' ? maskTokens : maskUrl)(href) }
      return [{ type: 5, data: { tag: 'lethe:url', payload }, timestamp: now() }]
    },
  }
}

/** An address without what changes within a page: its query, and the anchor it was scrolled to. */
const routeOf = (url: string) => url.replace(/\?[^#]*/, '').replace(/#(?![!/]).*/s, '')
