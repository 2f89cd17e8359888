import { hash, randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import {
  otherLoopback,
  replayIsolation,
  replayPath,
  replayPolicy,
  replayUrlFor,
} from '@lethe/contract/dashboard-replay.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ownPaths } from '../config.ts'
import { pathOf } from '../http/unknown-paths.ts'

/** The built files of the dashboard, by path, in memory. */
export type Pages = ReadonlyMap<string, PageFile>

interface PageFile {
  bytes: Buffer
  type: string
  etag: string
  /** Compresses at the first call; undefined for formats that are already compressed. */
  gzipped: (() => Promise<Buffer>) | undefined
}

const compress = promisify(gzip)

const typeOf: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}

/**
 * Reads the build of the dashboard; returns undefined if there is none. All paths serve the same page,
 * so its URLs are changed to absolute paths below the base path.
 */
export async function readPages(folder: string, basePath = ''): Promise<Pages | undefined> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    },
  )
  const files = await Promise.all(
    names
      .filter((entry) => entry.isFile() && extname(entry.name) in typeOf)
      .map(async (entry) => {
        const path = join(entry.parentPath, entry.name)
        const bytes = await readFile(path)
        const isIndex = path === join(folder, 'index.html')
        const file = pageFile(path, isIndex ? belowBasePath(bytes, basePath) : bytes)
        return [path.slice(folder.length), file] as const
      }),
  )
  const pages = new Map(files)
  return pages.has('/index.html') ? pages : undefined
}

function belowBasePath(html: Buffer, basePath: string): Buffer {
  return Buffer.from(
    html
      .toString()
      .replaceAll(/\b(href|src)="\.?\//g, (_, name) => `${name}="${basePath}/`)
      .replace('name="base-path" content=""', () => `name="base-path" content="${basePath}"`),
  )
}

function pageFile(path: string, bytes: Buffer): PageFile {
  const extension = extname(path)
  const isText = !/^\.(?:png|ico|woff2)$/.test(extension)
  let gzipping: Promise<Buffer> | undefined
  return {
    bytes,
    type: typeOf[extension] as string,
    etag: `"${hash('sha256', bytes, 'base64url').slice(0, 27)}"`,
    gzipped: isText
      ? () => {
          gzipping ??= compress(bytes, { level: 9 })
          return gzipping
        }
      : undefined,
  }
}

export interface PageOptions {
  pages: Pages | undefined
  /** As in DashboardOptions. */
  publicUrl: string
  replayUrl: string
}

/** Serves the dashboard's files, each at its own path, and its pages. */
export function pageRoutes(app: FastifyInstance, options: PageOptions): void {
  const { pages } = options
  const get = (url: string, answer: (request: FastifyRequest, reply: FastifyReply) => unknown) =>
    app.get(url, { schema: { hide: true } }, async (request, reply) => answer(request, reply))

  get('/', (request, reply) => sendPage(request, reply, options))
  if (!pages) return
  get(replayPath, (request, reply) => sendReplayFrame(request, reply, options))
  for (const [path, file] of pages) {
    if (path.endsWith('.html')) continue
    const isHashed = path.startsWith('/assets/')
    get(path, (request, reply) => {
      reply.header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
      return sendFile(request, reply, file)
    })
  }
}

/** Whether an unrouted request is a browser that opens a page: all pages are the same file. */
export function isForPage({ method, headers, raw }: FastifyRequest): boolean {
  const path = pathOf(raw.url ?? '')
  return (
    (method === 'GET' || method === 'HEAD') &&
    !ownPaths.test(path) &&
    (headers.accept ?? '').includes('text/html')
  )
}

export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { pages, replayUrl }: PageOptions,
): Promise<FastifyReply> | FastifyReply {
  const index = pages?.get('/index.html')
  reply.headers({
    'cache-control': 'no-cache',
    'content-security-policy': pagePolicy(replayUrlFor(replayUrl, request.protocol, request.host)),
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'x-frame-options': 'DENY',
  })
  if (index) return sendFile(request, reply, index)
  return reply.code(503).type('text/html; charset=utf-8').send(notBuilt)
}

/** Allows nothing inline, nothing from other origins, and no embedding. */
function pagePolicy(replayUrl: string): string {
  // Also this origin, in case the other one cannot be reached.
  const frames = URL.canParse(replayUrl) ? `'self' ${new URL(replayUrl).origin}` : "'self'"
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    `frame-src ${frames}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function sendReplayFrame(
  request: FastifyRequest,
  reply: FastifyReply,
  { pages, publicUrl }: PageOptions,
): FastifyReply {
  const nonce = randomBytes(16).toString('base64')
  const html = pages?.get('/replay.html')?.bytes.toString() ?? ''
  const other = otherLoopback(request.host)
  const ancestors = [
    "'self'",
    publicUrl && new URL(publicUrl).origin,
    other && `${request.protocol}://${other}`,
  ]
    .filter(Boolean)
    .join(' ')
  return reply
    .headers({
      ...replayIsolation,
      'cache-control': 'no-store',
      'content-security-policy': replayPolicy(nonce, ancestors),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      // Prevents DNS lookups of names in a recording.
      'x-dns-prefetch-control': 'off',
    })
    .type('text/html; charset=utf-8')
    .send(html.replaceAll(/<(script|link)\b/g, `<$1 nonce="${nonce}"`))
}

async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, type, etag, gzipped }: PageFile,
): Promise<FastifyReply> {
  reply.headers({
    etag,
    vary: 'accept-encoding',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  })
  if (request.headers['if-none-match'] === etag) return reply.code(304).send()
  reply.type(type)
  if (!gzipped || !/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
    return reply.send(bytes)
  }
  return reply.header('content-encoding', 'gzip').send(await gzipped())
}

const notBuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Lethe</title></head>
<body>
<h1>The dashboard is not built yet</h1>
<p>The API works. To have the dashboard too, run <code>npm run build</code>
in the folder of Lethe and start it again.</p>
</body>
</html>
`
