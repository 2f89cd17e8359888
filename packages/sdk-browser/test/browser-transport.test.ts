import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { html, isSnapshot, says, test, until } from './chromium.ts'
import { type LetheServer, refusal } from './lethe-server.ts'

const say = (page: Page, text: string) =>
  page.evaluate((each) => document.querySelector('p')?.append(each), text)

const has = (lethe: LetheServer, text: string) => JSON.stringify(lethe.events()).includes(text)

const go = (page: Page) => page.evaluate(() => dispatchEvent(new Event('online')))

describe.concurrent('when the page goes away', () => {
  test('the last events still arrive, as a beacon', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await say(page, 'LAST')
    await page.goto('about:blank')
    await until(() => has(lethe, 'LAST'))
  })

  test('what is too long for a beacon waits for the next page of the tab', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p></p>'))
    site.set('/next', html(lethe, '<p>next</p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.evaluate(() => {
      const long = (name: string) => `${name}:${'\u00e9'.repeat(50_000)}`
      document.querySelector('p')?.append('FIRST')
      setTimeout(() => document.querySelector('p')?.append(long('SECOND')), 1)
      setTimeout(() => document.querySelector('p')?.append(long('THIRD')), 30)
      setTimeout(() => location.assign('/next'), 60)
    })
    await page.waitForURL('**/next')
    await until(() => ['FIRST', 'SECOND', 'THIRD'].every((each) => has(lethe, each)))
    const beacons = lethe.requests('chunks').filter(({ isGzip }) => !isGzip)
    expect(beacons.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(60_000)
    expect(await page.evaluate(() => sessionStorage.getItem('lethe.unsent'))).toBeNull()
  })

  test('a beacon the browser does not take is not lost', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.evaluate(() => {
      navigator.sendBeacon = () => false
    })
    await say(page, 'LAST')
    await page.reload()
    await until(() => has(lethe, 'LAST'))
  })

  test('a page that was only hidden confirms what it sent as a beacon', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    // Beacons that get lost on the way, though the browser took them.
    await page.evaluate(() => {
      navigator.sendBeacon = () => true
      Object.defineProperty(document, 'visibilityState', { value: 'hidden' })
    })
    await say(page, 'HIDDEN')
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await until(() => has(lethe, 'HIDDEN'))
  })
})

describe.concurrent('when the server cannot be reached', () => {
  test('everything waits and arrives in order when it can', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    lethe.state.isDown = true
    for (const text of ['ONE', 'TWO', 'THREE']) {
      await say(page, text)
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    }
    lethe.state.isDown = false
    await until(async () => {
      await go(page)
      return has(lethe, 'THREE')
    })
    expect(has(lethe, 'ONE') && has(lethe, 'TWO')).toBe(true)
    const numbers = lethe.chunks.map(({ number }) => number)
    expect(numbers).toEqual(numbers.map((_, at) => at))
  })

  test('a start that fails is retried, and calls wait for it', async ({ lethe, site, page }) => {
    lethe.state.isDown = true
    site.set('/', html(lethe, '<p></p>').replace('</script></head>', ";lethe.identify('jane')$&"))
    // The script itself must come from somewhere.
    await page.route('**/sdk/**', async (route) => {
      lethe.state.isDown = false
      await route.continue()
    })
    let refused = 0
    lethe.state.script = ({ path }) =>
      path === '/ingest/v1/start' && refused++ < 2
        ? { status: 503, body: refusal('retry', 1) }
        : undefined
    await page.goto(`${site.url}/`)
    await until(() => lethe.requests('identify').length)
    expect(lethe.requests('start').map(({ status }) => status)).toEqual([503, 503, 200])
  })
})

describe.concurrent('what the server says next', () => {
  test.for([
    ['429 with a time to wait', 429, refusal('retry', 1)],
    ['503', 503, refusal('retry', 1)],
    ['409 while the same chunk is in flight', 409, refusal('retry', 1)],
    ['500 of a proxy, which says nothing', 500, {}],
  ] as const)('%s: the same chunk comes again', async ([, status, body], { lethe, site, page }) => {
    let times = 0
    lethe.state.script = ({ path }) =>
      path === '/ingest/v1/chunks' && times++ === 0 ? { status, body } : undefined
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    const [first, second] = lethe.requests('chunks')
    expect(second?.query).toEqual(first?.query)
    expect(second?.text).toBe(first?.text)
  })

  test('a chunk that is refused is not sent again; its loss is counted and shown', async ({
    lethe,
    site,
    page,
  }) => {
    lethe.state.script = ({ path, query }) =>
      path === '/ingest/v1/chunks' && query.number === '0'
        ? { status: 400, body: refusal('continue') }
        : undefined
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    const { data } = await until(() => lethe.events().find(says('lethe:dropped')))
    expect(data.payload).toEqual({ reason: 'refused', events: 2 })
    await until(() => lethe.events().some(isSnapshot))
    expect(lethe.requests('chunks').filter(({ query }) => query.number === '0')).toHaveLength(1)
  })

  test('stop ends it for this page, at a chunk as at the start', async ({ lethe, site, page }) => {
    for (const endpoint of ['chunks', 'start']) {
      lethe.received.length = 0
      lethe.state.script = ({ path }) =>
        path === `/ingest/v1/${endpoint}` ? { status: 401, body: refusal('stop') } : undefined
      site.set('/', html(lethe, '<p></p>'))
      await page.goto(`${site.url}/`)
      await until(() => lethe.requests(endpoint).length)
      await say(page, 'more')
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)))
      expect(lethe.requests(endpoint)).toHaveLength(1)
      expect(lethe.chunks).toHaveLength(0)
      await page.evaluate(() => localStorage.clear())
    }
  })

  test('a sample rate of nothing records nothing, and identify works', async ({
    lethe,
    site,
    page,
  }) => {
    lethe.state.settings = { ...lethe.state.settings, sampleRate: 0 }
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await page.evaluate(() => globalThis.lethe?.identify('jane'))
    await until(() => [...lethe.browsers.values()][0]?.userId === 'jane')
    expect(await page.evaluate(() => 'lethe_recorder' in globalThis)).toBe(false)
    expect(lethe.chunks).toHaveLength(0)
  })
})
