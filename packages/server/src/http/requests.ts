import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { type Pace, partBytes } from './pace.ts'

/** Asks the client to send its body; undefined once it was asked. */
const sendContinue = Symbol('send continue')

type Expecting = IncomingMessage & { [sendContinue]?: () => void }

/**
 * Handles what Node would respond to by itself: refuses `Expect` and a missing `Host` in the common
 * error shape, and sends `100 Continue` only after authentication, when the body is about to be read.
 */
export function handleExpectations(server: Server): void {
  // A client that closes its half of the connection after its request still gets the response.
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
  server.on('checkContinue', (request: Expecting, response: ServerResponse) => {
    request[sendContinue] = () => response.writeContinue()
    server.emit('request', request, response)
  })
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** Call this right before reading a body. */
export function continueRequest(request: Expecting): void {
  request[sendContinue]?.()
  delete request[sendContinue]
}

/** Whether a body is announced, of whatever length. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/**
 * Requires exactly one Host (HTTP/1.1) and at most one key. Of two, a proxy could check one and Node
 * use the other.
 */
export function refuseAmbiguousHeaders(request: IncomingMessage): void {
  const { rawHeaders, httpVersion } = request
  const { 'transfer-encoding': coding = 'chunked' } = request.headers
  let hosts = 0
  let keys = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 13 && name.toLowerCase() === 'authorization') keys += 1
  }
  if (keys > 1) throw invalid('/headers/authorization', 'must be sent only once')
  // Node accepts `gzip, chunked` without decompressing; a proxy may decompress it.
  if (!/^chunked$/i.test(coding)) throw invalid('/headers/transfer-encoding', 'must be chunked')
  if (hosts === 1 || (hosts === 0 && httpVersion === '1.0')) return
  throw invalid('/headers/host', 'must be sent exactly once')
}

/** The router ignores the first character of a target, so `*` would be `/`. */
export function refuseStrangeTarget({ url = '' }: IncomingMessage): void {
  if (url.startsWith('/') || /^https?:\/\//i.test(url)) return
  throw strangeTarget()
}

/** The error for a target that the router cannot read. */
export function refusalOfTarget(target: string): ApiError {
  try {
    decodeURI(target)
    return strangeTarget()
  } catch {
    return new ApiError('invalid_request', 'The URL has an invalid percent-encoding.')
  }
}

function strangeTarget(): ApiError {
  return new ApiError('invalid_request', 'The target of a request must be a path or an http URL.')
}

const bodyless = new Set(['GET', 'HEAD', 'DELETE'])

/** Refuses input that no route reads. Authentication comes first. */
export function refuseUnknownInput(app: FastifyInstance): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    try {
      refuseExpectation(request)
      refuseBody(request)
    } catch (refusal) {
      return done(refusal as Error)
    }
    done(null, payload)
  })
}

function refuseExpectation({ headers }: FastifyRequest): void {
  if (headers.expect === undefined || /^100-continue$/i.test(headers.expect)) return
  throw new ApiError('expectation_failed', 'The only supported value of Expect is 100-continue.')
}

function refuseBody({ method, raw, headers }: FastifyRequest): void {
  if (!bodyless.has(method)) return
  if (hasBody(raw))
    throw invalid('/body', `is not allowed with ${method}; options go into the query`)
  // Many clients send a Content-Type without a body.
  delete headers['content-type']
}

/**
 * Refuses conditional headers, because resources have no ETags to compare: ignoring the condition
 * could do what the client wanted to prevent. `If-None-Match` on a read is harmless.
 */
export function refuseConditions(scope: FastifyInstance): void {
  scope.addHook('preParsing', ({ method, headers }, _reply, payload, done) => {
    const isRead = method === 'GET' || method === 'HEAD'
    const names = isRead ? conditionsOfReads : conditionsOfWrites
    const name = names.find((one) => headers[one] !== undefined)
    done(name ? invalid(`/headers/${name}`, 'is a condition that is not supported') : null, payload)
  })
}

const conditionsOfReads = ['if-match', 'if-unmodified-since']
const conditionsOfWrites = [...conditionsOfReads, 'if-none-match']

/** How much of a refused body is read and discarded, so that the client sees the response. */
const drainBytesMaximum = 16 * 1_048_576
const drainMilliseconds = 10_000
const silenceMilliseconds = 1_000

/**
 * Delays a refusal until the client has sent its body: a client that is still sending would see a
 * broken connection and no status. A body that is too large or too slow is cut off.
 */
export function answerAfterBodies(app: FastifyInstance, pace: Pace): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const raw: Expecting = request.raw
    if (raw.complete || raw.readableEnded || !hasBody(raw)) return done(null, payload)
    const goOn = (isWhole: boolean) => {
      if (!isWhole) reply.header('connection', 'close')
      done(null, payload)
    }
    // The client waits for the response before it sends the body.
    if (raw[sendContinue]) goOn(false)
    else drain(request, pace, goOn)
  })
}

/** Reads and discards the rest of a body; returns whether that was all of it. */
function drain(request: FastifyRequest, pace: Pace, done: (isWhole: boolean) => void): void {
  const body = request.raw
  let bytes = 0
  let resting: NodeJS.Timeout | undefined
  const end = () => {
    clearTimeout(longest)
    clearTimeout(silence)
    clearTimeout(resting)
    body.off('data', forget).off('end', end).off('close', end).off('error', end)
    if (!body.complete) body.pause()
    done(body.complete)
  }
  const forget = (part: Buffer) => {
    bytes += part.length
    silence.refresh()
    if (bytes > drainBytesMaximum) return end()
    const rest = pace(request, part.length / partBytes)
    if (rest === 0) return
    body.pause()
    resting = setTimeout(() => {
      silence.refresh()
      body.resume()
    }, rest)
  }
  const longest = setTimeout(end, drainMilliseconds)
  const silence = setTimeout(() => {
    if (!body.isPaused()) end()
  }, silenceMilliseconds)
  body.on('data', forget).on('end', end).on('close', end).on('error', end)
  body.resume()
}
