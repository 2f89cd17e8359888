import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import { hashOfKeyText, type KeyKind, kindOfKeyText } from './key-text.ts'
import type { RateLimit } from './rate-limit.ts'
import { findWorkingKey, touchKey } from './store.ts'

/** How long a key that worked is taken to work: a revoked one stops within 5 seconds everywhere. */
const trustedMilliseconds = 3_000

/** Keys in use at one time; more are looked up each time, and memory stays bounded. */
const trustedMaximum = 10_000

interface TrustedKey {
  projectId: number
  id: string
  kind: KeyKind
  until: number
}

/** Answers at once for a key that worked a moment ago, as most requests have one. */
export type FindKey = (text: string) => TrustedKey | Promise<TrustedKey | undefined> | undefined

/**
 * Looks keys up and remembers those that work for a few seconds, by their texts, as to hash one for
 * every request would cost more than all else here; what does not work is never remembered.
 */
export function keyFinder(sql: Sql): FindKey {
  const trusted = new Map<string, TrustedKey>()
  let forgottenAt = 0
  async function lookUp(text: string): Promise<TrustedKey | undefined> {
    const now = performance.now()
    const found = await findWorkingKey(sql, hashOfKeyText(text))
    if (!found) return undefined
    // When a key was last used is only told to the minute; failing to note it fails no request.
    if (found.isUseStale) touchKey(sql, found.projectId, found.id).catch(() => {})
    const key = { ...found, until: now + trustedMilliseconds }
    trusted.set(text, key)
    return key
  }
  return (text) => {
    const now = performance.now()
    if (now >= forgottenAt || trusted.size >= trustedMaximum) {
      trusted.clear()
      forgottenAt = now + trustedMilliseconds
    }
    const known = trusted.get(text)
    if (known && known.until > now) return known
    return kindOfKeyText(text) === undefined ? undefined : lookUp(text)
  }
}

/** Says whose request it is, before anything else of it is looked at: `projectId` and `keyId`. */
export function secretKeyAuthentication(findKey: FindKey, rateLimit: RateLimit | undefined) {
  function admit(request: FastifyRequest, key: TrustedKey | undefined): Record<string, string> {
    if (!key) {
      throw new ApiError('unauthorized', 'Send a working secret key: Authorization: Bearer sk_….', {
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    if (key.kind !== 'secret') {
      throw new ApiError('forbidden', 'This is a public key; the server API takes a secret key.')
    }
    request.projectId = key.projectId
    request.keyId = key.id
    return rateLimit?.(key.id) ?? {}
  }
  return (request: FastifyRequest): Record<string, string> | Promise<Record<string, string>> => {
    const text = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    const key = text === undefined ? undefined : findKey(text)
    return key instanceof Promise ? key.then((found) => admit(request, found)) : admit(request, key)
  }
}
