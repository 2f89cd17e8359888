import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyError,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import type { ReadBody } from './arrivals.ts'
import { withoutBasePath } from './base-path.ts'
import { addJsonParser, bodyBytesMaximum } from './body.ts'
import { type Authenticate, requireCallers } from './callers.ts'
import { type DepartureLimits, endSlowReaders } from './departures.ts'
import { errorHandler, outageOf } from './errors.ts'
import { type Pace, refusedMilliseconds, spaceOut } from './pace.ts'
import { parseQuery, refuseBrokenQueries } from './query.ts'
import {
  answerAfterBodies,
  handleExpectations,
  refusalOfTarget,
  refuseAmbiguousHeaders,
  refuseStrangeTarget,
  refuseUnknownInput,
} from './requests.ts'
import { pathOf, refuseUnknownRoutes, type SendPage } from './unknown-paths.ts'
import { validatorCompiler } from './validation.ts'

export type ErrorHandler = (
  error: FastifyError | ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
) => FastifyReply

export interface ServerOptions {
  log: Log
  metrics: Metrics
  readBody: ReadBody
  pace: Pace
  /** For requests under /v1 that cannot be routed. */
  authenticate: Authenticate
  /** For requests under /ingest that cannot be routed. */
  handleIngestError: ErrorHandler
  sendPage?: SendPage | undefined
  departureLimits?: DepartureLimits | undefined
  /** The proxies whose X-Forwarded-For is trusted: their number or their addresses. */
  trustProxy?: number | string[] | undefined
  /** As in `/lethe`: a prefix that paths of requests may have. */
  basePath?: string | undefined
}

const urlBytesMaximum = 8_192

/** Creates the server without routes. */
export function httpServer(options: ServerOptions) {
  const app = Fastify(fastifyOptions(options)).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(validatorCompiler)
  // Not checked here: the tests compare responses with the contract's schemas.
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler(errorHandler(options.log))
  addJsonParser(app, options.readBody)
  handleExpectations(app.server)
  endSlowReaders(app.server, options.departureLimits)
  observeRequests(app, options)
  requireCallers(app)
  refuseUnknownRoutes(app, options.sendPage)
  refuseUnknownInput(app)
  refuseBrokenQueries(app)
  spaceOut(app, options.pace)
  answerAfterBodies(app, options.pace)
  closeConnectionsThatGoIdle(app)
  return app
}

function fastifyOptions({
  log,
  authenticate,
  handleIngestError,
  trustProxy = [],
  basePath = '',
}: ServerOptions): FastifyHttpOptions<Server> {
  const handleError = errorHandler(log)
  const strip = withoutBasePath(basePath)
  return {
    ...(basePath !== '' && { rewriteUrl: ({ url = '' }) => strip(url) }),
    trustProxy:
      typeof trustProxy === 'number'
        ? (_address, hop) => hop < trustProxy
        : trustProxy.length > 0 && trustProxy,
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: bodyBytesMaximum,
    requestTimeout: 30_000,
    // The time without any progress.
    connectionTimeout: 60_000,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: 32_768,
      // We refuse it ourselves, in the common error shape.
      requireHostHeader: false,
    },
    routerOptions: {
      // An externalId of 200 characters takes up to 2,400 bytes; longer ones get their 404 from us.
      maxParamLength: urlBytesMaximum,
      querystringParser: parseQuery,
    },
    // `__proto__` is a valid property key; nothing here copies bodies key by key.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // A URL that cannot be routed reaches no hook, so authentication happens here. The path decides
    // only which refusal is sent.
    frameworkErrors: (error, request, reply) => {
      const target = request.raw.url ?? ''
      const path = pathOf(target)
      const handle = path.startsWith('/ingest/') ? handleIngestError : handleError
      const known = async () => /^\/v1(?:\/|$)/.test(path) && authenticate(request)
      const refusal = error.code === 'FST_ERR_BAD_URL' ? refusalOfTarget(target) : error
      known().then(
        () => handle(refusal, request, reply),
        (refusal) => handle(refusal, request, reply),
      )
    },
    clientErrorHandler: answerBrokenRequest,
  }
}

// The hooks below use callbacks: promises would cost a tenth of the time of a request.

function observeRequests(app: FastifyInstance, { log, metrics }: ServerOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    try {
      refuseAmbiguousHeaders(request.raw)
      refuseStrangeTarget(request.raw)
      if ((request.raw.url ?? '').length > urlBytesMaximum) {
        throw new ApiError('uri_too_long', 'The URL is too long.')
      }
    } catch (refusal) {
      return done(refusal as Error)
    }
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    metrics.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime / 1_000)
    const outage = outageOf(request)
    const level = reply.statusCode >= 500 ? 'error' : reply.statusCode >= 400 ? 'info' : 'debug'
    log.event(level, 'request', {
      requestId: request.id,
      method: request.method,
      route,
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
      ...(outage !== undefined && { code: outage }),
      ...(request.projectIdIfAny !== undefined && { projectId: request.projectIdIfAny }),
    })
    done()
  })
}

/**
 * Closes connections that become idle while the server closes: they would be kept open for a next
 * request.
 */
function closeConnectionsThatGoIdle(app: FastifyInstance): void {
  let sweeping: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    sweeping = setInterval(() => app.server.closeIdleConnections(), 100)
  })
  app.addHook('onClose', async () => clearInterval(sweeping))
}

const brokenMilliseconds = 2_000

/** Responds to invalid HTTP, which reaches no route and no hook. */
function answerBrokenRequest(
  error: Error & { code?: string; rawPacket?: unknown },
  socket: Socket,
) {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const refusal = refusalOfBroken(error)
  const requestId = randomUUID()
  const body = JSON.stringify(refusal.body(requestId))
  // The client may keep its half of the connection open.
  setTimeout(() => socket.destroy(), brokenMilliseconds).unref()
  const head =
    `HTTP/1.1 ${refusal.status} ${refusal.code}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`
  setTimeout(() => socket.end(head + body), refusedMilliseconds).unref()
}

function refusalOfBroken({ code, rawPacket }: { code?: string; rawPacket?: unknown }): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return Buffer.isBuffer(rawPacket) && rawPacket.subarray(0, urlBytesMaximum).includes(0x0a)
        ? new ApiError('headers_too_large', 'The headers are too large.')
        : new ApiError('uri_too_long', 'The URL is too long.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'The request took too long to arrive.')
    default:
      return new ApiError('invalid_request', 'The request is not valid HTTP.')
  }
}
