import { Worker } from 'node:worker_threads'
import type { ErrorCode, ErrorDetail } from '@lethe/contract/errors.ts'
import { ApiError } from './api-error.ts'
import { JsonText } from './json-body.ts'

/** What the thread answers: the body with its texts marked, or what it refused. */
export type LargeBodyAnswer =
  | { number: number; body: unknown }
  | { number: number; refused: { code: ErrorCode; message: string; details?: ErrorDetail[] } }

interface Waiting {
  resolve(body: unknown): void
  reject(error: Error): void
}

let thread: Worker | undefined
let count = 0
const waiting = new Map<number, Waiting>()

/**
 * Reads a large JSON body on a thread of its own, for up to a second in the worst case, while this
 * one goes on. Lists and objects below the first two levels come as JsonText.
 */
export function readLargeJsonBody(bytes: Buffer): Promise<unknown> {
  thread ??= startThread()
  const number = count++
  return new Promise((resolve, reject) => {
    waiting.set(number, { resolve, reject })
    thread?.postMessage({ number, bytes })
  })
}

function startThread(): Worker {
  // With no options of the process, some of which are for its first module alone.
  const worker = new Worker(new URL('./large-json-body-thread.ts', import.meta.url), {
    execArgv: [],
  })
  worker.on('message', (answer: LargeBodyAnswer) => {
    const one = waiting.get(answer.number)
    waiting.delete(answer.number)
    if ('body' in answer) one?.resolve(revive(answer.body))
    else one?.reject(new ApiError(answer.refused.code, answer.refused.message, answer.refused))
  })
  const fail = (error: Error) => {
    if (thread === worker) thread = undefined
    for (const one of waiting.values()) one.reject(error)
    waiting.clear()
  }
  worker.on('error', fail)
  worker.on('exit', () => fail(new Error('The thread that reads large bodies ended.')))
  // It is no reason for the process to stay. Not before: whoever listens to it holds it again.
  worker.unref()
  return worker
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
