/**
 * Compares the time that the recorder takes of a changing page with rrweb alone and with no recorder,
 * in turns: `node bench/sdk-mutations.ts [--rounds N]`. Measures processor time of the page's main
 * thread, because of other load on the machine. Needs Debian's chromium.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Browser, chromium } from 'playwright-core'
import { rolldown } from 'rolldown'
import { build } from '../packages/sdk-browser/build.ts'
import { median, tasksOf } from './measure.ts'

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })

/** The scripts that the page runs. */
const cases = {
  '100,000 nodes appended and removed in one task': `
    const list = document.querySelector('ul')
    for (let at = 0; at < 100_000; at++) list.append(document.createElement('li'))
    while (list.firstChild) list.firstChild.remove()`,
  '20,000 changes, 100 in a task': `
    const list = document.querySelector('ul')
    for (let task = 0; task < 200; task++) {
      for (let at = 0; at < 25; at++) {
        const item = document.createElement('li')
        item.className = 'c' + at
        item.append('Item ' + at)
        list.append(item)
        item.setAttribute('title', 'x' + task)
        item.firstChild.data = 'Other ' + at
        if (list.children.length > 500) list.firstChild.remove()
      }
      await new Promise((resolve) => setTimeout(resolve))
    }`,
  '5,000 nodes replaced in one task': `
    const list = document.querySelector('ul')
    for (let times = 0; times < 5; times++) {
      list.innerHTML = Array.from({ length: 1_667 }, (_, at) =>
        '<li class="c' + at + '"><b>Item ' + (at * times) + '</b></li>').join('')
      await new Promise((resolve) => setTimeout(resolve, 300))
    }`,
  '20,000 times checked =': `
    const boxes = document.querySelectorAll('input')
    for (let at = 0; at < 20_000; at++) boxes[at % boxes.length].checked = at % 3 === 0`,
} as const

const recorders = ['none', 'an observer that does nothing', 'Lethe', 'rrweb alone'] as const

const rrweb = `import { record } from '@rrweb/record'
  globalThis.begin = () => record({ emit(event) { globalThis.last = JSON.stringify(event) } })`

async function bundleOfRrweb(): Promise<string> {
  const id = join(import.meta.dirname, 'rrweb-alone.entry.js')
  const bundled = await rolldown({
    input: id,
    cwd: join(import.meta.dirname, '../packages/sdk-browser'),
    platform: 'browser',
    logLevel: 'silent',
    plugins: [
      {
        name: 'entry',
        resolveId: (each: string) => (each === id ? id : null),
        load: (each: string) => (each === id ? rrweb : null),
      },
    ],
  })
  const { output } = await bundled.generate({ format: 'iife', minify: true, codeSplitting: false })
  await bundled.close()
  return output[0].code
}

/** Serves the page and the SDK, and accepts all uploads. */
async function serve(dist: string, version: string, alone: string) {
  const id = '00000000-0000-4000-8000-000000000000'
  const limits = { sessionIdleSeconds: 1800, sessionMaximumSeconds: 86_400 }
  const settings = { masking: 'balanced', assets: true, sampleRate: 1, ...limits }
  const scripts = {
    none: 'globalThis.begin = () => {}',
    'an observer that does nothing': `globalThis.begin = () => new MutationObserver(() => {}).observe(document,
      { subtree: true, childList: true, attributes: true, characterData: true,
        attributeOldValue: true, characterDataOldValue: true })`,
    Lethe: `globalThis.begin = () => lethe.init('pk_bench', { host: location.origin })`,
    'rrweb alone': alone,
  }
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://site')
    const [, folder, , name = ''] = pathname.split('/')
    if (pathname === '/') {
      const recorder = searchParams.get('recorder') as keyof typeof scripts
      const early = recorder === 'Lethe' ? `<script src="/sdk/${version}/lethe.js"></script>` : ''
      const boxes = '<input type="checkbox">'.repeat(500)
      response.setHeader('content-type', 'text/html')
      response.end(`<!doctype html><html><head>${early}<script>${scripts[recorder]}</script>
        </head><body><form>${boxes}</form><ul></ul></body></html>`)
    } else if (folder === 'sdk') {
      response.setHeader('content-type', 'text/javascript')
      response.end(readFileSync(join(dist, name)))
    } else {
      request.resume()
      response.setHeader('content-type', 'application/json')
      const begun = {
        browserId: id,
        sessionId: id,
        settings: { ...settings, chunkBytesMaximum: 1e6 },
      }
      response.end(JSON.stringify({ next: 'continue', ...begun }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, stop: () => server.close() }
}

interface Measured {
  /** Processor time of the main thread until all work is done, and that of its scripts. */
  all: number
  scripts: number
  /** Wall-clock time of the page's own script. */
  page: number
  /** Processor time of the longest task, with the page's own work in it. */
  longest: number
}

async function measure(browser: Browser, url: string, script: string): Promise<Measured> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.evaluate('void begin()')
  await page.waitForTimeout(1_500)
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    const of = (wanted: string) => (metrics.find(({ name }) => name === wanted)?.value ?? 0) * 1000
    return { all: of('TaskDuration'), scripts: of('ScriptDuration') }
  }
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] })
  const before = await spent()
  const own = (await page.evaluate(`(async () => {
    const from = performance.now()
    ${script}
    return performance.now() - from })()`)) as number
  await page.waitForTimeout(2_500)
  const after = await spent()
  const tasks = tasksOf(await browser.stopTracing())
  await context.close()
  return {
    all: after.all - before.all,
    scripts: after.scripts - before.scripts,
    page: own,
    longest: Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000,
  }
}

const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-mutations-'))
const { version } = await build(folder)
const site = await serve(folder, version, await bundleOfRrweb())
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
})
for (const [name, script] of Object.entries(cases)) {
  const results = new Map<string, Measured[]>(recorders.map((each) => [each, []]))
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const each of recorders) {
      const url = `${site.origin}/?recorder=${encodeURIComponent(each)}`
      results.get(each)?.push(await measure(browser, url, script))
    }
  }
  const of = (each: string, what: keyof Measured) =>
    median((results.get(each) ?? []).map((one) => one[what]))
  console.log(
    `\n| ${name} | the page's task, ms | main thread, ms | × none | scripts beyond none, of rrweb's | longest task, ms |`,
  )
  console.log('| --- | ---: | ---: | ---: | ---: | ---: |')
  for (const each of recorders) {
    const beyond = of(each, 'scripts') - of('none', 'scripts')
    const ofRrweb = beyond / (of('rrweb alone', 'scripts') - of('none', 'scripts'))
    const times = of(each, 'all') / of('none', 'all')
    const cells = [of(each, 'page').toFixed(0), of(each, 'all').toFixed(0), times.toFixed(2)]
    cells.push(ofRrweb.toFixed(2), of(each, 'longest').toFixed(0))
    console.log(`| ${[each, ...cells].join(' | ')} |`)
  }
}
await browser.close()
site.stop()
rmSync(folder, { recursive: true })
