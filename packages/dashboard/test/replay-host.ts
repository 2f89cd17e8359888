import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { replayPolicy } from '@lethe/contract/dashboard-replay.ts'
import { build } from 'vite'

const root = join(import.meta.dirname, '..')

export interface ReplayHost {
  url: string
  /** Paths that were asked for and are none of the player's. */
  trapped: string[]
  close(): Promise<void>
}

/** What stands between a recording and the outside; each can be left away. */
interface Layers {
  filter: boolean
  policy: boolean
}

/** Builds the replay frame without its filter. Returns the folder, which is the caller's to remove. */
export async function buildUnfiltered(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-replay-'))
  await build({
    root,
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'error',
    build: {
      outDir: folder,
      emptyOutDir: true,
      rolldownOptions: { input: join(root, 'replay.html') },
    },
    plugins: [
      {
        name: 'no-filter',
        enforce: 'pre',
        resolveId: (id: string) =>
          id === './filter.ts' ? join(import.meta.dirname, 'no-filter.ts') : undefined,
      },
    ],
  })
  return folder
}

/** The replay frame in a page that plays what it is given. */
export async function startReplayHost(folder: string, layers: Layers): Promise<ReplayHost> {
  const trapped: string[] = []
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    const send = (type: string, body: string | Buffer, headers = {}) =>
      response.writeHead(200, { 'content-type': type, ...headers }).end(body)
    if (path === '/') return send('text/html', '<!doctype html><script src="/host.js"></script>')
    if (path === '/host.js') {
      const patience = layers.filter ? '8000' : '700'
      return send('text/javascript', hostScript.replace('PATIENCE', patience))
    }
    if (path === '/replay') {
      const nonce = randomBytes(16).toString('base64')
      const html = await readFile(join(folder, 'replay.html'), 'utf8')
      return send('text/html', html.replaceAll(/<(script|link)\b/g, `<$1 nonce="${nonce}"`), {
        ...(layers.policy && { 'content-security-policy': replayPolicy(nonce, "'self'") }),
      })
    }
    if (path.startsWith('/assets/')) {
      const type = extname(path) === '.js' ? 'text/javascript' : 'text/css'
      // As they are served: what a browser has compiled once it keeps.
      const headers = { 'cache-control': 'public, max-age=31536000, immutable' }
      return send(type, await readFile(join(folder, path)), headers)
    }
    if (path !== '/favicon.ico') trapped.push(request.url ?? '')
    response.writeHead(404, { 'access-control-allow-origin': '*' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    trapped,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Does what the dashboard does: a frame, a port, bytes; and keeps what the frame says. */
const hostScript = `
// Asked from outside: in a frame without scripts nothing can be asked inside.
window.isHit = (within) => {
  try {
    if ('__hit' in within) return true
    return Array.from({ length: within.length }, (_, index) => within[index]).some(window.isHit)
  } catch {
    return false
  }
}

// Those that are played end by themselves; without the filter many break, and are not waited for.
window.patience = PATIENCE
window.play = (lines) => new Promise((resolve) => {
  document.body.replaceChildren()
  const frame = document.createElement('iframe')
  frame.style.cssText = 'width:800px;height:600px;border:0'
  frame.src = '/replay'
  frame.onload = () => {
    // Only the first time: what navigates the frame afterwards is found by its address.
    frame.onload = null
    const { port1, port2 } = new MessageChannel()
    frame.contentWindow.postMessage('lethe.replay.connect', location.origin, [port2])
    const said = []
    const end = () => resolve(said)
    port1.onmessage = ({ data }) => {
      said.push(data.kind)
      if (data.kind === 'ended') setTimeout(end, 30)
    }
    const bytes = new TextEncoder().encode(lines).buffer
    port1.postMessage({ kind: 'bytes', bytes, tab: 0, isAppended: false }, [bytes])
    port1.postMessage({ kind: 'end', tab: 0 })
    port1.postMessage({ kind: 'complete' })
    port1.postMessage({ kind: 'play' })
    setTimeout(end, window.patience)
  }
  document.body.append(frame)
})`
