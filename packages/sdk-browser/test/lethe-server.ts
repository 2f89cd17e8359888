import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { RecordingSettings } from '@lethe/contract/ingest.ts'

/** One request as it came in. `events` are those of a chunk. */
export interface Received {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingMessage['headers']
  bytes: number
  isGzip: boolean
  text: string
  status: number
}

export interface StoredChunk {
  browser: string
  session: string
  tab: string
  number: number
  // biome-ignore lint/suspicious/noExplicitAny: events of many shapes
  events: any[]
}

interface Result {
  status: number
  body: object
  headers?: Record<string, string>
}

type Script = (request: Received) => Result | undefined

const settings: RecordingSettings = {
  masking: 'open',
  assets: true,
  sampleRate: 1,
  sessionIdleSeconds: 1800,
  sessionMaximumSeconds: 86_400,
  chunkBytesMaximum: 1_000_000,
}

export type LetheServer = Awaited<ReturnType<typeof startLetheServer>>

/**
 * Speaks the ingestion protocol as the contract has it, from memory, and serves the built SDK. A
 * test looks at what came in, and can make the server refuse, fall silent or retire a browser.
 */
export async function startLetheServer(dist: string) {
  const received: Received[] = []
  const chunks: StoredChunk[] = []
  const browsers = new Map<string, { userId?: string; retired: boolean }>()
  const state = {
    settings: { ...settings },
    isDown: false,
    script: undefined as Script | undefined,
  }

  const server = createServer((request, response) => {
    if (state.isDown) return request.socket.destroy()
    void answer(request, response)
  })
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '', 'http://lethe')
    response.setHeader('access-control-allow-origin', '*')
    if (url.pathname.startsWith('/sdk/')) return serve(url.pathname, response)
    const parts: Buffer[] = []
    try {
      for await (const part of request) parts.push(part)
    } catch {
      return
    }
    const body = Buffer.concat(parts)
    const isGzip = body[0] === 0x1f && body[1] === 0x8b
    const one: Received = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      bytes: body.length,
      isGzip,
      text: (isGzip ? gunzipSync(body) : body).toString(),
      status: 0,
    }
    received.push(one)
    const result: Result = state.script?.(one) ?? handle(one)
    one.status = result.status
    for (const [name, value] of Object.entries(result.headers ?? {}))
      response.setHeader(name, value)
    response.writeHead(result.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(result.body))
  }
  const serve = async (path: string, response: ServerResponse) => {
    const text = await readFile(join(dist, path.split('/').slice(3).join('/')), 'utf8')
    response.writeHead(200, { 'content-type': 'text/javascript' })
    response.end(text)
  }
  const handle = (request: Received) => {
    if (request.method !== 'POST') return { status: 405, body: refusal('continue') }
    if (request.path === '/ingest/v1/start') return start(request)
    if (request.path === '/ingest/v1/identify') return identify(request)
    if (request.path === '/ingest/v1/chunks') return store(request)
    return { status: 404, body: refusal('continue') }
  }
  const start = ({ text }: Received) => {
    const { browserId = randomUUID() } = JSON.parse(text)
    if (browsers.get(browserId)?.retired) return { status: 410, body: refusal('new_browser') }
    if (!browsers.has(browserId)) browsers.set(browserId, { retired: false })
    const body = { next: 'continue', browserId, sessionId: randomUUID(), settings: state.settings }
    return { status: 200, body }
  }
  const identify = ({ text }: Received) => {
    const { browserId, userId } = JSON.parse(text)
    const browser = browsers.get(browserId)
    if (!browser || browser.retired) return { status: 410, body: refusal('new_browser') }
    if (browser.userId && browser.userId !== userId) {
      return { status: 200, body: { next: 'new_browser' } }
    }
    browser.userId = userId
    return { status: 200, body: { next: 'continue' } }
  }
  const store = ({ query, text }: Received) => {
    const { browser = '', session = '', tab = '', number } = query
    if (browsers.get(browser)?.retired !== false) {
      return { status: 410, body: refusal('new_browser') }
    }
    const events = text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    const chunk = { browser, session, tab, number: Number(number), events }
    const isSame = (each: StoredChunk) =>
      each.session === session && each.tab === tab && each.number === chunk.number
    if (!chunks.some(isSame)) chunks.push(chunk)
    return { status: 200, body: { next: 'continue' } }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    chunks,
    browsers,
    state,
    /** Everything stored so far, in the order of each tab. */
    events: (belongs: (chunk: StoredChunk) => boolean = () => true) =>
      chunks
        .filter(belongs)
        .sort((a, b) => a.number - b.number)
        .flatMap((chunk) => chunk.events),
    requests: (endpoint: string) =>
      received.filter(({ path }) => path === `/ingest/v1/${endpoint}`),
    retire(userId: string) {
      for (const browser of browsers.values()) if (browser.userId === userId) browser.retired = true
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const refusal = (next: string, retryAfterSeconds?: number) => ({
  error: { code: 'of_a_test', message: 'Refused by a test.', requestId: '1' },
  next,
  retryAfterSeconds,
})
