import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { html, isSnapshot, says, test, until } from './chromium.ts'

const MINUTE = 60_000

/** The page's own clock, moved by the test; what the visitor does is a real movement. */
async function move(page: Page, milliseconds: number) {
  await page.clock.runFor(milliseconds)
}

const act = (page: Page, at: number) => page.mouse.move(at, at)

describe.concurrent('a session', () => {
  test.beforeEach(async ({ page, site, lethe }) => {
    // The clock of the test passes for the browser's own, which the SDK would take from elsewhere.
    await page.addInitScript(`{
      const textOf = Function.prototype.toString
      Function.prototype.toString = function () {
        const names = { now: [Date.now, Performance.prototype.now], setTimeout: [setTimeout] }
        for (const name in names)
          if (names[name].includes(this)) return 'function ' + name + '() { [native code] }'
        return textOf.call(this)
      } }`)
    await page.clock.install()
    site.set('/', html(lethe, '<p>hello</p>'))
    await page.goto(`${site.url}/`)
    await untilWith(page, () => lethe.events().some(isSnapshot))
  })

  test('pauses after five idle minutes and goes on with a snapshot', async ({ lethe, page }) => {
    await move(page, 5 * MINUTE + 10_000)
    await untilWith(page, () => lethe.events().some(says('lethe:paused')))
    await page.evaluate(() => document.querySelector('p')?.append('UNSEEN'))
    await move(page, MINUTE)
    expect(JSON.stringify(lethe.events())).not.toContain('UNSEEN')
    await act(page, 10)
    await untilWith(page, () => lethe.events().filter(isSnapshot).length === 2)
    expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(1)
  })

  test('ends after thirty idle minutes; the next one is of the same browser', async ({
    lethe,
    page,
  }) => {
    await move(page, 31 * MINUTE)
    await act(page, 10)
    await untilWith(page, () => lethe.requests('start').length === 2)
    await untilWith(page, () => lethe.events().filter(isSnapshot).length === 2)
    expect(lethe.browsers.size).toBe(1)
    expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(2)
  })

  test('ends after its maximum time, even if the visitor is active', async ({ lethe, page }) => {
    lethe.state.settings = { ...lethe.state.settings, sessionMaximumSeconds: 600 }
    await page.evaluate(() => globalThis.lethe?.reset())
    // With its first snapshot the page knows of the response to its start, and its time runs.
    await untilWith(page, () => lethe.events().filter(isSnapshot).length === 2)
    for (let minute = 0; minute < 9; minute++) {
      await move(page, MINUTE)
      await act(page, minute)
    }
    expect(lethe.requests('start')).toHaveLength(2)
    let at = 10
    await until(async () => {
      await move(page, MINUTE / 4)
      await act(page, at++)
      return lethe.requests('start').length === 3
    })
    const ids = new Set(lethe.requests('start').map(({ text }) => JSON.parse(text).browserId))
    expect(ids.size).toBe(2)
  })

  test('goes on over a reload, without asking for another', async ({ lethe, page }) => {
    await page.reload()
    await untilWith(page, () => lethe.events().filter(isSnapshot).length === 2)
    expect(lethe.requests('start')).toHaveLength(1)
    expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(1)
  })

  test('is not kept going by a page that changes on its own', async ({ lethe, page }) => {
    await page.evaluate(() => setInterval(() => document.querySelector('p')?.append('.'), 10_000))
    await move(page, 6 * MINUTE)
    await untilWith(page, () => lethe.events().some(says('lethe:paused')))
  })
})

/** As `until`, with the page's clock running on meanwhile. */
function untilWith<T>(page: Page, what: () => T) {
  return until(async () => {
    await page.clock.runFor(1000)
    return what()
  })
}
