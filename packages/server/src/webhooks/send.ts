import { type LookupAddress, lookup as resolve } from 'node:dns'
import type { RequestOptions } from 'node:http'
import { BlockList, isIP, type LookupFunction } from 'node:net'

export type SendResult = { status: number; errorCode: null } | { status: null; errorCode: string }

export interface SendOptions {
  /** Whether private and loopback addresses may be reached. */
  allowPrivate: boolean
  /** When the attempt is given up. */
  timeoutSeconds: number
}

/** What a receiver may say in its response; nothing of it is kept. */
const answerBytesMaximum = 65_536

/**
 * Posts a body to a URL, following no redirect, and returns the status or why there was none. It
 * throws nothing: whatever goes wrong is the receiver's.
 */
export async function send(
  url: URL,
  headers: Record<string, string>,
  body: string,
  { allowPrivate, timeoutSeconds }: SendOptions,
): Promise<SendResult> {
  const address = literalAddress(url)
  if (!allowPrivate && address !== undefined && !isPublicAddress(address)) {
    return { status: null, errorCode: 'address_refused' }
  }
  const options: RequestOptions = {
    method: 'POST',
    headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
    // A connection of its own each time: none is kept that was made under another rule.
    agent: false,
    signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    ...(!allowPrivate && { lookup: lookupPublic }),
  }
  // Not at the start: as an ES module `node:http` loads a WebSocket client too, a tenth of a start.
  const { request } =
    url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  return new Promise((resolve) => {
    const outgoing = request(url, options, (response) => {
      resolve({ status: response.statusCode ?? 0, errorCode: null })
      let bytes = 0
      response.on('error', () => {})
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > answerBytesMaximum) response.destroy()
      })
    })
    // Also what is no response at all, as a change to another protocol, ends with this.
    outgoing.on('close', () => resolve({ status: null, errorCode: 'connection_failed' }))
    outgoing.on('error', (error) => resolve({ status: null, errorCode: errorCodeOf(error) }))
    outgoing.end(body)
  })
}

function errorCodeOf(error: Error & { code?: string }): string {
  const { code = '' } = error
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'timed_out'
  if (code === 'ADDRESS_REFUSED') return 'address_refused'
  if (/^(?:ENOTFOUND|EAI_)/.test(code)) return 'name_not_found'
  if (code === 'ECONNREFUSED') return 'connection_refused'
  if (/CERT|SIGNED|TLS|SSL|UNABLE_TO|EPROTO/.test(code)) return 'tls_failed'
  return 'connection_failed'
}

/** The name leads to an address that webhooks may not reach. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  readonly code = 'ADDRESS_REFUSED'
}

/** What is no public unicast address, by the IANA registries of special-purpose addresses. */
const notPublic = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  notPublic.addSubnet(network, prefix, 'ipv4')
}
for (const [network, prefix] of [
  // Teredo, benchmarking, ORCHID and others; documentation; 6to4.
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  // The old test network 6bone, given back, and documentation.
  ['3ffe::', 16],
  ['3fff::', 20],
] as const) {
  notPublic.addSubnet(network, prefix, 'ipv6')
}

/** All public addresses of IPv6 there are: loopback, mapped, local and multicast ones lie outside. */
const globalUnicast = new BlockList()
globalUnicast.addSubnet('2000::', 3, 'ipv6')

export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !notPublic.check(address, 'ipv4')
    case 6:
      return globalUnicast.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
    default:
      return false
  }
}

/**
 * Resolves a name for one connection and refuses it where any of its addresses is not public. The
 * connection goes to the very addresses that were looked at: asking the name a second time could
 * get another answer (DNS rebinding).
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? []
    if (error) return callback(error, '')
    if (!first || !addresses.every(({ address }) => isPublicAddress(address))) {
      return callback(new AddressRefused('The name leads to no public address.'), '')
    }
    if (options.all) return callback(null, addresses)
    callback(null, first.address, first.family)
  })
}

/** The address in a URL's host, where it is one and no name. */
export function literalAddress({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(address) === 0 ? undefined : address
}
