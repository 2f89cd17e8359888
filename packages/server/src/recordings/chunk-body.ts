import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { createGunzip, gunzipSync, gzip } from 'node:zlib'
import { ApiError } from '../api-error.ts'

/** As sent, compressed or not. */
export const chunkBytesMaximum = 1_048_576

/** Counted while it streams by; nobody ever holds so much expanded. */
export const expandedBytesMaximum = 8 * 1_048_576

/**
 * A chunk of this size, as most are, is expanded at one go: a stream and its turns take up to three
 * times the processor time of what they do. Others wait for it a quarter of a millisecond.
 */
const atOnceBytesMaximum = 16_384
const atOnceExpandedMaximum = 262_144

/** What recorded pages compress to is far from this; a bomb is a thousand to one. */
const ratioMaximum = 200

/** Below this a high ratio costs nothing and may be honest. */
const ratioFreeBytes = 262_144

/** Checked at one go: about a millisecond, whatever is in it. */
const partBytes = 65_536

const gzipAsync = promisify(gzip)

/**
 * Checks a chunk as it was sent, and answers it compressed: as it came, where it came so. Its form
 * is checked, not its JSON: one object a line, in UTF-8. Throws a refusal.
 */
export async function readChunkBody(body: Buffer): Promise<Buffer> {
  if (body.length > chunkBytesMaximum) throw tooLarge('is larger than 1 MiB')
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  await (isGzip ? checkGzip(body) : checkPlain(body))
  return isGzip ? body : gzipAsync(body)
}

async function checkPlain(body: Buffer): Promise<void> {
  const framing = checkFraming()
  for (let start = 0; start < body.length; start += partBytes) {
    framing.push(body.subarray(start, start + partBytes))
    // A chunk of many short lines takes a while: others have their turn in between.
    if (body.length > partBytes) await new Promise((resolve) => setImmediate(resolve))
  }
  framing.end()
}

async function checkGzip(body: Buffer): Promise<void> {
  const framing = checkFraming()
  const readBytes = expandAtOnce(body, framing.push) ?? (await expandInParts(body, framing.push))
  // What stands behind the end of the compressed bytes would be stored, and never read.
  if (readBytes !== body.length) {
    throw new ApiError('invalid_request', 'The chunk has something after the end of its gzip.')
  }
  framing.end()
}

type Push = (part: Buffer) => void

/** Answers how many of the compressed bytes were read; undefined where there is too much in them. */
function expandAtOnce(body: Buffer, push: Push): number | undefined {
  if (body.length > atOnceBytesMaximum) return undefined
  const options = { maxOutputLength: atOnceExpandedMaximum, chunkSize: partBytes, info: true }
  try {
    const { buffer, engine } = gunzipSync(body, options) as unknown as {
      buffer: Buffer
      engine: { bytesWritten: number }
    }
    assertExpansion(body, buffer.length)
    push(buffer)
    return engine.bytesWritten
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') return undefined
    throw refusalOfGzip(error)
  }
}

async function expandInParts(body: Buffer, push: Push): Promise<number> {
  const gunzip = createGunzip({ chunkSize: partBytes })
  gunzip.end(body)
  let expandedBytes = 0
  try {
    for await (const part of gunzip) {
      expandedBytes += part.length
      assertExpansion(body, expandedBytes)
      push(part)
    }
  } catch (error) {
    throw refusalOfGzip(error)
  } finally {
    gunzip.destroy()
  }
  return gunzip.bytesWritten
}

function assertExpansion(body: Buffer, expandedBytes: number): void {
  if (expandedBytes > expandedBytesMaximum) throw tooLarge('is larger than 8 MiB expanded')
  if (expandedBytes > Math.max(ratioFreeBytes, body.length * ratioMaximum)) {
    throw tooLarge(`expands to more than ${ratioMaximum} times its size`)
  }
}

function refusalOfGzip(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError('invalid_request', 'The chunk is not valid gzip.', { cause: error })
}

const newline = 0x0a
const open = 0x7b
const close = 0x7d

/**
 * Checks ndjson part by part: each line begins with `{` and ends with `}`, the last may lack its
 * end of line, and all is UTF-8.
 */
function checkFraming() {
  // The byte before the part, as if an end of line stood before the first one.
  let before = newline
  let isEmpty = true
  let unfinished: Buffer = Buffer.alloc(0)

  function checkLines(part: Buffer) {
    if (before === newline && part[0] !== open) throw malformed('has a line that is no JSON object')
    for (let end = part.indexOf(newline); end !== -1; end = part.indexOf(newline, end + 1)) {
      const isEnded = (end === 0 ? before : part[end - 1]) === close
      const isFollowed = end + 1 === part.length || part[end + 1] === open
      if (!isEnded || !isFollowed) throw malformed('has a line that is no JSON object')
    }
    before = part[part.length - 1] as number
  }

  return {
    push(part: Buffer) {
      if (part.length === 0) return
      isEmpty = false
      checkLines(part)
      const text = unfinished.length === 0 ? part : Buffer.concat([unfinished, part])
      const whole = text.length - unfinishedBytes(text)
      if (!isUtf8(text.subarray(0, whole))) throw malformed('is not valid UTF-8')
      // A copy: the part's own memory is used again.
      unfinished = Buffer.from(text.subarray(whole))
    },
    end() {
      if (unfinished.length > 0) throw malformed('is not valid UTF-8')
      if (isEmpty) throw malformed('is empty')
      if (before !== close && before !== newline) throw malformed('ends within a line')
    },
  }
}

/** How many bytes at the end are the beginning of a character that goes on in the next part. */
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
