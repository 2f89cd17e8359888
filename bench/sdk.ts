/**
 * Compares the browser SDK with others: the size of the scripts, and the time on the main thread for
 * the first snapshot of a page of 5,000 nodes: `node bench/sdk.ts [--rounds N] [--folder F]`.
 * Installs the others from npm into the folder (110 MB, kept for the next run) and bundles all with
 * the same tool. Needs Debian's chromium.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { chromium } from 'playwright-core'
import { rolldown } from 'rolldown'
import { build } from '../packages/sdk-browser/build.ts'
import { median, tasksOf } from './measure.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    folder: { type: 'string', default: join(tmpdir(), 'lethe-bench-sdk') },
  },
})
const folder = options.folder
const NODES = 5_000

const packages = {
  rrweb: '2.2.2',
  '@openreplay/tracker': '19.0.1',
  '@sentry/browser': '11.12.0',
  'posthog-js': '1.449.2',
}

/** Its `go(origin)` starts recording and sends to that origin. */
interface Contender {
  name: string
  entry: string
  /** Whether a request contains the first snapshot; absent if that is held back for long. */
  isSnapshot?(path: string, bytes: number): boolean
}

const contenders: Contender[] = [
  {
    name: 'rrweb alone, every event as JSON',
    entry: `import { record } from 'rrweb'
      globalThis.go = (origin) => record({
        emit: (event) => fetch(origin + '/event', { method: 'POST', body: JSON.stringify(event) })
      })`,
    isSnapshot: (path, bytes) => path === '/event' && bytes > 100_000,
  },
  {
    name: '@openreplay/tracker',
    entry: `import Tracker from '@openreplay/tracker'
      globalThis.go = (origin) => new Tracker({
        projectKey: 'x', ingestPoint: origin + '/ingest', __DISABLE_SECURE_MODE: true
      }).start()`,
  },
  {
    name: '@sentry/browser with replay',
    entry: `import * as Sentry from '@sentry/browser'
      globalThis.go = (origin) => Sentry.init({
        dsn: origin.replace('//', '//abc@') + '/1', replaysSessionSampleRate: 1,
        integrations: [Sentry.replayIntegration()]
      })`,
    isSnapshot: (path, bytes) => path === '/api/1/envelope/' && bytes > 5_000,
  },
  {
    name: 'posthog-js with its recorder',
    entry: `import posthog from 'posthog-js/dist/module.no-external'
      import 'posthog-js/dist/posthog-recorder'
      globalThis.go = (origin) => posthog.init('phc_x', {
        api_host: origin, autocapture: false, capture_pageview: false, capture_pageleave: false,
        disable_surveys: true, capture_performance: false, opt_out_useragent_filter: true
      })`,
  },
]

function install(): void {
  mkdirSync(folder, { recursive: true })
  const isThere = Object.keys(packages).every((name) =>
    existsSync(join(folder, 'node_modules', name)),
  )
  if (isThere) return
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const words = Object.entries(packages).map(([name, version]) => `${name}@${version}`)
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...words], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

async function bundle({ name, entry }: Contender): Promise<string> {
  const file = join(folder, `${name.replace(/\W+/g, '-')}.js`)
  writeFileSync(file, entry)
  const bundled = await rolldown({ input: file, platform: 'browser', logLevel: 'silent' })
  const { output } = await bundled.generate({ format: 'iife', minify: true, codeSplitting: false })
  await bundled.close()
  return output[0].code
}

/** A list of products with a search field: headings, text, links, buttons, a style sheet. */
function page(): string {
  const rules = Array.from(
    { length: 200 },
    (_, at) => `.c${at}{margin:${at % 7}px;padding:${at % 5}px}.c${at}:hover{color:#${100 + at}}`,
  )
  const products = Array.from(
    { length: Math.round(NODES / 12) },
    (_, at) =>
      `<article class="card c${at % 200}" id="p${at}" data-sku="s${at}"><h3>Product ${at}</h3>` +
      `<p class="text">A line about it for <b>small</b> screens.</p>` +
      `<a href="/item/${at}?ref=list">Details</a><button aria-label="Add ${at}">Add</button></article>`,
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><style>${rules.join('')}
    </style></head><body><form><label>Search <input name="q"></label></form>${products.join('')}</body></html>`
}

/** Serves the page, and sends each SDK the responses it needs to record. */
async function serve(dist: string) {
  let seen = (_path: string, _bytes: number): void => {}
  const settings = {
    masking: 'balanced',
    sampleRate: 1,
    sessionIdleSeconds: 1800,
    sessionMaximumSeconds: 86_400,
    chunkBytesMaximum: 1_000_000,
  }
  const id = '00000000-0000-4000-8000-000000000000'
  const answers: [pattern: RegExp, body: object][] = [
    [/^\/ingest\/v1\/start/, { next: 'continue', browserId: id, sessionId: id, settings }],
    [/^\/ingest\/v1\/chunks/, { next: 'continue' }],
    [
      /^\/ingest\/v1\/web\/start/,
      {
        token: 't',
        userUUID: 'u',
        projectID: '1',
        sessionID: '1',
        startTimestamp: Date.now(),
        delay: 0,
        beaconSizeLimit: 1e6,
        compressionThreshold: 25_000,
        features: {},
      },
    ],
    [
      /config|flags|decide/,
      {
        sessionRecording: { endpoint: '/s/', recorderVersion: 'v2' },
        supportedCompression: ['gzip-js'],
      },
    ],
  ]
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-allow-headers', '*')
    if (pathname === '/') return void response.setHeader('content-type', 'text/html').end(page())
    if (pathname.startsWith('/sdk/')) {
      response.setHeader('content-type', 'text/javascript')
      return void response.end(readFileSync(join(dist, pathname.split('/').at(-1) ?? '')))
    }
    let bytes = 0
    request.on('data', (chunk) => {
      bytes += chunk.length
    })
    request.on('end', () => {
      const body = answers.find(([pattern]) => pattern.test(pathname))?.[1] ?? {}
      response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
      seen(pathname, bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves when a request arrives for which `isIt` returns true. */
    wait: (isIt: (path: string, bytes: number) => boolean) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('No snapshot arrived.')), 60_000)
        seen = (path, bytes) => {
          if (!isIt(path, bytes)) return
          clearTimeout(timer)
          resolve()
        }
      }),
    stop: () => server.closeAllConnections() ?? server.close(),
  }
}

type Site = Awaited<ReturnType<typeof serve>>

interface Measured {
  /** CPU time of the page's main thread, ms: loading the script, and from `go` to the snapshot. */
  load: number
  snapshot: number
  /** The longest task of the main thread: CPU time and wall-clock time. */
  longest: number
  longestByClock: number
}

/** Measures one page in a new browser, in CPU time because of other load on the machine. */
async function measure(
  site: Site,
  script: string,
  isSnapshot: Contender['isSnapshot'],
): Promise<Measured> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--headless', '--disable-gpu', '--disable-quic', '--no-first-run'],
  })
  try {
    const page = await browser.newPage()
    await page.goto(`${site.origin}/`)
    await page.waitForTimeout(1000)
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const spent = async () => {
      const { metrics } = await session.send('Performance.getMetrics')
      return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
    }
    await browser.startTracing(page, { categories: ['toplevel', '__metadata'] })
    const before = await spent()
    await page.addScriptTag({ content: script })
    const loaded = await spent()
    const arrived = isSnapshot ? site.wait(isSnapshot) : page.waitForTimeout(5000)
    await page.evaluate(`void go('${site.origin}')`)
    await arrived
    await page.waitForTimeout(500)
    const after = await spent()
    const tasks = tasksOf(await browser.stopTracing())
    if (tasks.length === 0) throw new Error('The trace has no tasks; Chromium has changed.')
    return {
      load: loaded - before,
      snapshot: after - loaded,
      longest: Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1000,
      longestByClock: Math.max(...tasks.map(({ dur }) => dur)) / 1000,
    }
  } finally {
    await browser.close()
  }
}

function kilobytes(text: string): string {
  return (gzipSync(text, { level: 9 }).length / 1000).toFixed(1)
}

async function run(): Promise<void> {
  install()
  const dist = join(folder, 'lethe')
  const { version } = await build(dist)
  const [eager, recorder] = ['lethe.js', 'recorder.js'].map((name) =>
    readFileSync(join(dist, name), 'utf8'),
  ) as [string, string]
  const site = await serve(dist)
  const lethe = {
    name: 'Lethe, masked and compressed',
    isSnapshot: (path: string, bytes: number) => path === '/ingest/v1/chunks' && bytes > 1_000,
    // A script tag as in a real page; it loads recorder.js from the same folder.
    script: `globalThis.go = (origin) => {
      const script = document.createElement('script')
      script.src = origin + '/sdk/${version}/lethe.js'
      script.onload = () => lethe.init('pk_bench')
      document.head.append(script)
    }`,
  }
  const others = []
  for (const each of contenders) others.push({ ...each, script: await bundle(each) })

  console.log('| what a visitor loads | gzip KB |\n| --- | ---: |')
  console.log(`| **Lethe, at once** (start, identify) | ${kilobytes(eager)} |`)
  console.log(
    `| **Lethe, in all** (with recorder and transport) | ${kilobytes(eager + recorder)} |`,
  )
  for (const { name, script } of others) console.log(`| ${name} | ${kilobytes(script)} |`)

  const all = [lethe, ...others]
  const results = new Map<string, Measured[]>(all.map(({ name }) => [name, []]))
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const { name, script, isSnapshot } of all) {
      results.get(name)?.push(await measure(site, script, isSnapshot))
    }
  }
  site.stop()
  const total = ({ load, snapshot }: Measured) => load + snapshot
  const of = (name: string, what: (measured: Measured) => number) =>
    median((results.get(name) ?? []).map(what))
  const base = of(others[0]?.name ?? '', total)
  console.log(
    `\n| first snapshot of ${NODES} nodes, main thread | CPU ms | of rrweb alone | longest task, CPU ms | by the clock |`,
  )
  console.log('| --- | --- | --- | --- | --- |')
  for (const { name } of all) {
    const milliseconds = of(name, total)
    const cells = [
      name,
      milliseconds.toFixed(0),
      (milliseconds / base).toFixed(2),
      of(name, (each) => each.longest).toFixed(0),
      of(name, (each) => each.longestByClock).toFixed(0),
    ]
    console.log(`| ${cells.join(' | ')} |`)
  }
}

await run()
