import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launch } from '../../sdk-browser/test/launch.ts'
import { isDeep } from '../../server/test/proof/deep.ts'
import { hostileRecordings } from './hostile.ts'
import { buildUnfiltered, type ReplayHost, startReplayHost } from './replay-host.ts'

let browser: Browser
/** Folders with the replay frame: as it is served, which is built before each run, and without its filter. */
const filtered = join(import.meta.dirname, '../dist')
let unfiltered: string

beforeAll(async () => {
  browser = await launch()
  unfiltered = await buildUnfiltered()
})

afterAll(async () => {
  await browser.close()
  await rm(unfiltered, { recursive: true })
})

/** Everything a recording could do that it must not, seen from the outside. */
async function misdeeds(
  context: BrowserContext,
  page: Page,
  host: ReplayHost,
  lines: string,
  isStrict: boolean,
) {
  const seen: string[] = []
  const own = new RegExp(
    `^(?:${host.url}/(?:$|host\\.js|replay$|assets/|favicon)|data:|blob:|about:)`,
  )
  const onRequest = (request: Request) => {
    if (!own.test(request.url())) seen.push(`request ${request.url()}`)
  }
  const onDialog = async (dialog: { dismiss(): Promise<void> }) => {
    seen.push('dialog')
    await dialog.dismiss()
  }
  const onPage = async (opened: Page) => {
    seen.push(`window ${opened.url()}`)
    await opened.close()
  }
  // One that a policy stops is reported as well, though it never leaves: without the filter it is
  // what the server was asked for that counts.
  if (isStrict) page.on('request', onRequest)
  page.on('dialog', onDialog)
  context.on('page', onPage)
  host.trapped.splice(0)
  try {
    const said = await page.evaluate((text) => window.play(text), lines)
    // The viewer may click into it, and press keys, although the dashboard keeps both out.
    await page.mouse.click(200, 200)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForTimeout(60)
    for (const frame of page.frames()) {
      // A frame that the policy kept from loading stands there as an error of the browser's.
      const isStopped = !isStrict && frame.url() === 'chrome-error://chromewebdata/'
      const isOwn = isStopped || frame.url() === '' || own.test(frame.url())
      if (!isOwn || frame.url().startsWith('data:')) seen.push(`frame at ${frame.url()}`)
    }
    if (page.url() !== `${host.url}/`) seen.push(`page at ${page.url()}`)
    else if (await page.evaluate(() => window.isHit(window))) seen.push('script')
    return { seen: [...seen, ...host.trapped.map((path) => `asked for ${path}`)], said }
  } finally {
    page.off('request', onRequest)
    page.off('dialog', onDialog)
    context.off('page', onPage)
  }
}

declare global {
  interface Window {
    play(lines: string): Promise<string[]>
    /** Whether a script has left its mark in a window or in one within it. */
    isHit(within: Window): boolean
  }
}

type Result = { name: string; seen: string[]; said: string[] }

/** Each plays its part of the recordings at a host of its own, as most of it is waiting. */
const lanes = 4

/**
 * Each fourth recording is played, and each eighth where a layer is taken away, with `LETHE_DEEP=1`
 * all: what the filter makes of each of them is in filter.test.ts.
 */
const everyOf = ({ filter, policy }: { filter: boolean; policy: boolean }) => {
  if (isDeep) return 1
  return filter && policy ? 4 : 8
}

async function playAll(layers: { filter: boolean; policy: boolean }): Promise<Result[]> {
  const folder = layers.filter ? filtered : unfiltered
  const parts = await Promise.all(
    Array.from({ length: lanes }, (_, lane) => playPart(folder, layers, lane)),
  )
  return parts.flat()
}

async function playPart(
  folder: string,
  layers: { filter: boolean; policy: boolean },
  lane: number,
): Promise<Result[]> {
  const host = await startReplayHost(folder, layers)
  const context = await browser.newContext()
  const results: Result[] = []
  const part = hostileRecordings(`${host.url}/trap`)
    .filter((_, index) => index % everyOf(layers) === 0)
    .filter((_, index) => index % lanes === lane)
  try {
    let page = await context.newPage()
    await page.goto(host.url)
    for (const { name, events } of part) {
      const lines = `${events.map((event) => JSON.stringify(event)).join('\n')}\n`
      results.push({ name, ...(await misdeeds(context, page, host, lines, layers.filter)) })
      if (page.url() !== `${host.url}/` || page.isClosed()) {
        await page.close()
        page = await context.newPage()
        await page.goto(host.url)
      }
    }
  } finally {
    await context.close()
    await host.close()
  }
  return results
}

describe('a forged recording runs no script, makes no request and leads nowhere', () => {
  test('as recordings are played', { timeout: 600_000 }, async () => {
    const results = await playAll({ filter: true, policy: true })
    expect(results.filter(({ seen }) => seen.length > 0)).toEqual([])
    // It is not that nothing was played.
    const unplayed = results.filter(
      ({ said }) => !said.includes('ready') || !said.includes('ended'),
    )
    expect(unplayed.map(({ name, said }) => `${name}: ${said}`)).toEqual([])
    expect(results.length).toBeGreaterThanOrEqual(60 / everyOf({ filter: true, policy: true }))
  })

  test('by the frame and its policy alone, the filter taken away', {
    timeout: 600_000,
  }, async () => {
    const results = await playAll({ filter: false, policy: true })
    expect(results.filter(({ seen }) => seen.length > 0)).toEqual([])
  })

  test('and by the filter and the frame alone, the policy taken away', {
    timeout: 600_000,
  }, async () => {
    const results = await playAll({ filter: true, policy: false })
    expect(results.filter(({ seen }) => seen.length > 0)).toEqual([])
  })
})

test('with neither filter nor policy the same recordings do reach the outside', {
  timeout: 600_000,
}, async () => {
  const results = await playAll({ filter: false, policy: false })
  const reaching = results.filter(({ seen }) => seen.length > 0).length
  expect(reaching / results.length).toBeGreaterThan(0.3)
})
