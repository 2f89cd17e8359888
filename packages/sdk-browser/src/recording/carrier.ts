import { realm, setTimeout } from '../natives.ts'
import type { Body } from '../platform.ts'

/** What bringing chunks to the server needs of the browser beside `Platform`. */
export interface Carrier {
  /** Whether the browser has taken it; whether it arrives is never known. */
  beacon(url: string, body: Body): boolean
  /** Gzip; nothing where the browser cannot. */
  compress(text: string): Promise<Uint8Array<ArrayBuffer> | undefined>
}

export const browserCarrier: Carrier = {
  beacon(url, body) {
    const blob = new Blob([body], { type: 'text/plain' })
    return realm.Navigator.prototype.sendBeacon.call(navigator, url, blob)
  },
  async compress(text) {
    if (typeof CompressionStream === 'undefined') return undefined
    // In a task of its own: the one that wrote the text has kept the page waiting already.
    await new Promise<void>((resolve) => setTimeout(resolve))
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
    return new Uint8Array(await new Response(stream).arrayBuffer())
  },
}
