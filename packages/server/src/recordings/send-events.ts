import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Log } from '../log.ts'
import { SessionGone } from './session-events.ts'

/**
 * The first piece is read before the answer begins, so that what cannot be opened at all is
 * answered as a fault. A later fault breaks the answer off, and its reader sees that.
 */
export async function sendEvents(
  events: AsyncGenerator<Buffer>,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Log,
): Promise<FastifyReply> {
  const first = await events.next().catch((error: unknown) => {
    throw error instanceof SessionGone ? sessionNotFound() : error
  })
  async function* pieces() {
    if (first.done) return
    try {
      yield first.value
      yield* events
    } catch (error) {
      log.fault('session.events', error, {
        requestId: request.id,
        route: request.routeOptions.url ?? 'unknown',
        projectId: request.projectId,
      })
      throw error
    }
  }
  return reply.send(Readable.from(pieces(), { objectMode: false }))
}

export function sessionNotFound(): ApiError {
  return new ApiError('session_not_found', 'No session with this id.')
}
