import { parentPort } from 'node:worker_threads'
import { ApiError } from './api-error.ts'
import { condenseJsonBody } from './json-body.ts'
import type { LargeBodyAnswer } from './large-json-body.ts'

parentPort?.on('message', ({ number, bytes }: { number: number; bytes: Uint8Array }) => {
  parentPort?.postMessage(answerFor(number, bytes))
})

function answerFor(number: number, bytes: Uint8Array): LargeBodyAnswer {
  try {
    return {
      number,
      isOver: true,
      body: condenseJsonBody(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)),
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { code, message, details } = error
    return { number, isOver: true, refused: { code, message, ...(details && { details }) } }
  }
}
