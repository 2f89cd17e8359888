import type { Platform } from '../platform.ts'
import type { Query } from '../request.ts'
import { readJson } from '../storage.ts'

/** Where events belong. */
export interface Target {
  browser: string
  session: string
}

/** The server takes no more of one chunk. */
const PAGES_MAXIMUM = 1_000

/** One upload on its way: events as ndjson, and where they belong. */
export interface Chunk extends Target {
  tab: string
  number: number
  events: number
  /** Of the text, before it is packed. */
  characters: number
  /** Page views that began in it. */
  pages: number
  isSnapshot: boolean
  /** Until it is packed. */
  text: string
  /** What is sent: gzip, or the same text where the browser cannot compress. */
  bytes: Uint8Array<ArrayBuffer> | undefined
  /** Handed to the browser as a beacon once; whether it arrived is not known. */
  beaconed: boolean
  packing?: Promise<void>
}

export const queryOf = ({ browser, session, tab, number, pages }: Chunk): Query => ({
  browser,
  session,
  tab,
  number,
  ...(pages && { pages: Math.min(pages, PAGES_MAXIMUM) }),
})

export const bytesOf = (chunk: Chunk) => chunk.bytes ?? new TextEncoder().encode(chunk.text)

/** How much room a chunk takes in memory, roughly. */
export const sizeOf = (chunk: Chunk) => chunk.bytes?.length ?? chunk.text.length

/** Compresses a chunk, which takes the place of its text. */
export function pack(chunk: Chunk, compress: Platform['compress']): Promise<void> {
  chunk.packing ??= (async () => {
    const gzip = chunk.bytes ?? (await compress(chunk.text).catch(() => undefined))
    chunk.bytes = gzip ?? bytesOf(chunk)
    chunk.text = ''
  })()
  return chunk.packing
}

const UNSENT = 'lethe.unsent'
const UNSENT_CHARACTERS_MAXIMUM = 2_000_000

type Kept = Omit<Chunk, 'bytes' | 'beaconed' | 'packing'> & { base64: string | undefined }

interface Unsent {
  chunks: Kept[]
  /** Events there was no room for. */
  lost: number
}

/**
 * Keeps chunks for the next page of this tab. Those that went as beacons are among them, for
 * nobody knows whether they arrived; sent again, the server takes them as done.
 */
export function keepUnsent({ tab }: Platform, chunks: Chunk[]) {
  const unsent: Unsent = { chunks: [], lost: 0 }
  let characters = 0
  for (const { bytes, beaconed: _, packing: __, ...chunk } of chunks) {
    const base64 = bytes && btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    characters += chunk.text.length + (base64?.length ?? 0)
    if (characters > UNSENT_CHARACTERS_MAXIMUM) unsent.lost += chunk.events
    else unsent.chunks.push({ ...chunk, base64 })
  }
  if (characters) tab.set(UNSENT, JSON.stringify(unsent))
}

/** Takes back what the page before this one could not send. */
export function takeUnsent({ tab }: Platform): { chunks: Chunk[]; lost: number } {
  const unsent = readJson<Unsent>(tab, UNSENT)
  tab.remove(UNSENT)
  if (!Array.isArray(unsent?.chunks)) return { chunks: [], lost: 0 }
  const chunks = unsent.chunks.map(({ base64, ...chunk }) => {
    const bytes = base64 ? Uint8Array.from(atob(base64), (each) => each.charCodeAt(0)) : undefined
    return { ...chunk, bytes, beaconed: false }
  })
  return { chunks, lost: unsent.lost }
}
