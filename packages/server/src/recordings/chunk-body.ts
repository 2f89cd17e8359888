import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { createGunzip, gzip } from 'node:zlib'
import { ApiError } from '../api-error.ts'

/** The limit of a chunk as sent, compressed or not. */
export const chunkBytesMaximum = 1_048_576

/** The limit of an expanded chunk, checked while streaming. */
export const expandedBytesMaximum = 8 * 1_048_576

/** Recorded pages compress far less than this; a zip bomb has a ratio of a thousand. */
const ratioMaximum = 200

/** Up to this size the ratio is not checked. */
const ratioFreeBytes = 262_144

/** Checked without a pause, which takes 0.1 ms at most. */
const partBytes = 65_536

/** The size of expanded pieces: fewer and larger ones cost less. */
const pieceBytes = 131_072

/** A gzip has a header of ten bytes, two of content at least, and a checksum and a size of four. */
const gzipBytesMinimum = 20

const gzipAsync = promisify(gzip)

/** Runs longer work when its turn comes. */
type WhenItMay = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Checks a chunk as it was sent, and returns it compressed. A compressed chunk is not expanded here,
 * which would be half its cost: only its stated size is checked, and `expandChunk` checks the rest.
 * Throws a refusal.
 */
export async function readChunkBody(
  body: Buffer,
  whenItMay: WhenItMay = (work) => work(),
): Promise<Buffer> {
  if (body.length > chunkBytesMaximum) throw tooLarge('is larger than 1 MiB')
  if (body[0] === 0x1f && body[1] === 0x8b) {
    checkGzip(body)
    return body
  }
  const pack = async () => {
    await checkPlain(body)
    return gzipAsync(body)
  }
  return body.length > partBytes ? whenItMay(pack) : pack()
}

/** Checks the first bytes and the last four, which hold the expanded size (RFC 1952). */
function checkGzip(body: Buffer): void {
  if (body.length < gzipBytesMinimum || body[2] !== 8) {
    throw new ApiError('invalid_request', 'The chunk is not valid gzip.')
  }
  assertExpansion(body, body.readUInt32LE(body.length - 4))
}

/** The content of a stored chunk is not in the format of events, or is too large. */
export class ChunkDamaged extends Error {
  override readonly name = 'ChunkDamaged'
}

/**
 * Yields the events of a stored chunk, piece by piece. Checks that each line looks like an object and
 * is UTF-8, but not the JSON. Throws `ChunkDamaged` where the chunk is damaged or too large.
 */
export async function* expandChunk(gzip: Uint8Array): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: pieceBytes })
  gunzip.end(gzip)
  const framing = checkFraming()
  let expandedBytes = 0
  try {
    for await (const part of gunzip as AsyncIterable<Buffer>) {
      expandedBytes += part.length
      assertExpansion(gzip, expandedBytes)
      framing.push(part)
      yield part
    }
    framing.end()
  } catch (error) {
    throw new ChunkDamaged('A stored chunk is damaged.', { cause: error })
  } finally {
    gunzip.destroy()
  }
}

async function checkPlain(body: Buffer): Promise<void> {
  const framing = checkFraming()
  for (let start = 0; start < body.length; start += partBytes) {
    framing.push(body.subarray(start, start + partBytes))
    // Lets other requests run in between.
    if (body.length > partBytes) await new Promise((resolve) => setImmediate(resolve))
  }
  framing.end()
}

function assertExpansion(body: Uint8Array, expandedBytes: number): void {
  if (expandedBytes > expandedBytesMaximum) throw tooLarge('is larger than 8 MiB expanded')
  if (expandedBytes > Math.max(ratioFreeBytes, body.length * ratioMaximum)) {
    throw tooLarge(`expands to more than ${ratioMaximum} times its size`)
  }
}

const newline = 0x0a
const open = 0x7b
const close = 0x7d

/**
 * Checks ndjson part by part: each line begins with `{` and ends with `}`, and the text is UTF-8. The
 * last line may lack its end of line.
 */
function checkFraming() {
  // The byte before the part; at the beginning, an end of line.
  let before = newline
  let isEmpty = true
  let unfinished: Buffer = Buffer.alloc(0)

  // Byte by byte: searching for each end of line takes ten times as long if lines are short.
  function checkLines(part: Buffer) {
    let last = before
    for (let i = 0; i < part.length; i++) {
      const byte = part[i] as number
      const isWrong = last === newline ? byte !== open : byte === newline && last !== close
      if (isWrong) throw malformed('has a line that is no JSON object')
      last = byte
    }
    before = last
  }

  return {
    push(part: Buffer) {
      if (part.length === 0) return
      isEmpty = false
      checkLines(part)
      const text = unfinished.length === 0 ? part : Buffer.concat([unfinished, part])
      const whole = text.length - unfinishedBytes(text)
      if (!isUtf8(text.subarray(0, whole))) throw malformed('is not valid UTF-8')
      // A copy, because the memory of the part is reused.
      unfinished = Buffer.from(text.subarray(whole))
    },
    end() {
      if (unfinished.length > 0) throw malformed('is not valid UTF-8')
      if (isEmpty) throw malformed('is empty')
      if (before !== close && before !== newline) throw malformed('ends within a line')
    },
  }
}

/** The number of bytes at the end that begin a character of the next part. */
function unfinishedBytes(text: Buffer): number {
  for (let back = 1; back <= Math.min(3, text.length); back++) {
    const byte = text[text.length - back] as number
    if (byte < 0x80) return 0
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return length > back ? back : 0
    }
  }
  return 0
}

function malformed(issue: string): ApiError {
  return new ApiError('invalid_request', `The chunk ${issue}.`)
}

function tooLarge(issue: string): ApiError {
  return new ApiError('payload_too_large', `The chunk ${issue}.`)
}
