import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { networkOf } from '../http/network.ts'
import type { Sql } from '../sql.ts'
import { hashOfKeyText, type KeyKind, kindOfKeyText } from './key-text.ts'
import { limitPer, type RateLimit } from './rate-limit.ts'
import { findWorkingKey, touchKey } from './store.ts'

/** How long a working key is cached: a revoked one stops within 5 seconds on every process. */
const trustedMilliseconds = 3_000

/** The maximum number of cached keys. */
const trustedMaximum = 10_000

interface TrustedKey {
  projectId: number
  id: string
  kind: KeyKind
  until: number
}

/** How long a key that worked is exempt from the limit per address. */
const familiarMilliseconds = 3_600_000

/**
 * Returns a cached key without a promise, for speed. Throws rate_limited if too many requests from
 * this address had no key or an unknown one.
 */
export type FindKey = (
  text: string | undefined,
  address: string,
) => TrustedKey | Promise<TrustedKey | undefined> | undefined

/**
 * Looks keys up and caches working ones for a few seconds, by their texts: hashing a key for every
 * request would cost more than all the rest.
 */
export function keyFinder(sql: Sql, unknownKeysPerSecond = 0): FindKey {
  const trusted = new Map<string, TrustedKey>()
  // By text, so that guesses from an address do not block the keys in use there.
  const familiar = new Map<string, number>()
  const limitGuesses = limitPer(unknownKeysPerSecond, 'with unknown keys from this address')
  // A limit of its own: requests without a key cost no query, and must not block a key's first use.
  const limitKeyless = limitPer(unknownKeysPerSecond, 'without a key from this address')
  let forgottenAt = 0
  async function lookUp(text: string): Promise<TrustedKey | undefined> {
    const now = performance.now()
    const found = await findWorkingKey(sql, hashOfKeyText(text))
    if (!found) return undefined
    // The last use is exact to a minute; failing to write it fails no request.
    if (found.isUseStale) touchKey(sql, found.projectId, found.id).catch(() => {})
    const key = { ...found, until: now + trustedMilliseconds }
    trusted.set(text, key)
    if (familiar.size >= trustedMaximum) familiar.clear()
    familiar.set(text, now + familiarMilliseconds)
    return key
  }
  return (text, address) => {
    const now = performance.now()
    if (now >= forgottenAt || trusted.size >= trustedMaximum) {
      trusted.clear()
      forgottenAt = now + trustedMilliseconds
    }
    const known = text === undefined ? undefined : trusted.get(text)
    if (known && known.until > now) return known
    if (text === undefined || kindOfKeyText(text) === undefined) {
      limitKeyless(networkOf(address))
      return undefined
    }
    if ((familiar.get(text) ?? 0) < now) limitGuesses(networkOf(address))
    return lookUp(text)
  }
}

/** Sets a request's `projectId` and `keyId` before anything else in it is checked. */
export function secretKeyAuthentication(
  findKey: FindKey,
  rateLimit: RateLimit | undefined,
  noteRefused: (projectId: number) => void = () => {},
) {
  function admit(request: FastifyRequest, key: TrustedKey | undefined): Record<string, string> {
    if (!key) {
      throw new ApiError('unauthorized', 'Send a valid secret key: Authorization: Bearer sk_….', {
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    if (key.kind !== 'secret') {
      throw new ApiError('forbidden', 'This is a public key; the server API needs a secret key.')
    }
    request.projectId = key.projectId
    request.keyId = key.id
    request.isKnown = true
    try {
      return rateLimit?.(key.id) ?? {}
    } catch (refusal) {
      noteRefused(key.projectId)
      throw refusal
    }
  }
  return (request: FastifyRequest): Record<string, string> | Promise<Record<string, string>> => {
    const text = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    const key = findKey(text, request.ip)
    return key instanceof Promise ? key.then((found) => admit(request, found)) : admit(request, key)
  }
}
