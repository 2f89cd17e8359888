import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A site of a customer's: its pages by path, on an origin of its own. */
export interface Site {
  url: string
  set(path: string, html: string | Buffer, headers?: Record<string, string>): void
  /** The site has no page any more. */
  clear(): void
}

export async function startSite() {
  const pages = new Map<string, { html: string | Buffer; headers: Record<string, string> }>()
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://site').pathname
    const page = pages.get(path)
    const type = path.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8'
    response.writeHead(page ? 200 : 404, { 'content-type': type, ...page?.headers })
    response.end(page?.html)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const site: Site = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set: (path, html, headers = {}) => pages.set(path, { html, headers }),
    clear: () => pages.clear(),
  }
  return {
    site,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Waits for a state, and fails with what it saw last. Tests run beside one another here. It looks less
 * often the longer it takes, because looking is work too.
 */
export async function until<T>(what: () => T | Promise<T>, seconds = 90): Promise<NonNullable<T>> {
  const end = performance.now() + seconds * 1_000
  for (let pause = 50; ; pause = Math.min(pause * 1.2, 400)) {
    const seen = await what()
    if (seen) return seen
    if (performance.now() > end) throw new Error(`It stayed ${JSON.stringify(seen)}.`)
    await sleep(pause)
  }
}
