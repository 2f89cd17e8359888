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
  const whole = () => end(null, parts.length === 1 ? parts[0] : Buffer.concat(parts, length))
  const read = () => {
    const part = isDone ? null : (payload.read() as Buffer | null)
    if (part) {
      length += part.length
      parts.push(part)
    }
    if (length > maximum) {
      end(tooLarge())
      // What still comes is not kept: the connection is about to be closed.
      payload.off('readable', read).resume()
    } else if (payload.complete && payload.readableLength === 0) {
      // Mostly with the first part already, long before the stream says that it is at its end.
      whole()
    }
  }
  payload.on('readable', read)
  payload.on('end', whole)
  payload.on('error', () => end(new errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH()))
}

function tooLarge(): Error {
  return new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE()
}
