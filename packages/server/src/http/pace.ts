import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { isProbe } from './held.ts'
import { networkOf } from './network.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether it has a valid secret key or a signed-in member. */
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
 * Counts `requests` for the request's network, and returns how many milliseconds this request has to
 * wait. At the maximum, `longestMilliseconds`, nothing more is counted.
 */
export type Pace = (request: FastifyRequest, requests: number) => number

export const longestMilliseconds = 5_000

const networksMaximum = 100_000

/** Backends and members are not slowed down. */
export function pacing({ requestsPerSecond, burstRequests }: PaceLimits): Pace {
  /** By network, when all its requests so far are served. */
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
 * Spaces out requests without a key or sign-in, per network: they wait, or are refused if the wait
 * would be long. Without limits, only responses with 429 wait.
 */
export function spaceOut(app: FastifyInstance, pace: Pace): void {
  app.decorateRequest('isKnown', false)
  const counted = new WeakSet<FastifyRequest>()
  const paceOf = (request: FastifyRequest) =>
    pace(request, request.method === 'GET' ? readRequests : 1)
  // After the key or sign-in is checked, and before the body is read.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (waitsForNobody(request)) return done(null, payload)
    counted.add(request)
    const wait = paceOf(request)
    if (wait === 0) done(null, payload)
    else if (wait < longestMilliseconds) setTimeout(done, wait, null, payload)
    else done(tooMany())
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    // A request that was refused earlier has not waited yet.
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
