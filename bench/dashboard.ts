/**
 * Measures how fast the dashboard is, in Chromium against the real server: `node bench/dashboard.ts
 * [--persons N] [--rounds R] [--minutes M]`. The first load, the list with a cold cache, scrolling
 * through 2,000 rows, and a recording of half an hour. Pages that do nothing show how much of it
 * the browser and the machine take.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { connect } from '../packages/server/src/sql.ts'
import { chunksOf, clockText, longRecording } from './long-recording.ts'
import { letheWords, median, start, stop, urlOf } from './measure.ts'
import { insertPersons } from './persons-data.ts'

const { values: options } = parseArgs({
  options: {
    persons: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '7' },
    minutes: { type: 'string', default: '30' },
  },
})
const rounds = Number(options.rounds)
const minutes = Number(options.minutes)

const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-dashboard-'))
const embedded = await openEmbedded({ dataDir: folder })
await migrate(embedded.address)
const db = connect({ connection: embedded.address, statementSeconds: 600 })
const project = await createProject(db.sql, 'bench')
const { text: publicKey } = await createKey(db.sql, project.id, 'public', 'bench')
await insertPersons(db, project.id, Number(options.persons))

const service = await start([...letheWords, 'serve'], /dashboard\s+(\S+#\S+)/, {
  DATABASE_URL: urlOf(embedded.address),
  HOST: '127.0.0.1',
  PORT: '0',
  DATA_DIR: join(folder, 'service'),
  LOG_LEVEL: 'warn',
  INGEST_LIMIT_PER_ADDRESS: '0',
})
const { origin } = new URL(service.found)
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
})
const signedIn = await setUp(browser, service.found)
const projectUrl = `${origin}/projects/${project.id}`

/** Returns what the clock in the recorded page shows, two same-origin frames deep. */
const clockOf = `(() => {
  const within = (one) => one?.querySelector('iframe')?.contentDocument
  return within(within(document))?.getElementById('clock')?.textContent
})()`

/** Clicks Play as soon as possible, and notes when playback starts. */
const playAtOnce = `
  const begin = () => {
    const button = document.querySelector('button[aria-label=Play]:not(:disabled)')
    if (!button) return requestAnimationFrame(begin)
    button.click()
    const time = document.querySelector('input[aria-label=Time]')
    const look = () => Number(time.value) > 0
      ? requestAnimationFrame(() => { window.playsAt = performance.now() })
      : requestAnimationFrame(look)
    look()
  }
  begin()`

const rows: [what: string, result: string, target: string][] = []
try {
  await measureFirstLoad()
  await measureScrolling()
  await measureReplay()
} finally {
  await browser.close()
  await stop(service.child)
  await db.end()
  await embedded.close()
  rmSync(folder, { recursive: true, force: true })
  console.log('| what | result | target |\n| --- | ---: | ---: |')
  for (const row of rows) console.log(`| ${row.join(' | ')} |`)
}

async function setUp(browser: Browser, link: string) {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(link)
  await page.getByLabel('Your name').fill('Margaret Hamilton')
  await page.getByLabel('Email').fill('margaret@example.com')
  await page.getByLabel('Password').fill('correct horse battery staple')
  await page.getByLabel('Project name').fill('bench')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForURL('**/install')
  const state = await context.storageState()
  await context.close()
  return state
}

/** Opens a page with an empty cache. */
async function openWindow(): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    storageState: signedIn,
  })
  return context.newPage()
}

/** Waits until an expression is true. The pages' CSP forbids the eval of waitForFunction. */
async function until(page: Page, expression: string): Promise<void> {
  while (!(await page.evaluate(expression))) await page.waitForTimeout(20)
}

/** Notes, in the page, when an element that matches the selector is drawn. */
async function whenDrawn(page: Page, selector: string): Promise<void> {
  await page.addInitScript(`
    const look = () => document.querySelector(${JSON.stringify(selector)})
      ? requestAnimationFrame(() => setTimeout(() => { window.drawnAt ??= performance.now() }))
      : requestAnimationFrame(look)
    look()`)
}

async function measureFirstLoad(): Promise<void> {
  const times: number[] = []
  const blank: number[] = []
  const sizes: number[] = []
  for (let round = 0; round < rounds; round++) {
    const page = await openWindow()
    const client = await page.context().newCDPSession(page)
    let bytes = 0
    await client.send('Network.enable')
    client.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    await whenDrawn(page, 'table[aria-label=People] tbody tr')
    await page.goto(`${projectUrl}/persons`)
    await until(page, 'window.drawnAt !== undefined')
    times.push(Number(await page.evaluate('window.drawnAt')))
    sizes.push(bytes)
    await page.context().close()

    const floor = await openWindow()
    await whenDrawn(floor, 'body')
    await floor.goto(`${origin}/docs`)
    await until(floor, 'window.drawnAt !== undefined')
    blank.push(Number(await floor.evaluate('window.drawnAt')))
    await floor.context().close()
  }
  rows.push(
    ['first load, data included', `${Math.round(median(sizes) / 1_000)} KB`, '≤ 200 KB'],
    [
      `list of ${options.persons} persons ready, cold: median, worst`,
      `${Math.round(median(times))}, ${Math.round(Math.max(...times))} ms`,
      '< 1 s',
    ],
    ['a static page, cold: median', `${Math.round(median(blank))} ms`, ''],
  )
}

/** Scrolls down and up with the wheel for some seconds. Returns the times between frames, in ms. */
async function scroll(page: Page): Promise<number[]> {
  await page.mouse.move(700, 500)
  await page.evaluate(`
    window.frames_ = []
    let last = performance.now()
    const note = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(note) }
    requestAnimationFrame(note)`)
  for (let step = 0; step < 200; step++) {
    await page.mouse.wheel(0, step < 140 ? 400 : -600)
    await page.waitForTimeout(16)
  }
  return ((await page.evaluate('window.frames_')) as number[]).slice(1)
}

function shares(frames: number[]): string {
  // A frame that seems late by a fraction of a millisecond was still on time.
  const late = frames.filter((time) => time > 17.5).length / frames.length
  const missed = frames.filter((time) => time > 25).length / frames.length
  return `${(late * 100).toFixed(1)} %, ${(missed * 100).toFixed(1)} %, ${Math.round(Math.max(...frames))} ms`
}

async function measureScrolling(): Promise<void> {
  const page = await openWindow()
  await page.goto(`${projectUrl}/persons?pages=40`)
  await until(page, 'document.querySelectorAll("tbody tr").length === 2000')
  const frames = await scroll(page)
  const floor = await page.context().newPage()
  await floor.setContent('<div style="height: 90000px; background: linear-gradient(red, blue)">')
  const floorFrames = await scroll(floor)
  await page.context().close()
  rows.push(
    [
      'scrolling 2,000 persons: frames later than 17.5 ms, than 25 ms, worst',
      shares(frames),
      '0 %',
    ],
    ['the same for an empty page', shares(floorFrames), ''],
  )
}

async function upload(): Promise<{ sessionId: string; megabytes: number; events: number }> {
  const query = `key=${publicKey}`
  const started = await fetch(`${origin}/ingest/v1/start?${query}`, { method: 'POST', body: '{}' })
  const { browserId, sessionId } = (await started.json()) as Record<string, string>
  const events = longRecording(minutes, Date.now() - minutes * 60_000)
  for (const [number, body] of chunksOf(events).entries()) {
    const place = `browser=${browserId}&session=${sessionId}&tab=t1&number=${number}`
    const response = await fetch(`${origin}/ingest/v1/chunks?${query}&${place}`, {
      method: 'POST',
      body: new Uint8Array(body),
    })
    if (!response.ok) throw new Error(`Chunk ${number} returned ${response.status}.`)
  }
  const bytes = events.reduce((sum, event) => sum + JSON.stringify(event).length, 0)
  return { sessionId: sessionId as string, megabytes: bytes / 1e6, events: events.length }
}

async function measureReplay(): Promise<void> {
  const { sessionId, megabytes, events } = await upload()
  const starts: number[] = []
  const seeks: number[] = []
  let loaded = 0
  for (let round = 0; round < rounds; round++) {
    const page = await openWindow()
    await page.addInitScript(`addEventListener('DOMContentLoaded', () => { ${playAtOnce} })`)
    await page.goto(`${projectUrl}/sessions/${sessionId}`)
    await until(page, 'window.playsAt !== undefined')
    starts.push(Number(await page.evaluate('window.playsAt')))
    await until(
      page,
      `Number(document.querySelector('input[aria-label=Time]').max) >= ${(minutes * 60 - 2) * 1_000}`,
    )
    loaded = Math.max(loaded, Number(await page.evaluate('performance.now()')))
    await page.getByRole('button', { name: 'Pause' }).click()
    for (const part of [0.5, 0.95, 0.1, 0.9, 0.2, 0.99]) {
      const second = Math.floor(minutes * 60 * part)
      seeks.push(await seek(page, second))
    }
    await page.context().close()
  }
  rows.push(
    [
      `a recording of ${minutes} minutes (${events} events, ${megabytes.toFixed(1)} MB) plays, cold: median, worst`,
      `${Math.round(median(starts))}, ${Math.round(Math.max(...starts))} ms`,
      '< 2 s',
    ],
    ['fully loaded: worst', `${Math.round(loaded)} ms`, ''],
    [
      'seeking anywhere, until shown: median, worst',
      `${Math.round(median(seeks))}, ${Math.round(Math.max(...seeks))} ms`,
      '< 300 ms',
    ],
  )
}

/** Returns the milliseconds from a seek on the timeline until the recorded page shows that moment. */
async function seek(page: Page, second: number): Promise<number> {
  const time = await page.evaluate(`new Promise((resolve) => {
    const input = document.querySelector('input[aria-label=Time]')
    const begun = performance.now()
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
      .set.call(input, ${second * 1_000 + 500})
    input.dispatchEvent(new Event('input', { bubbles: true }))
    const look = () => ${clockOf} === ${JSON.stringify(clockText(second))}
      ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)))
      : requestAnimationFrame(look)
    look()
  })`)
  return Number(time)
}
