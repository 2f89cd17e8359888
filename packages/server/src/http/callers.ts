import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { refuseConditions } from './requests.ts'

/** Who may call a route. `member`: the table of permissions (members/access.ts) says which ones. */
export type Caller = 'secret key' | 'public key' | 'member' | 'anyone'

/** Sets the request's project and key, and returns headers of the response; throws a refusal. */
export type Authenticate = (
  request: FastifyRequest,
) => Record<string, string> | Promise<Record<string, string>>

declare module 'fastify' {
  interface FastifyContextConfig {
    caller?: Caller
  }
  interface FastifyInstance {
    /** All routes. */
    everyRoute: readonly RouteOptions[]
  }
  interface FastifyRequest {
    /** Throws on a route without a project. */
    projectId: number
    projectIdIfAny: number | undefined
    /** The id of the request's key; empty on routes that need none. */
    keyId: string
  }
}

/** Records all routes in `everyRoute`; a server whose route declares no callers does not start. */
export function requireCallers(app: FastifyInstance): void {
  const routes: RouteOptions[] = []
  app.decorate('everyRoute', routes)
  app.addHook('onRoute', (route) => {
    routes.push(route)
  })
  app.addHook('onReady', async () => {
    const undecided = routes.find(({ config }) => config?.caller === undefined)
    if (undecided) throw new Error(`No callers are declared for ${undecided.url}`)
  })
  app.decorateRequest('projectIdIfAny', undefined)
  app.decorateRequest('projectId', {
    getter() {
      if (this.projectIdIfAny === undefined) throw new Error('This route has no project')
      return this.projectIdIfAny
    },
    setter(id: number) {
      this.projectIdIfAny = id
    },
  })
  app.decorateRequest('keyId', '')
}

/** Sets the callers of all routes registered in this scope from here on. */
export function answerTo(scope: FastifyInstance, caller: Caller): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, caller }
  })
}

/**
 * Requires a secret key for all routes of a scope. The check belongs to the matched route, because
 * a URL can be spelled in many ways.
 */
export function answerToSecretKeys(scope: FastifyInstance, authenticate: Authenticate): void {
  answerTo(scope, 'secret key')
  refuseConditions(scope)
  // With a callback: a promise for each hook and request costs a tenth of a request.
  scope.addHook('onRequest', (request, reply, done) => {
    const go = (headers: Record<string, string>) => {
      reply.headers(headers).header('cache-control', 'no-store')
      done()
    }
    try {
      const headers = authenticate(request)
      if (headers instanceof Promise) headers.then(go, done)
      else go(headers)
    } catch (refusal) {
      done(refusal as Error)
    }
  })
}
