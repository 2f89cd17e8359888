import type { FastifyRequest } from 'fastify'
import { networkOf } from './network.ts'

export interface PaceLimits {
  /** Of bodies from one network, on average. */
  bytesPerSecond: number
  /** Read at once before the average holds. */
  burstBytes: number
}

/** More than the line of an office has; a service that reads a gigabyte a second does nothing else. */
export const paceLimits: PaceLimits = {
  bytesPerSecond: 16 * 1_048_576,
  burstBytes: 64 * 1_048_576,
}

/**
 * Counts bytes of a body that were read, and returns for how many milliseconds it is to be read no
 * further: TCP holds its client back meanwhile, which costs nobody anything.
 */
export type Pace = (request: FastifyRequest, bytes: number) => number

const networksMaximum = 100_000

/** Bodies of backends, whose key is known, are read as fast as they come. */
export function pacing({ bytesPerSecond, burstBytes }: PaceLimits = paceLimits): Pace {
  const networks = new Map<string, { bytes: number; at: number }>()
  return (request, bytes) => {
    if (request.keyId !== '') return 0
    const network = networkOf(request.ip)
    const now = performance.now()
    const before = networks.get(network)
    const drained = before ? ((now - before.at) / 1_000) * bytesPerSecond : 0
    const level = Math.max(0, (before?.bytes ?? 0) - drained) + bytes
    if (!before && networks.size >= networksMaximum) networks.clear()
    networks.set(network, { bytes: level, at: now })
    return Math.max(0, Math.ceil(((level - burstBytes) / bytesPerSecond) * 1_000))
  }
}
