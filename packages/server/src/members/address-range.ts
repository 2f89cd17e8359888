import { isIPv4 } from 'node:net'
import { networkOf } from '../http/network.ts'

/**
 * Where a request came from, as exactly as a log needs it for years: a /24 of IPv4, a /48 of IPv6.
 */
export function addressRangeOf(address: string): string {
  const network = networkOf(address)
  if (isIPv4(network)) return `${network.split('.').slice(0, 3).join('.')}.0/24`
  return `${network.split(':').slice(0, 3).join(':')}::/48`
}

/** By which our routes tell better-auth the address of a request; no client's header gets there. */
export const addressHeader = 'x-lethe-address'
