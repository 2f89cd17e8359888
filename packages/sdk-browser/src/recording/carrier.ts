import { realm } from '../natives.ts'
import type { Body } from '../platform.ts'
import { inOwnTask } from './tasks.ts'

/** This much takes a few milliseconds to compress. */
const SLICE_BYTES = 64 * 1024

/** What sending chunks needs from the browser in addition to `Platform`. */
export interface Carrier {
  /** Returns whether the browser accepted it. Whether it arrives is never known. */
  beacon(url: string, body: Body): boolean
  /** Gzip; undefined if the browser cannot compress. */
  compress(text: string): Promise<Uint8Array<ArrayBuffer> | undefined>
}

export const browserCarrier: Carrier = {
  beacon(url, body) {
    const blob = new Blob([body], { type: 'text/plain' })
    return realm.Navigator.prototype.sendBeacon.call(navigator, url, blob)
  },
  async compress(text) {
    if (typeof CompressionStream === 'undefined') return undefined
    const bytes = new TextEncoder().encode(text)
    const { readable, writable } = new CompressionStream('gzip')
    const packed = new Response(readable).arrayBuffer()
    const writer = writable.getWriter()
    // The response reports what fails here.
    const ignore = () => {}
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      // Each in its own task: the task that wrote the text has already delayed the page.
      await new Promise<void>(inOwnTask)
      writer.write(bytes.subarray(at, at + SLICE_BYTES)).catch(ignore)
    }
    writer.close().catch(ignore)
    return new Uint8Array(await packed)
  },
}
