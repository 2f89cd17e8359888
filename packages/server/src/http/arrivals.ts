import type { IncomingMessage } from 'node:http'
import { errorCodes, type FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { release } from '../release.ts'
import { networkOf } from './network.ts'
import { type Pace, partBytes } from './pace.ts'
import { continueRequest } from './requests.ts'

export interface ArrivalLimits {
  /** Of all incomplete bodies together. */
  bytesMaximum: number
  /** The same from one network. */
  bytesPerNetworkMaximum: number
  /** After this time a body must have arrived at the minimum average rate. */
  graceSeconds: number
  leastBytesPerSecond: number
}

export const arrivalLimits: ArrivalLimits = {
  bytesMaximum: 256 * 1_048_576,
  bytesPerNetworkMaximum: 32 * 1_048_576,
  graceSeconds: 5,
  leastBytesPerSecond: 2_048,
}

export type ReadBody = (
  request: FastifyRequest,
  payload: IncomingMessage,
  maximum: number,
  done: (error: Error | null, bytes?: Buffer) => void,
) => void

interface Arrival {
  network: string
  bytes: number
  startedAt: number
  end(error: Error): void
}

const sweepMilliseconds = 100
/** Hundreds may be due at once: few are ended per sweep, so that other work is not delayed. */
const endedAtOnce = 5
const sweepsForAll = 50

/**
 * Reads whole bodies. Ends a body that arrives too slowly; if incomplete bodies take too much memory,
 * ends the oldest one of the network that has the most.
 */
export function bodyReader(limits: ArrivalLimits = arrivalLimits, pace: Pace = () => 0): ReadBody {
  const arrivals = new Set<Arrival>()
  const bytesByNetwork = new Map<string, number>()
  let bytes = 0
  let sweeping: NodeJS.Timeout | undefined

  function count(arrival: Arrival, added: number): void {
    arrival.bytes += added
    bytes += added
    const ofNetwork = (bytesByNetwork.get(arrival.network) ?? 0) + added
    if (ofNetwork > 0) bytesByNetwork.set(arrival.network, ofNetwork)
    else bytesByNetwork.delete(arrival.network)
    if (added <= 0) return
    if (ofNetwork > limits.bytesPerNetworkMaximum) endOldestOf(arrival.network)
    if (bytes > limits.bytesMaximum) endOldestOf(largestNetwork(bytesByNetwork))
  }

  function endOldestOf(network: string): void {
    for (const one of arrivals) {
      if (one.network !== network || one.bytes === 0) continue
      one.end(tooMany())
      return
    }
  }

  function forget(arrival: Arrival): void {
    if (!arrivals.delete(arrival)) return
    count(arrival, -arrival.bytes)
    if (arrivals.size > 0) return
    clearInterval(sweeping)
    sweeping = undefined
  }

  return (request, payload, maximum, done) => {
    const parts: Buffer[] = []
    const arrival: Arrival = {
      network: networkOf(request.ip),
      bytes: 0,
      startedAt: performance.now(),
      end: finish,
    }
    arrivals.add(arrival)
    sweeping ??= setInterval(() => endSlow(arrivals, limits), sweepMilliseconds).unref()

    function finish(error: Error | null): void {
      if (!arrivals.has(arrival)) return
      forget(arrival)
      payload.off('data', keep)
      // The rest of the body is discarded.
      if (error) payload.resume()
      done(error, error ? undefined : joined(parts))
    }
    function keep(part: Buffer): void {
      parts.push(part)
      if (arrival.bytes + part.length > maximum) finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE())
      else count(arrival, part.length)
      // The time in which we did not read does not count as slow.
      arrival.startedAt += holdBack(payload, pace(request, part.length / partBytes))
    }
    // Every body ends with 'close'; only one that broke off also has an error.
    const broken = () => {
      if (arrivals.has(arrival)) finish(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH())
    }
    if (Number(payload.headers['content-length']) > maximum) {
      finish(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE())
    } else if (payload.destroyed) {
      // Its client disconnected earlier, and no event reports that any more.
      broken()
    } else {
      continueRequest(payload)
      payload.on('data', keep)
      payload.once('end', () => finish(null))
      payload.once('error', broken)
      payload.once('close', broken)
    }
  }
}

function endSlow(arrivals: ReadonlySet<Arrival>, limits: ArrivalLimits): void {
  const now = performance.now()
  const atOnce = Math.max(endedAtOnce, arrivals.size / sweepsForAll)
  let ended = 0
  for (const one of arrivals) {
    const seconds = (now - one.startedAt) / 1_000
    const isSlow = one.bytes < seconds * limits.leastBytesPerSecond
    if (seconds <= limits.graceSeconds || !isSlow) continue
    one.end(tooSlow())
    ended += 1
    if (ended >= atOnce) return
  }
}

function joined(parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  // A part is a whole read from the connection, so nothing else uses its memory.
  for (const part of parts) release(part)
  return body
}

function holdBack(payload: IncomingMessage, milliseconds: number): number {
  if (milliseconds === 0) return 0
  payload.pause()
  setTimeout(() => payload.resume(), milliseconds).unref()
  return milliseconds
}

function largestNetwork(bytesByNetwork: ReadonlyMap<string, number>): string {
  let largest = ''
  for (const [network, bytes] of bytesByNetwork) {
    if (bytes > (bytesByNetwork.get(largest) ?? 0)) largest = network
  }
  return largest
}

function tooSlow(): ApiError {
  return new ApiError('request_timeout', 'The body arrives too slowly.')
}

function tooMany(): ApiError {
  return new ApiError('unavailable', 'Too many request bodies are being received; try again.', {
    headers: { 'retry-after': '2' },
  })
}
