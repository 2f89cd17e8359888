import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** How often the database was held when the request arrived; -1: the request does not need it. */
    holds: number
  }
}

export interface Held {
  isHeld(): boolean
  /** How often it was held so far. */
  holds(): number
  /** Where it takes a look to know: holds unless what was read so far came from the server from before. */
  confirm?(): Promise<void>
}

/**
 * While `isHeld`, everything but health and metrics is 503. So is what was let in before and comes to
 * its end after: it may have been read from a database that went back in time.
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
