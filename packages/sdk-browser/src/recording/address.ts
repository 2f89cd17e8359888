import type { eventWithTime } from '@rrweb/types'
import type { MaskingPreset } from '../api.ts'
import { maskUrl } from '../masking/url.ts'

/** Follows the routes of a single-page application: the address changes and no page is loaded. */
export function createAddress(preset: MaskingPreset) {
  let href = ''
  return {
    /** A snapshot tells the address itself. */
    told() {
      href = location.href
    },
    /** An event that says where the page is now, where that is new. */
    moved(): eventWithTime[] {
      if (href === location.href) return []
      href = location.href
      const payload = { href: preset === 'open' ? href : maskUrl(href) }
      return [{ type: 5, data: { tag: 'lethe:url', payload }, timestamp: Date.now() }]
    },
  }
}
