import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { networkOf } from '../http/network.ts'
import type { Log } from '../log.ts'
import type { FindKey } from '../projects/authenticate.ts'
import type { IdentityRules } from '../projects/identity.ts'
import { limitPer } from '../projects/rate-limit.ts'
import type { Sql } from '../sql.ts'
import { IngestRefusal } from './ingest-answers.ts'
import type { IngestLimitName } from './ingest-metrics.ts'
import { findIngestRules, type IngestRules } from './ingest-store.ts'
import type { QuotaLimits, Quotas } from './quotas.ts'

/** Requests per second on average, with bursts of ten times as many, per process; 0: no limit. */
export interface IngestLimits extends Partial<QuotaLimits> {
  perAddress: number
  perProject: number
  /** Sessions that a browser may start per day. */
  sessionsPerBrowser?: number
  /** Browsers that can be linked to a person; further ones are not recorded. */
  browsersPerPerson?: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The rules for this request, set by the gate before the body is read. */
    ingestRules: IngestRules
  }
}

/** Creating sessions and persons is expensive, and browsers do it rarely. */
const startsShare = 0.2

/** How long the rules of a key are cached in each process. */
const trustedMilliseconds = 3_000
const trustedMaximum = 10_000

const bodyTypes = new Set(['text/plain', 'application/octet-stream', 'application/json'])

/** Does something that a limit may refuse, and counts the refusal. */
export type Limited = <T>(limit: IngestLimitName, projectId: number | undefined, work: () => T) => T

export interface GateOptions {
  sql: Sql
  findKey: FindKey
  readIdentity(projectId: number): Promise<IdentityRules>
  limits: IngestLimits
  limited: Limited
  quotas: Quotas
  log: Log
}

/**
 * Checks a request before its body is read: address, key, origin, limits, type. Sets `projectId` and
 * `ingestRules`.
 */
export function ingestGate(options: GateOptions) {
  const { sql, findKey, readIdentity, limits, limited, quotas, log } = options
  const warnOfProxy = proxyWarning(log)
  const findRules = rulesFinder(sql, readIdentity)
  const perAddress = limitPer(limits.perAddress, 'from this address')
  const startsPerAddress = limitPer(limits.perAddress * startsShare, 'from this address')
  const perProject = limitPer(limits.perProject, 'of this project')

  return async (request: FastifyRequest, isStart: boolean): Promise<void> => {
    warnOfProxy(request)
    const address = networkOf(request.ip)
    limited('requests_per_address', undefined, () => {
      perAddress(address)
      if (isStart) startsPerAddress(address)
    })
    const key = await workingKey(findKey, request)
    const rules = await findRules(key.projectId, key.id)
    if (!rules) throw keyUnknown()
    const { origin } = request.headers
    const isAnonymous = origin === undefined || origin === 'null'
    // A page whose Referrer-Policy hides its origin sends beacons without it. That is safe: only a
    // page of an allowed origin can have started the session.
    if (!(isAnonymous && !isStart) && !isAllowed(origin, rules.allowedOrigins)) {
      throw new IngestRefusal('forbidden', 'This public key may not be used from this origin.', {
        next: 'stop',
      })
    }
    limited('requests_per_project', key.projectId, () => perProject(String(key.projectId)))
    quotas.admit(key.projectId, address)
    checkBodyType(request)
    request.projectId = key.projectId
    request.ingestRules = rules
  }
}

/**
 * Warns once if requests come through a proxy that is not trusted: all visitors then share the limits
 * of one address. A visitor can cause the warning, but nothing else.
 */
function proxyWarning(log: Log): (request: FastifyRequest) => void {
  let isLogged = false
  return ({ headers, ips }) => {
    const isTrusted = ips !== undefined && ips.length > 1
    if (isLogged || headers['x-forwarded-for'] === undefined || isTrusted) return
    isLogged = true
    log.event('warn', 'ingest.proxy_not_trusted')
  }
}

async function workingKey(findKey: FindKey, request: FastifyRequest) {
  const { key: text } = request.query as { key?: unknown }
  if (typeof text !== 'string') throw keyUnknown()
  if (text.startsWith('sk_')) {
    // Decided without a query, so it does not reveal whether the key works.
    throw new IngestRefusal(
      'forbidden',
      'This is a secret key, used in a page: revoke it, and use a public key (pk_…) instead.',
      { next: 'stop' },
    )
  }
  const key = await findKey(text, request.ip)
  if (key?.kind !== 'public') throw keyUnknown()
  return key
}

function keyUnknown(): IngestRefusal {
  return new IngestRefusal('unauthorized', 'Send a working public key: ?key=pk_….', {
    next: 'stop',
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** Compares whole origins; `https://*.example.com` stands for all subdomains of example.com. */
export function isAllowed(origin: string | undefined, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true
  if (origin === undefined) return false
  return allowed.some((one) => {
    const [scheme, domain] = one.split('://*.')
    if (domain === undefined) return one === origin
    return origin.startsWith(`${scheme}://`) && origin.endsWith(`.${domain}`)
  })
}

/** Other types need a preflight or come from forms; a beacon of bytes has none. */
function checkBodyType(request: FastifyRequest): void {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = request.headers
  const mediaType = type?.split(';')[0]?.trim().toLowerCase()
  if (mediaType !== undefined && !bodyTypes.has(mediaType)) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the body as text/plain or application/octet-stream.',
    )
  }
  if (encoding !== 'identity') {
    throw new ApiError(
      'unsupported_media_type',
      'Send a compressed chunk without a Content-Encoding header.',
    )
  }
}

function rulesFinder(sql: Sql, readIdentity: GateOptions['readIdentity']) {
  const trusted = new Map<string, { rules: IngestRules; until: number }>()
  return async (projectId: number, keyId: string): Promise<IngestRules | undefined> => {
    const now = performance.now()
    const known = trusted.get(keyId)
    if (known && known.until > now) return known.rules
    const found = await findIngestRules(sql, projectId, keyId)
    if (!found) return undefined
    const rules = { ...found, identity: await readIdentity(projectId) }
    if (trusted.size >= trustedMaximum) trusted.clear()
    trusted.set(keyId, { rules, until: now + trustedMilliseconds })
    return rules
  }
}

/** Limits the chunks that are checked and stored at a time, and with them the memory. */
const uploadsMaximum = 256
const uploadsPerNetworkMaximum = 32

/** Slots for chunks that have arrived completely. Taking one returns a function that releases it. */
export function uploadSlots() {
  let uploads = 0
  const byNetwork = new Map<string, number>()
  return (network: string): (() => void) => {
    const ofNetwork = byNetwork.get(network) ?? 0
    if (uploads >= uploadsMaximum || ofNetwork >= uploadsPerNetworkMaximum) {
      throw new ApiError('unavailable', 'Too many chunks are being stored; try again.', {
        headers: { 'retry-after': '2' },
      })
    }
    uploads += 1
    byNetwork.set(network, ofNetwork + 1)
    return () => {
      uploads -= 1
      const left = (byNetwork.get(network) ?? 1) - 1
      if (left > 0) byNetwork.set(network, left)
      else byNetwork.delete(network)
    }
  }
}
