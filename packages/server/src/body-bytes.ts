import type { IncomingMessage } from 'node:http'
import { errorCodes } from 'fastify'

/**
 * Reads a body whole: its bytes, or an error where it has more than `maximum` or breaks off. What
 * Fastify's own reader does besides costs as much as all that a write does with the bytes.
 */
export function readBodyBytes(
  payload: IncomingMessage,
  maximum: number,
  done: (error: Error | null, bytes?: Buffer) => void,
): void {
  let isDone = false
  const end = (error: Error | null, bytes?: Buffer) => {
    if (isDone) return
    isDone = true
    done(error, bytes)
  }
  if (Number(payload.headers['content-length']) > maximum) {
    end(tooLarge())
    return
  }
  const parts: Buffer[] = []
  let length = 0
  const onReadable = () => {
    if (isDone) return
    const part = payload.read() as Buffer | null
    if (part !== null) {
      length += part.length
      if (length > maximum) {
        payload.resume()
        return end(tooLarge())
      }
      parts.push(part)
    }
    if (payload.complete && payload.readableLength === 0)
      end(null, parts.length === 1 ? parts[0] : Buffer.concat(parts, length))
  }
  payload.on('readable', onReadable)
  payload.on('end', onReadable)
  payload.on('error', () => end(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH()))
}

function tooLarge(): Error {
  return new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE()
}
