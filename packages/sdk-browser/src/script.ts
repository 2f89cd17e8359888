import type { Lethe } from './api.ts'
import type { LoadRecorder } from './follow.ts'
import { createLethe } from './lethe.ts'

/** Put in by the build: the hash of recorder.js, which belongs to this very file. */
declare const RECORDER_INTEGRITY: string

interface Queued {
  /** What the page called before this script was there (snippet.html). */
  q?: [name: Exclude<keyof Lethe, 'version'>, input: IArguments][]
  /** The snippet's policy, where the page may demand Trusted Types: a name is given out once. */
  t?: TrustedTypePolicy
}

declare global {
  var lethe: (Lethe & Queued) | undefined
  var letheRecorder: Awaited<ReturnType<LoadRecorder>> | undefined
}

const script = document.currentScript as HTMLScriptElement | null

/** The recorder lies beside this script; it may run where this script may. */
function loadRecorder() {
  return new Promise<Awaited<ReturnType<LoadRecorder>>>((resolve, reject) => {
    if (globalThis.letheRecorder) return resolve(globalThis.letheRecorder)
    const element = document.createElement('script')
    element.onload = () => (globalThis.letheRecorder ? resolve(globalThis.letheRecorder) : reject())
    element.onerror = reject
    element.crossOrigin = 'anonymous'
    element.integrity = RECORDER_INTEGRITY
    element.nonce = script?.nonce ?? ''
    element.src = trusted((script?.src ?? '').replace(/[^/]*$/, 'recorder.js'))
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
  globalThis.lethe = createLethe(loadRecorder, script?.src.replace(/\/sdk\/[^/]*\/[^/]*$/, ''))
  for (const [name, input] of queued) {
    const call = globalThis.lethe[name] as (...input: unknown[]) => void
    call(...input)
  }
}
