/*
 * What the browser gave, also where the page has put something else in its place. The build puts
 * these in for the globals of the same names (build.ts), in our code and in rrweb's.
 */

export type Realm = typeof globalThis

/** Put in by the build for the late script, which takes what the early one has found (script.ts). */
declare const LATE: boolean | undefined
const given = (globalThis as { lethe_realm?: Realm }).lethe_realm

const NEEDED =
  'JSON.stringify JSON.parse Date.now Math.random Map WeakMap Array.from Proxy fetch setTimeout ' +
  'Storage.setItem EventTarget.addEventListener Performance.now MutationObserver Node.childNodes'

/** The globals of this page, or those of a new frame where some are not the browser's own. */
export const realm: Realm = typeof LATE !== 'undefined' && LATE ? (given as Realm) : cleanRealm()

// biome-ignore lint/suspicious/noShadowRestrictedNames: they are the same, and only safer
export const { JSON, Date, Math } = realm

/** Of this very page: reactions to a promise of a frame that is gone never run. */
// biome-ignore lint/suspicious/noShadowRestrictedNames: the same
export const Promise = (async () => {})().constructor as PromiseConstructor

/** The frame is gone in the same task; it costs milliseconds, so that most pages never see one. */
function cleanRealm(): Realm {
  const page = globalThis as unknown as Record<string, Realm['Storage']>
  const isOwn = (path: string) => {
    const [of = '', name] = path.split('.')
    const owner = name ? (page[of] as Realm['Storage']) : page
    const prototype = owner.prototype as object | undefined
    const key = name ?? of
    return isNative(prototype && key in prototype ? prototype : owner, key, globalThis)
  }
  try {
    if (NEEDED.split(' ').every(isOwn)) return globalThis
    const frame = document.createElement('iframe')
    document.documentElement.append(frame)
    // Once the frame is gone its window has nothing any more; what was taken from it works.
    const taken = Object.getOwnPropertyDescriptors(frame.contentWindow)
    frame.remove()
    const realm: Record<string, unknown> = {}
    for (const name in taken) realm[name] = taken[name as never]?.value
    return (realm.JSON ? realm : globalThis) as unknown as Realm
  } catch {
    return globalThis
  }
}

/** A bound function and a proxy have no name in their text, and others no native code. */
export function isNative(owner: object, name: string, by = realm) {
  const { value, get } = Object.getOwnPropertyDescriptor(owner, name) ?? {}
  const text = by.Function.prototype.toString.call(value ?? get)
  return text.replace(/get |\s/g, '') === `function${name}(){[nativecode]}`
}

export const setTimeout = (run: () => void, milliseconds?: number): number =>
  (realm.setTimeout as unknown as Window['setTimeout']).call(window, run, milliseconds)

export const clearTimeout = (timer: number) => realm.clearTimeout.call(window, timer)
