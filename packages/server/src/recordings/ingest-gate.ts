import { isIPv6 } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Log } from '../log.ts'
import { type FindKey, keyFinder } from '../projects/authenticate.ts'
import { type RateLimit, tokenBuckets } from '../projects/rate-limit.ts'
import type { Sql } from '../sql.ts'
import { IngestRefusal } from './ingest-answers.ts'
import { findIngestRules, type IngestRules } from './ingest-store.ts'

/** Requests a second for ever, and ten times as many at once, in each process; 0 is no limit. */
export interface IngestLimits {
  perAddress: number
  perProject: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** What decides about an ingestion request; set by the gate, before anything is read. */
    ingestRules: IngestRules
  }
}

const burstSeconds = 10

/** Making sessions and persons costs more than the rest, and no browser does it often. */
const startsShare = 0.2

/** How long the rules of a key are taken to hold, in each process. */
const trustedMilliseconds = 3_000
const trustedMaximum = 10_000

const bodyTypes = new Set(['text/plain', 'application/octet-stream', 'application/json'])

/**
 * Looks at a request before its body is read: address, key, origin, project, type. Sets
 * `projectId` and `ingestRules`.
 */
export function ingestGate(sql: Sql, limits: IngestLimits, log: Log) {
  const warnOfProxy = proxyWarning(log)
  const findKey = keyFinder(sql)
  const findRules = rulesFinder(sql)
  const perAddress = limitOf(limits.perAddress, 'from this address')
  const startsPerAddress = limitOf(limits.perAddress * startsShare, 'from this address')
  const perProject = limitOf(limits.perProject, 'of this project')

  return async (request: FastifyRequest, isStart: boolean): Promise<void> => {
    warnOfProxy(request)
    const address = networkOf(request.ip)
    perAddress(address)
    if (isStart) startsPerAddress(address)
    const key = await workingKey(findKey, request)
    const rules = await findRules(key.projectId, key.id)
    if (!rules) throw keyUnknown()
    const { origin } = request.headers
    const isAnonymous = origin === undefined || origin === 'null'
    // A page whose Referrer-Policy hides it sends beacons without its origin. The session they go
    // to is known to nobody but the page that started it, from an origin of the list.
    if (!(isAnonymous && !isStart) && !isAllowed(origin, rules.allowedOrigins)) {
      throw new IngestRefusal('forbidden', 'This public key may not be used from this origin.', {
        next: 'stop',
      })
    }
    perProject(String(key.projectId))
    checkBodyType(request)
    request.projectId = key.projectId
    request.ingestRules = rules
  }
}

/**
 * Behind a proxy that is not trusted all visitors come from one address, and share its limits. That
 * is told once; a visitor can make it be told, and nothing more.
 */
function proxyWarning(log: Log): (request: FastifyRequest) => void {
  let isTold = false
  return ({ headers, ips }) => {
    const isTrusted = ips !== undefined && ips.length > 1
    if (isTold || headers['x-forwarded-for'] === undefined || isTrusted) return
    isTold = true
    log.event('warn', 'ingest.proxy_not_trusted')
  }
}

function limitOf(perSecond: number, whose: string): (bucket: string) => void {
  if (perSecond === 0) return () => {}
  const take: RateLimit = tokenBuckets(perSecond, Math.max(1, perSecond * burstSeconds))
  return (bucket) => {
    try {
      take(bucket)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { headers } = error
      throw new ApiError('rate_limited', `Too many requests ${whose}.`, { headers, cause: error })
    }
  }
}

/** What one visitor can be taken to have: an IPv4 address, or a /64 of IPv6. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = (plain.split('%')[0] as string).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  const groups = [...left, ...zeros, ...right].slice(0, 4)
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}

async function workingKey(findKey: FindKey, request: FastifyRequest) {
  const { key: text } = request.query as { key?: unknown }
  if (typeof text !== 'string') throw keyUnknown()
  if (text.startsWith('sk_')) {
    // Told without a look at the database, so it says nothing about whether the key works.
    throw new IngestRefusal(
      'forbidden',
      'This is a secret key, and it has been put into a page: revoke it, and use a public key (pk_…) there.',
      { next: 'stop' },
    )
  }
  const key = await findKey(text)
  if (key?.kind !== 'public') throw keyUnknown()
  return key
}

function keyUnknown(): IngestRefusal {
  return new IngestRefusal('unauthorized', 'Send a working public key: ?key=pk_….', {
    next: 'stop',
    headers: { 'www-authenticate': 'Bearer' },
  })
}

/** Origins are compared whole; `https://*.example.com` stands for all below example.com. */
export function isAllowed(origin: string | undefined, allowed: readonly string[] | null): boolean {
  if (allowed === null) return true
  if (origin === undefined) return false
  return allowed.some((one) => {
    const [scheme, domain] = one.split('://*.')
    if (domain === undefined) return one === origin
    return origin.startsWith(`${scheme}://`) && origin.endsWith(`.${domain}`)
  })
}

/** Other types make browsers ask first or come from forms; a beacon of bytes has none at all. */
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
      'A compressed chunk is sent as it is, without a Content-Encoding.',
    )
  }
}

function rulesFinder(sql: Sql) {
  const trusted = new Map<string, { rules: IngestRules; until: number }>()
  return async (projectId: number, keyId: string): Promise<IngestRules | undefined> => {
    const now = performance.now()
    const known = trusted.get(keyId)
    if (known && known.until > now) return known.rules
    const rules = await findIngestRules(sql, projectId, keyId)
    if (!rules) return undefined
    if (trusted.size >= trustedMaximum) trusted.clear()
    trusted.set(keyId, { rules, until: now + trustedMilliseconds })
    return rules
  }
}

/** How many chunks are received or stored at one time: what they take of memory is bounded. */
const uploadsMaximum = 256
const uploadsPerAddressMaximum = 32

/** Lets an upload in, until its answer has gone or its connection has broken. */
export function uploadGate() {
  let uploads = 0
  const byAddress = new Map<string, number>()
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const address = networkOf(request.ip)
    const ofAddress = byAddress.get(address) ?? 0
    if (uploads >= uploadsMaximum || ofAddress >= uploadsPerAddressMaximum) {
      throw new ApiError('unavailable', 'Too many chunks are on their way; try again.', {
        headers: { 'retry-after': '2' },
      })
    }
    uploads += 1
    byAddress.set(address, ofAddress + 1)
    reply.raw.once('close', () => {
      uploads -= 1
      const left = (byAddress.get(address) ?? 1) - 1
      if (left > 0) byAddress.set(address, left)
      else byAddress.delete(address)
    })
  }
}
