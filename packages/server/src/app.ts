import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyRequest,
} from 'fastify'
import { ApiError } from './api-error.ts'
import { readBodyBytes } from './body-bytes.ts'
import { type Cursors, cursorsSignedWith } from './cursor.ts'
import type { DashboardOptions } from './dashboard/context.ts'
import { dashboardRoutes } from './dashboard/mount.ts'
import { isForPage, type Pages, pageRoutes, sendPage } from './dashboard/pages.ts'
import { deletionJobRoutes } from './erasure/routes.ts'
import { errorHandler, sendError } from './error-handler.ts'
import { healthRoutes } from './health.ts'
import { parseJsonBody } from './json-body.ts'
import { readLargeJsonBody } from './large-json-body.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { openApiOptions } from './openapi.ts'
import { personRoutes } from './persons/routes.ts'
import { keyFinder, secretKeyAuthentication } from './projects/authenticate.ts'
import type { RateLimit } from './projects/rate-limit.ts'
import { demoRoutes } from './recordings/demo.ts'
import { ingestErrorHandler } from './recordings/ingest-answers.ts'
import type { IngestLimits } from './recordings/ingest-gate.ts'
import { ingestRoutes } from './recordings/ingest-routes.ts'
import { sessionRoutes } from './recordings/routes.ts'
import { type Sdk, sdkRoutes } from './recordings/sdk-files.ts'
import type { Recordings } from './recordings/upload.ts'
import type { Db } from './sql.ts'
import { validatorCompiler } from './validation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The project of the key the request came with; 0 on routes that need no key. */
    projectId: number
    /** That key's id; empty on routes that need none. */
    keyId: string
  }
}

export interface AppOptions {
  db: Db
  log: Log
  metrics: Metrics
  cursorKey: Buffer
  rateLimit?: RateLimit
  /** Without it the service takes and shows no recordings. */
  recordings?: Recordings
  ingestLimits?: IngestLimits
  /** The files of the browser SDK; undefined where they are not built. */
  sdk?: Sdk | undefined
  /** The public key of the demo page; without it there is no such page. */
  findDemoKey?: () => Promise<string | undefined>
  /** Without it there is the server API alone. */
  dashboard?: DashboardOptions
  /** The files of the dashboard; undefined where they are not built. */
  pages?: Pages | undefined
  /** Whose X-Forwarded-For is believed: how many proxies there are, or their addresses. */
  trustProxy?: number | string[]
}

const bodyBytesMaximum = 1_048_576
const urlBytesMaximum = 8_192

/** A body above this can take longer to read than other requests should wait. */
const smallBodyBytes = 16_384

export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { db, log } = options
  const cursors: Cursors = cursorsSignedWith(options.cursorKey)
  const authenticate = secretKeyAuthentication(keyFinder(db.short), options.rateLimit)
  const app = Fastify(serverOptions(options, authenticate)).withTypeProvider<TypeBoxTypeProvider>()

  app.setValidatorCompiler(validatorCompiler)
  // Answers are made of checked rows; the contract's shapes of them are held by the tests.
  app.setSerializerCompiler(() => JSON.stringify)
  app.setErrorHandler(errorHandler(log))
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    (request: FastifyRequest, payload: IncomingMessage, done) =>
      readBodyBytes(payload, bodyBytesMaximum, (error, bytes) => {
        if (bytes) readJsonBody(request, bytes, done)
        else done(error)
      }),
  )

  observeRequests(app, options)
  requireSecretKeys(app, authenticate)
  refuseBrokenQueries(app)
  refuseUnknownRoutes(app, options)
  closeConnectionsThatGoIdle(app)
  await app.register(swagger, openApiOptions)
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true })
  await app.register(healthRoutes, { db, metrics: options.metrics })
  await app.register(personRoutes, { db, cursors })
  await app.register(deletionJobRoutes, { db, cursors })
  await registerRecordings(app, cursors, options)
  await registerDashboard(app, cursors, options)
  return app
}

async function registerDashboard(app: FastifyInstance, cursors: Cursors, options: AppOptions) {
  const { db, log, recordings, dashboard, pages } = options
  if (!dashboard) return
  await app.register(dashboardRoutes, { ...dashboard, db, log, cursors, recordings })
  pageRoutes(app, { ...dashboard, pages })
}

async function registerRecordings(app: FastifyInstance, cursors: Cursors, options: AppOptions) {
  const { recordings, log, sdk, findDemoKey } = options
  if (!recordings) return
  const limits = options.ingestLimits ?? { perAddress: 0, perProject: 0 }
  await app.register(ingestRoutes, { recordings, limits, log })
  await app.register(sessionRoutes, { recordings, cursors, log })
  if (!sdk) return
  await app.register(sdkRoutes, { blobs: recordings.blobs, sdk })
  if (findDemoKey) await app.register(demoRoutes, { sdk, findKey: findDemoKey })
}

type Authenticate = ReturnType<typeof secretKeyAuthentication>

function serverOptions(
  { log, trustProxy = [] }: AppOptions,
  authenticate: Authenticate,
): FastifyHttpOptions<Server> {
  const handleError = errorHandler(log)
  const handleIngestError = ingestErrorHandler(log)
  return {
    trustProxy:
      typeof trustProxy === 'number'
        ? (_address, hop) => hop < trustProxy
        : trustProxy.length > 0 && trustProxy,
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: bodyBytesMaximum,
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: { headersTimeout: 10_000, maxHeaderSize: 32_768 },
    routerOptions: {
      // An id of 200 characters is up to 2,400 bytes of a URL; longer ones get their 404 from us.
      maxParamLength: urlBytesMaximum,
      querystringParser: parseQuery,
    },
    // `__proto__` is a property key like any other; nothing here copies bodies key by key.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // A URL that cannot be routed never reaches the hooks; whose request it is comes first here too.
    frameworkErrors: (error, request, reply) => {
      const handle = request.raw.url?.startsWith('/ingest/') ? handleIngestError : handleError
      const known = async () => needsSecretKey(request) && authenticate(request)
      known().then(
        () => handle(error, request, reply),
        (refusal) => handle(refusal, request, reply),
      )
    },
    clientErrorHandler: answerBrokenRequest,
  }
}

type BodyRead = (error: Error | null, body?: unknown) => void

// With a callback, as the hooks below.
function readJsonBody(request: FastifyRequest, bytes: Buffer, done: BodyRead): void {
  let body: unknown
  try {
    requireJson(request)
    if (bytes.length > smallBodyBytes) {
      readLargeJsonBody(bytes).then((read) => done(null, read), done)
      return
    }
    // Clients that name the type of a body they do not send are many.
    if (bytes.length > 0) body = parseJsonBody(bytes)
  } catch (error) {
    done(error as Error)
    return
  }
  done(null, body)
}

function requireJson({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding'] ?? 'identity'
  const charset = /charset="?([^";]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8'
  if (encoding !== 'identity' || !/^utf-?8$/i.test(charset)) {
    throw new ApiError('unsupported_media_type', 'Send the body as application/json in UTF-8.')
  }
}

type Query = Record<string, string | string[]> & { [isBroken]?: true }

/** Marks a query that is no valid percent-encoding: the router's parser of queries may not throw. */
const isBroken = Symbol('broken query')

/** The query as names and texts; a name that comes twice is a list, which no parameter takes. */
function parseQuery(text: string): Query {
  const query: Query = Object.create(null)
  for (const part of text.split('&')) {
    if (part === '') continue
    const cut = part.includes('=') ? part.indexOf('=') : part.length
    try {
      const name = decodeQueryText(part.slice(0, cut))
      const value = decodeQueryText(part.slice(cut + 1))
      const known = query[name]
      query[name] = known === undefined ? value : [known, value].flat()
    } catch {
      query[isBroken] = true
    }
  }
  return query
}

function decodeQueryText(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

// The hooks below take a callback, as a promise for each of them and each request costs a tenth of it.

function observeRequests(app: FastifyInstance, { log, metrics }: AppOptions): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    const isTooLong = request.raw.url && request.raw.url.length > urlBytesMaximum
    done(isTooLong ? new ApiError('uri_too_long', 'The URL is too long.') : undefined)
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unknown'
    metrics.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime / 1_000)
    log.event(reply.statusCode >= 400 ? 'info' : 'debug', 'request', {
      requestId: request.id,
      method: request.method,
      route,
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
      projectId: request.projectId,
    })
    done()
  })
}

function needsSecretKey(request: FastifyRequest): boolean {
  return /^\/v1(?:[/?]|$)/.test(request.raw.url ?? '')
}

/** Everything under /v1 needs a secret key, also what does not exist there. */
function requireSecretKeys(app: FastifyInstance, authenticate: Authenticate): void {
  app.decorateRequest('projectId', 0)
  app.decorateRequest('keyId', '')
  app.addHook('onRequest', (request, reply, done) => {
    if (!needsSecretKey(request)) return done()
    const headers = authenticate(request)
    const go = (found: Record<string, string>) => {
      reply.headers(found)
      done()
    }
    if (headers instanceof Promise) headers.then(go, done)
    else go(headers)
  })
}

function refuseBrokenQueries(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const refused = (request.query as Query)[isBroken]
      ? new ApiError('invalid_request', 'The URL has an invalid percent-encoding.')
      : undefined
    done(refused)
  })
}

function refuseUnknownRoutes(app: FastifyInstance, { dashboard, pages }: AppOptions): void {
  const methods = new Map<string, { pattern: RegExp; allowed: Set<string> }>()
  app.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(`^${url.replace(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`)
    const known = methods.get(url) ?? { pattern, allowed: new Set() }
    for (const one of [method].flat()) known.allowed.add(one)
    methods.set(url, known)
  })
  app.setNotFoundHandler((request, reply) => {
    if (dashboard && isForPage(request)) return sendPage(request, reply, { ...dashboard, pages })
    const [path = ''] = (request.raw.url ?? '').split('?')
    const allowed = [...methods.values()].filter(({ pattern }) => pattern.test(path))
    const refusal =
      allowed.length === 0
        ? new ApiError('not_found', 'There is nothing at this path.')
        : new ApiError('method_not_allowed', 'This path does not take this method.', {
            headers: { allow: allowed.flatMap((one) => [...one.allowed]).join(', ') },
          })
    return sendError(reply, request, refusal)
  })
}

/**
 * A connection that was in use when the closing began goes idle with its answer, and would then be
 * kept for the client's next request, which never comes.
 */
function closeConnectionsThatGoIdle(app: FastifyInstance): void {
  let sweeping: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    sweeping = setInterval(() => app.server.closeIdleConnections(), 100)
  })
  app.addHook('onClose', async () => clearInterval(sweeping))
}

/** Answers what is no HTTP that Fastify could route: its parts never reach a route or a hook. */
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
  socket.end(
    `HTTP/1.1 ${refusal.status} ${refusal.code}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
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
