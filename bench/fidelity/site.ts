import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { rolldown } from 'rolldown'
import { type FidelityPage, pages } from './pages.ts'
import type { Lethe } from './service.ts'

const here = import.meta.dirname
const types: Record<string, string> = {
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.ttf': 'font/ttf',
}

/** Serves the pages with the recorder in them, and the packages they are made of. */
export async function startSite(lethe: Lethe) {
  const snippet = (
    await readFile(join(here, '../../packages/sdk-browser/dist/snippet.html'), 'utf8')
  )
    .replaceAll('{{host}}', lethe.url)
    .replaceAll('{{key}}', lethe.publicKey)
  const bundles = new Map<string, Promise<string>>()
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://site.invalid')
    const [, kind, name = ''] = url.pathname.split('/')
    const page = pages.find((each) => slug(each) === name)
    try {
      if (kind === 'node_modules') {
        const file = normalize(decodeURIComponent(url.pathname))
        response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream')
        response.end(await readFile(join(here, file)))
      } else if (kind === 'page' && page) {
        const preset = url.searchParams.get('preset') ?? 'balanced'
        response.setHeader('content-type', 'text/html; charset=utf-8')
        response.end(html(page, snippet, preset))
      } else if (kind === 'module' && page) {
        const code = bundles.get(name) ?? bundle(page)
        bundles.set(name, code)
        response.setHeader('content-type', 'text/javascript')
        response.end(await code)
      } else response.writeHead(404).end()
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    urlOf: (name: string, preset: string) => {
      const page = pages.find((each) => each.name === name) as FidelityPage
      return `http://127.0.0.1:${port}/page/${slug(page)}?preset=${preset}`
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

const slug = ({ name }: FidelityPage) => name.replace(/\W+/g, '-')

function html(page: FidelityPage, snippet: string, preset: string): string {
  const init = snippet.replace(/init\("(\w+)"\)/, `init("$1",{masking:'${preset}'})`)
  if (init === snippet) throw new Error('The snippet has another form.')
  const module = page.module ? `<script type="module" src="/module/${slug(page)}"></script>` : ''
  const head = `<meta charset="utf-8"><link rel="icon" href="data:,"><title>${page.name}</title>`
  return `<!doctype html><html lang="en"><head>${head}${init}${page.head ?? ''}</head><body>${page.body}${module}</body></html>`
}

async function bundle(page: FidelityPage): Promise<string> {
  const entry = join(here, `${slug(page)}.entry.js`)
  const build = await rolldown({
    input: entry,
    cwd: here,
    platform: 'browser',
    logLevel: 'silent',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
    plugins: [
      {
        name: 'entry',
        resolveId: (id: string) => (id === entry ? id : null),
        load: (id: string) => (id === entry ? (page.module ?? '') : null),
      },
    ],
  })
  const { output } = await build.generate({ format: 'esm', codeSplitting: false })
  await build.close()
  return output[0].code
}
