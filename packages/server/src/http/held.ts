import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The value of `holds()` when the request arrived; -1 for health checks and metrics. */
    holds: number
  }
}

export interface Held {
  isHeld(): boolean
  /** How often requests have been held so far. */
  holds(): number
  /** Checks that the database is still the same server, and holds if not. Needed behind a pooler. */
  confirm?(): Promise<void>
}

/**
 * Responds with 503 while `isHeld`, except to health checks and metrics. So do requests that arrived
 * before and end after a hold: they may have read a database that went back in time.
 */
export function refuseWhileHeld(app: FastifyInstance, { isHeld, holds, confirm }: Held): void {
  app.decorateRequest('holds', -1)
  app.addHook('onRequest', (request, _reply, done) => {
    if (isProbe(request)) return done()
    request.holds = holds()
    done(isHeld() ? replaced() : undefined)
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.holds < 0 || reply.statusCode >= 500) return done(null, payload)
    const send = () => {
      if (request.holds !== holds()) done(replaced())
      else done(null, payload)
    }
    if (confirm) void confirm().then(send)
    else send()
  })
}

/** Health checks and metrics are neither refused nor delayed. */
export function isProbe({ routeOptions }: FastifyRequest): boolean {
  return /^\/(?:health|metrics)/.test(routeOptions.url ?? '')
}

function replaced(): ApiError {
  return new ApiError('unavailable', 'The database was replaced and is being checked; try again.', {
    headers: { 'retry-after': '5' },
  })
}
