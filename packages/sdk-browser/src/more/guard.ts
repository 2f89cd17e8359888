import type { Pages } from '../api.ts'
import { rememberedConsent } from '../consent.ts'
import type { Asked } from '../lethe.ts'
import { quiet } from '../quiet.ts'
import { listen } from '../recording/page-natives.ts'
import { spy } from '../recording/spies.ts'
import { shareByCookie } from './cookie.ts'

const checks = new WeakMap<Asked, () => void>()

/**
 * Starts and stops recording as `options.start` says. In a single-page application, recording stops
 * within the call that changes the URL.
 */
export function guard(asked: Asked, begin: () => void, end: () => void) {
  // Recording was stopped while this code was loading.
  if (asked.isStarted === false) return
  const check = checks.get(asked) ?? createCheck(asked, begin, end)
  checks.set(asked, check)
  const { only, never } = asked.options.start ?? {}
  if ((only || never) && !asked.unguard) {
    const ends = [
      ...['pushState', 'replaceState'].map((name) => spy(History.prototype, name, check)),
      ...['popstate', 'hashchange'].map((type) => listen(window, type, check, { capture: true })),
    ]
    asked.unguard = () => {
      for (const each of ends) each()
      delete asked.unguard
    }
  }
  check()
}

function createCheck(asked: Asked, begin: () => void, end: () => void) {
  const { options, platform, key } = asked
  const { on, only, never } = options.start ?? {}
  if (options.cookieDomain) shareByCookie(platform, options.cookieDomain, key)
  return quiet(() => {
    const isHere = !never?.some(isOn) && (!only || only.some(isOn))
    // The cookie may hold a choice made on another subdomain.
    const isDenied = rememberedConsent(platform.shared) === 'denied'
    if (isHere && !isDenied && (on !== 'call' || asked.isStarted)) begin()
    else end()
  })
}

function isOn(page: Pages[number]) {
  const { href, origin } = location
  if (typeof page !== 'string')
    return new RegExp(page.source, page.flags.replace('g', '')).test(href)
  return href.startsWith(page[0] === '/' ? origin + page : page)
}
