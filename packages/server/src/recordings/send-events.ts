import { pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { Session } from '@lethe/contract/session.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { isUuid } from '../http/parameters.ts'
import type { Log } from '../log.ts'
import type { Sql } from '../sql.ts'
import { SessionGone } from './session-events.ts'
import { findSession } from './session-store.ts'

/**
 * Streams events. Reads the first piece before the response begins, so that an early fault gets an
 * error response. A later fault aborts the response.
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
  const plain = Readable.from(pieces(), { objectMode: false })
  reply.header('vary', 'accept-encoding')
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(plain)
  // Browsers do not accept separately compressed chunks as one response, so this compresses again, at
  // a fast level. A fault of the events destroys both streams, and so the response.
  const compressed = pipeline(plain, createGzip({ level: 2 }), () => {})
  return reply.header('content-encoding', 'gzip').send(compressed)
}

export async function existingSession(sql: Sql, projectId: number, id: string): Promise<Session> {
  const session = isUuid(id) ? await findSession(sql, projectId, id) : undefined
  if (!session) throw sessionNotFound()
  return session
}

export function sessionNotFound(): ApiError {
  return new ApiError('session_not_found', 'No session with this id.')
}
