import type { Platform } from '../platform.ts'
import { warn } from '../quiet.ts'
import type { Store } from '../storage.ts'

const AGE_SECONDS = 365 * 86_400

/**
 * Stores the state that tabs share in cookies of a domain, so that its subdomains are one browser.
 * Moves this origin's existing state there. Changes nothing if the browser rejects such a cookie.
 */
export function shareByCookie(platform: Platform, domain: string, key: string) {
  const cookies = cookieStore(domain)
  const before = platform.shared
  cookies.set('lethe', 'x')
  if (cookies.get('lethe') !== 'x') return warn(`no cookies for ${domain}`)
  cookies.remove('lethe')
  for (const name of [`lethe.${key}`, `lethe.next.${key}`, 'lethe.consent']) {
    const value = before.get(name)
    const isNew = !cookies.get(`lethe.${key}`) || name === 'lethe.consent'
    if (value !== undefined && isNew && !cookies.get(name)) cookies.set(name, value)
    if (name !== 'lethe.consent') before.remove(name)
  }
  platform.shared = cookies
}

function cookieStore(domain: string): Store {
  const write = (name: string, value: string, seconds: number) => {
    const secure = location.protocol === 'https:' ? ';secure' : ''
    const kept = `domain=${domain};path=/;max-age=${seconds};samesite=lax${secure}`
    // biome-ignore lint/suspicious/noDocumentCookie: only Chromium has the Cookie Store API, and it is asynchronous
    document.cookie = `${name}=${encodeURIComponent(value)};${kept}`
  }
  return {
    get(name) {
      const start = `${name}=`
      const found = document.cookie.split('; ').find((each) => each.startsWith(start))
      return found === undefined ? undefined : decodeURIComponent(found.slice(start.length))
    },
    set: (name, value) => write(name, value, AGE_SECONDS),
    remove: (name) => write(name, '', 0),
  }
}
