import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { isProbe } from './held.ts'
import { networkOf } from './network.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether it came with a working secret key, or from a signed-in member. */
    isKnown: boolean
  }
}

/** The limits of one network without a key or sign-in. */
export interface PaceLimits {
  /** On average. */
  requestsPerSecond: number
  /** Served at once before the average holds. */
  burstRequests: number
}

/** Each part of a body of this size counts as one request. */
export const partBytes = 65_536

/** Reading files and pages costs much less than writing. */
const readRequests = 0.25

/**
 * Counts what is served to a request's network, and returns for how many milliseconds this request is
 * to wait: at most `longestMilliseconds`, for which nothing more is counted.
 */
export type Pace = (request: FastifyRequest, requests: number) => number

export const longestMilliseconds = 5_000

const networksMaximum = 100_000

/** Backends and members are not slowed down. */
export function pacing({ requestsPerSecond, burstRequests }: PaceLimits): Pace {
  /** The time at which each network's requests so far are served. */
  const servedAt = new Map<string, number>()
  const spacing = 1_000 / requestsPerSecond
  return (request, requests) => {
    if (request.isKnown) return 0
    const network = networkOf(request.ip)
    const now = performance.now()
    const begin = Math.max(servedAt.get(network) ?? 0, now - burstRequests * spacing)
    const end = Math.min(begin + requests * spacing, now + longestMilliseconds)
    if (servedAt.size >= networksMaximum) servedAt.clear()
    servedAt.set(network, end)
    return Math.max(0, Math.round(end - now))
  }
}

/**
 * Spaces out the requests of one network of strangers: one that asks for much waits, and is refused
 * where it would wait for long. Without a pace, only what was refused for asking too often waits.
 */
export function spaceOut(app: FastifyInstance, pace: Pace): void {
  app.decorateRequest('isKnown', false)
  const counted = new WeakSet<FastifyRequest>()
  const paceOf = (request: FastifyRequest) =>
    pace(request, request.method === 'GET' ? readRequests : 1)
  // After the key or the sign-in was looked at, and before anything of a body is read.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (waitsForNobody(request)) return done(null, payload)
    counted.add(request)
    const wait = paceOf(request)
    if (wait === 0) done(null, payload)
    else if (wait < longestMilliseconds) setTimeout(done, wait, null, payload)
    else done(tooMany())
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    // What was refused before has not waited yet.
    const wait = waitsForNobody(request) || counted.has(request) ? 0 : paceOf(request)
    const longest = Math.max(wait, reply.statusCode === 429 ? refusedMilliseconds : 0)
    if (longest === 0) done(null, payload)
    else setTimeout(done, longest, null, payload)
  })
}

/** Checked first: most requests have a key. */
function waitsForNobody(request: FastifyRequest): boolean {
  return request.isKnown || isProbe(request)
}

/** Limits a client that retries at once to a few refusals per second and connection. */
export const refusedMilliseconds = 200

function tooMany(): ApiError {
  return new ApiError('rate_limited', 'Too many requests from this network; try again later.', {
    headers: { 'retry-after': String(longestMilliseconds / 1_000) },
  })
}
