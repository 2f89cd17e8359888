import { once } from 'node:events'
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Passing {
  method: string
  /** Path and query. */
  url: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface Answer {
  status: number
  body: string
}

/** What befalls a request: nothing, a response in the server's place, or one of the misfortunes. */
export type Fate =
  | undefined
  | Answer
  /** It never reaches the server, and no response comes. */
  | 'swallowed'
  /** The server does it, and the connection breaks before the response. */
  | 'answer_lost'
  /** The server does it, and its response stops in the middle. */
  | 'answer_stops'
  /** The response is changed on its way. */
  | ((answer: Answer) => Answer)

export interface FaultyProxy {
  endpoint: string
  /** Decides about each request; replace it at will. */
  fate: (passing: Passing) => Fate
  /** What came by, oldest first. */
  seen: Passing[]
  stop(): Promise<void>
}

/** Stands between the S3 client and a real server and lets things go wrong. */
export async function startFaultyProxy(endpoint: string): Promise<FaultyProxy> {
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const passing = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      body,
    }
    proxy.seen.push(passing)
    const fate = proxy.fate(passing)
    if (fate === 'swallowed') return
    if (typeof fate === 'object') return send(response, fate)
    const answer = await forward(endpoint, request, body)
    await deliver(response, answer, fate)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: FaultyProxy = {
    endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    fate: () => undefined,
    seen: [],
    async stop() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return proxy
}

type Forwarded = { message: IncomingMessage; body: Buffer }

// The signature covers the host as the client named it, so that header goes on unchanged.
async function forward(endpoint: string, from: IncomingMessage, body: Buffer): Promise<Forwarded> {
  const to = httpRequest(new URL(from.url ?? '', endpoint), {
    method: from.method ?? 'GET',
    headers: from.headers,
  })
  to.end(body)
  const [message] = (await once(to, 'response')) as [IncomingMessage]
  return { message, body: await buffer(message) }
}

async function deliver(response: ServerResponse, { message, body }: Forwarded, fate: Fate) {
  if (fate === 'answer_lost') return response.destroy()
  if (typeof fate === 'function') {
    return send(response, fate({ status: message.statusCode ?? 500, body: body.toString() }))
  }
  const { 'transfer-encoding': _, ...headers } = message.headers
  const length = message.method === 'HEAD' ? {} : { 'content-length': String(body.length) }
  response.writeHead(message.statusCode ?? 500, { ...headers, ...length })
  if (fate === 'answer_stops') return response.write(body.subarray(0, body.length >> 1))
  return response.end(body)
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(body)
}

/** A response as S3 refuses. */
export const s3Error = (status: number, code: string): Answer => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`,
})
