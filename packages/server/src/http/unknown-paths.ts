import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'

/** Sends a page of the dashboard if the request is for one; otherwise returns undefined. */
export type SendPage = (request: FastifyRequest, reply: FastifyReply) => unknown

/** Refuses requests that match no route before their body is read. */
export function refuseUnknownRoutes(app: FastifyInstance, sendPage: SendPage | undefined): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done()
    const page = sendPage?.(request, reply)
    if (page === undefined) done(unknownRoute(app, request))
    else Promise.resolve(page).catch(done)
  })
  // Never reached, but without it Fastify uses its own error text.
  app.setNotFoundHandler((request) => {
    throw unknownRoute(app, request)
  })
}

/** Refuses unknown paths below `prefix` after authentication: only the scope's callers see them. */
export function refuseUnknownBelow(scope: FastifyInstance, prefix: string): void {
  for (const url of [prefix, `${prefix}/*`]) {
    scope.route({
      method: scope.supportedMethods,
      url,
      schema: { hide: true },
      config: { isUnknown: true },
      onRequest: (request, _reply, done) => done(unknownRoute(scope, request)),
      handler: async () => {},
    })
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route matches all unknown paths. */
    isUnknown?: boolean
  }
}

export function unknownRoute(app: FastifyInstance, { url, method }: FastifyRequest): ApiError {
  const path = pathOf(url)
  const allowed = new Set<string>()
  for (const route of app.everyRoute) {
    if (route.config?.isUnknown || !patternOf(route.url).test(path)) continue
    for (const one of [route.method].flat()) allowed.add(one)
  }
  if (allowed.size === 0 || allowed.has(method)) {
    return new ApiError('not_found', 'There is nothing at this path.')
  }
  return new ApiError('method_not_allowed', 'This path does not accept this method.', {
    headers: { allow: [...allowed].join(', ') },
  })
}

/** The path of a request as the router sees it: without an origin, and decoded except for slashes. */
export function pathOf(target: string): string {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/)
  return path.replaceAll(/%(?!2f)[0-7][0-9a-f]/gi, (code) => decodeURIComponent(code))
}

const patterns = new Map<string, RegExp>()

function patternOf(url: string): RegExp {
  let pattern = patterns.get(url)
  if (!pattern) {
    pattern = new RegExp(
      `^${url.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`,
    )
    patterns.set(url, pattern)
  }
  return pattern
}
