import type { Platform } from '../platform.ts'
import type { Query } from '../request.ts'
import { parseJson } from '../storage.ts'
import type { Carrier } from './carrier.ts'

/** Where events belong. While the ids are not there yet: no browser, and the generation. */
export interface Target {
  browser: string
  session: string
  /** Of the session, in milliseconds since 1970. */
  startedAt?: number
}

/** What a session is found by: page views, and what broke. */
export type Counted = 'pages' | 'errors' | 'failedRequests' | 'rageClicks' | 'deadClicks'
export type Counts = Partial<Record<Counted, number>>

/** One upload on its way: events as ndjson, and where they belong. */
export interface Chunk extends Target {
  tab: string
  number: number
  events: number
  /** Of the text, before it is packed. */
  characters: number
  counts: Counts
  /** When its first event and its last were, by the clock of the recording. */
  from: number
  to: number
  isSnapshot: boolean
  /** Until it is packed. */
  text: string
  /** What is sent: gzip, or the same text where the browser cannot compress. */
  bytes: Uint8Array<ArrayBuffer> | undefined
  /** Handed to the browser as a beacon once; whether it arrived is not known. */
  beaconed: boolean
  /** Kept while it is not 0: for the server to say whose the browser is, or for a setting (buffer.ts). */
  held?: number
  packing?: Promise<void>
}

export const queryOf = ({
  browser,
  session,
  tab,
  number,
  counts,
  from,
  to,
  startedAt = from,
}: Chunk): Query => ({
  browser,
  session,
  tab,
  number,
  from: from - startedAt,
  to: to - startedAt,
  ...counts,
})

export const bytesOf = (chunk: Chunk) => chunk.bytes ?? new TextEncoder().encode(chunk.text)

/** How much room a chunk takes in memory, roughly. */
export const sizeOf = (chunk: Chunk) => chunk.bytes?.length ?? chunk.text.length

/** Compresses a chunk, which takes the place of its text. */
export function pack(chunk: Chunk, compress: Carrier['compress']): Promise<void> {
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
  for (const { bytes, beaconed: _, held = 0, packing: __, ...chunk } of chunks) {
    const base64 = bytes && btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    characters += chunk.text.length + (base64?.length ?? 0)
    if (characters > UNSENT_CHARACTERS_MAXIMUM) unsent.lost += chunk.events
    else unsent.chunks.push({ ...chunk, held: held & 2, base64 })
  }
  if (characters) tab.set(UNSENT, JSON.stringify(unsent))
}

/** Takes back what the page before this one could not send, as far as it is known whose it is. */
export function takeUnsent(
  { tab }: Platform,
  generation: string,
): { chunks: Chunk[]; lost: number } {
  const unsent = parseJson<Unsent>(tab.get(UNSENT))
  tab.remove(UNSENT)
  if (!Array.isArray(unsent?.chunks)) return { chunks: [], lost: 0 }
  const isKnown = ({ browser, session }: Target) => browser !== '' || session === generation
  const chunks = unsent.chunks.filter(isKnown).map(({ base64, ...chunk }) => {
    const bytes = base64 ? Uint8Array.from(atob(base64), (each) => each.charCodeAt(0)) : undefined
    return { ...chunk, bytes, beaconed: false }
  })
  return { chunks, lost: unsent.lost }
}
