import type { RequestOptions } from 'node:http'
import { isPublicAddress, literalAddress, lookupPublic } from './address.ts'

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
