import type { Lethe } from './api.ts'
import type { LoadMore, LoadRecorder } from './follow.ts'
import { createLethe } from './lethe.ts'
import { type Realm, realm } from './natives.ts'

/** Put in by the build: the hashes of the late files, which belong to this very one. */
declare const RECORDER_INTEGRITY: string
declare const MORE_INTEGRITY: string

interface Queued {
  /** What the page called before this script was there (snippet.html). */
  q?: [name: Exclude<keyof Lethe, 'version' | 'browserId'>, input: IArguments][]
  /** The snippet's policy, where the page may demand Trusted Types: a name is given out once. */
  t?: TrustedTypePolicy
}

declare global {
  var lethe: (Lethe & Queued) | undefined
  /** Where the late parts find what they are to take their natives from. */
  var lethe_realm: Realm | undefined
  var lethe_recorder: Awaited<ReturnType<LoadRecorder>> | undefined
  var lethe_more: Awaited<ReturnType<LoadMore>> | undefined
}

const script = document.currentScript as HTMLScriptElement | null
const address = script?.src ?? ''

/** A late part lies beside this script; it may run where this script may. */
function load<N extends 'recorder' | 'more'>(name: N, integrity: string) {
  type Part = NonNullable<(typeof globalThis)[`lethe_${N}`]>
  return new Promise<Part>((resolve, reject) => {
    const part = () => globalThis[`lethe_${name}`] as Part
    const done = () => resolve(part())
    if (part()) return done()
    globalThis.lethe_realm = realm
    const element = document.createElement('script')
    element.onload = done
    element.onerror = reject
    element.crossOrigin = 'anonymous'
    element.integrity = integrity
    element.nonce = script?.nonce ?? ''
    element.src = trusted(address.replace(/[^/]*$/, `${name}.js`))
    document.head.append(element)
  })
}

/** A page may demand that every script address has passed a policy (Trusted Types). */
function trusted(url: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes
  policy ??= types?.createPolicy('lethe', { createScriptURL: (each) => each })
  return policy?.createScriptURL(url) ?? url
}

interface TrustedTypePolicy {
  createScriptURL(url: string): string
}

interface TrustedTypes {
  createPolicy(name: string, rules: TrustedTypePolicy): TrustedTypePolicy
}

let policy = globalThis.lethe?.t
const queued = globalThis.lethe?.q ?? []
if (!globalThis.lethe?.version) {
  const lethe = createLethe(
    () => load('recorder', RECORDER_INTEGRITY),
    () => load('more', MORE_INTEGRITY),
    address.replace(/\/sdk\/[^/]*\/[^/]*$/, ''),
  )
  globalThis.lethe = lethe
  for (const [name, input] of queued) (lethe[name] as (...input: unknown[]) => void)(...input)
}
