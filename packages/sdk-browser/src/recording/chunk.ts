import type { Platform } from '../platform.ts'
import type { Query } from '../request.ts'
import { parseJson } from '../storage.ts'
import type { Carrier } from './carrier.ts'

/** Where events belong. Until the IDs are known: no browser, and the generation as the session. */
export interface Target {
  browser: string
  session: string
  /** The start of the session, in milliseconds since 1970. */
  startedAt?: number
}

/** What sessions can be searched by: page views, errors and similar. */
export type Counted = 'pages' | 'errors' | 'failedRequests' | 'rageClicks' | 'deadClicks'
export type Counts = Partial<Record<Counted, number>>

/** An upload: events as NDJSON, and where they belong. */
export interface Chunk extends Target {
  tab: string
  number: number
  events: number
  /** The length of the text before compression. */
  characters: number
  counts: Counts
  /** The times of its first and last event, by the clock of the recording. */
  from: number
  to: number
  isSnapshot: boolean
  /** Empty once it is compressed. */
  text: string
  /** What is sent: gzip, or the plain text if the browser cannot compress. */
  bytes: Uint8Array<ArrayBuffer> | undefined
  /** Already handed to the browser as a beacon. Whether it arrived is not known. */
  beaconed: boolean
  /** Not 0 while held, until the server says whose browser it is, or by a setting (buffer.ts). */
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

/** The rough size of a chunk in memory. */
export const sizeOf = (chunk: Chunk) => chunk.bytes?.length ?? chunk.text.length

/** Replaces the text of a chunk by compressed bytes. */
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
  /** Events that did not fit. */
  lost: number
}

/**
 * Keeps chunks for the next page of this tab, including those sent as beacons, which may not have
 * arrived: sending them again is idempotent.
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

/** Takes over what the previous page could not send, if it is known where it belongs. */
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
