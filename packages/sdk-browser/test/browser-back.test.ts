import { expect } from 'vitest'
import { test as base, html, isSnapshot, until } from './chromium.ts'
import { launchWhole } from './launch.ts'

/* Pages that the browser keeps for who goes back. */

const test = base.extend({
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const browser = await launchWhole()
      await use(browser)
      await browser.close()
    },
    { scope: 'file' },
  ],
})

test.concurrent('a page that comes back from the bfcache is recorded on, with a snapshot', async ({
  lethe,
  site,
  page,
}) => {
  site.set('/', html(lethe, '<p>first</p>'))
  site.set('/next', html(lethe, '<p>next</p>'))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  await page.evaluate(() => {
    addEventListener('pageshow', (event) => (document.body.id = `persisted-${event.persisted}`))
  })
  await page.goto(`${site.url}/next`)
  await until(() => lethe.events().filter(isSnapshot).length === 2)
  await page.evaluate(() => history.back())
  // Unlike evaluate(), it may begin in the page that is left.
  await page.waitForFunction(() => document.body?.id === 'persisted-true')
  await until(() => lethe.events().filter(isSnapshot).length === 3)
  await page.evaluate(() => document.querySelector('p')?.append('BACK'))
  await until(() => JSON.stringify(lethe.events()).includes('BACK'))
  const numbers = lethe.chunks.map(({ tab, number }) => `${tab} ${number}`)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(1)
})

test.concurrent('page views are counted: loads, routes and pages restored by back, not queries, anchors or pauses', async ({
  lethe,
  site,
  page,
}) => {
  const pages = () => {
    // What a hidden page sends it sends once more.
    const told = new Map<string, number>()
    for (const { query } of lethe.requests('chunks')) {
      told.set(`${query.session} ${query.tab} ${query.number}`, Number(query.pages ?? 0))
    }
    return [...told.values()].reduce((sum, count) => sum + count, 0)
  }
  const go = async (way: string, url: string) => {
    await page.evaluate(
      ([method, to]) => {
        history[method as 'pushState']({}, '', to)
        document.querySelector('p')?.append(` ${to} `)
      },
      [way, url] as const,
    )
    // What was collected is sent, which else waits for up to half a minute.
    await page.evaluate(() => {
      for (const value of ['hidden', 'visible']) {
        Object.defineProperty(document, 'visibilityState', { value, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }
    })
    await until(() => JSON.stringify(lethe.events()).includes(` ${url} `))
  }
  site.set('/', html(lethe, '<p></p>'))
  site.set('/next', html(lethe, '<p></p>'))
  await page.goto(`${site.url}/`)
  await until(() => pages() === 1)
  await go('pushState', '/orders')
  await until(() => pages() === 2)
  await go('replaceState', '/orders?sort=price')
  await go('pushState', '/orders#second')
  await go('pushState', '/orders#/order/7')
  await until(() => pages() === 3)
  await page.goto(`${site.url}/next`)
  await until(() => pages() === 4)
  await page.evaluate(() => history.back())
  await until(() => pages() === 5)
  // Another session of the same view has one page too.
  await page.evaluate(() => globalThis.lethe?.reset())
  await until(() => new Set(lethe.chunks.map(({ session }) => session)).size === 2)
  await until(() => pages() === 6)
  expect(lethe.requests('chunks').filter(({ query }) => query.pages === '0')).toEqual([])
})
