import { type LookupAddress, lookup as resolve } from 'node:dns'
import type { RequestOptions } from 'node:http'
import { BlockList, isIP, type LookupFunction } from 'node:net'

export type SendResult = { status: number; errorCode: null } | { status: null; errorCode: string }

export interface SendOptions {
  /** Whether private and loopback addresses may be reached. */
  allowPrivate: boolean
  /** The time limit of an attempt. */
  timeoutSeconds: number
}

/** A longer response is cut off; nothing of it is stored. */
const responseBytesMaximum = 65_536

/**
 * Posts a body to a URL without following redirects. Returns the status, or why there is none; never
 * throws.
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
    // A new connection each time, so that each one is checked.
    agent: false,
    signal: AbortSignal.timeout(timeoutSeconds * 1_000),
    ...(!allowPrivate && { lookup: lookupPublic }),
  }
  // Imported late: as an ES module `node:http` also loads a WebSocket client, a tenth of a start.
  const { request } =
    url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  return new Promise((resolve) => {
    const outgoing = request(url, options, (response) => {
      resolve({ status: response.statusCode ?? 0, errorCode: null })
      let bytes = 0
      response.on('error', () => {})
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > responseBytesMaximum) response.destroy()
      })
    })
    // For endings without a response, such as a protocol upgrade.
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

/** Special-purpose addresses, from the IANA registries. */
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
  // The former test network 6bone; documentation.
  ['3ffe::', 16],
  ['3fff::', 20],
] as const) {
  notPublic.addSubnet(network, prefix, 'ipv6')
}

/** All public IPv6 addresses; loopback, mapped, local and multicast ones are outside. */
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
 * Resolves a name for one connection; refuses it if any of its addresses is not public. The connection
 * uses these addresses: a second lookup could return others (DNS rebinding).
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

/** The address in a URL's host; undefined for a name. */
export function literalAddress({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(address) === 0 ? undefined : address
}
