import { isIPv4, isIPv6 } from 'node:net'

/** Returns the IPv4 form of an IPv4 address that a dual-stack socket reports as IPv6. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** The network of one visitor: an IPv4 address, or a /64 of IPv6. */
export function networkOf(address: string): string {
  const plain = plainAddress(address)
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = (plain.split('%')[0] as string).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
  const groups = [...left, ...zeros, ...right].slice(0, 4)
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}

/** Where a request came from, coarse enough for a log kept for years: an IPv4 /24 or an IPv6 /48. */
export function addressRangeOf(address: string): string {
  const network = networkOf(address)
  if (isIPv4(network)) return `${network.split('.').slice(0, 3).join('.')}.0/24`
  return `${network.split(':').slice(0, 3).join(':')}::/48`
}

/** Passes the address of a request to better-auth, which gets no headers of clients. */
export const addressHeader = 'x-lethe-address'
