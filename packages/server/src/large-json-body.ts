import type { ErrorCode, ErrorDetail } from '@lethe/contract/errors.ts'
import { ApiError } from './api-error.ts'
import { JsonText } from './json-body.ts'
import { type ThreadMessage, threadOf } from './thread.ts'

/** What the thread answers: the body with its texts marked, or what it refused. */
export type LargeBodyAnswer = ThreadMessage &
  ({ body: unknown } | { refused: { code: ErrorCode; message: string; details?: ErrorDetail[] } })

const thread = threadOf<{ bytes: Buffer }, LargeBodyAnswer>(
  new URL('./large-json-body-thread.ts', import.meta.url),
)

/**
 * Reads a large JSON body on a thread of its own, for up to a second in the worst case, while this
 * one goes on. Lists and objects below the first two levels come as JsonText. The bytes are gone
 * afterwards.
 */
export function readLargeJsonBody(bytes: Buffer): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const heard = (answer: LargeBodyAnswer) => {
      if ('body' in answer) resolve(revive(answer.body))
      else reject(new ApiError(answer.refused.code, answer.refused.message, answer.refused))
    }
    const { buffer } = bytes
    const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length
    thread.send({ bytes }, heard, reject, isAlone ? [buffer] : [])
  })
}

/** A class does not come through between threads; its fields do. */
function revive(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 2) {
    const { text, rawJSON } = value as { text?: string; rawJSON?: string }
    return rawJSON === undefined ? new JsonText(text as string) : JSON.rawJSON(rawJSON)
  }
  for (const key in value) {
    const object = value as Record<string, unknown>
    // Assigning `__proto__` would not make a key of it; here it always is one already.
    Object.defineProperty(object, key, { value: revive(object[key], depth + 1) })
  }
  return value
}
