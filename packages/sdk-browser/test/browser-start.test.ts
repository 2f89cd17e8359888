import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { html, isSnapshot, says, test, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

/** Long enough for a start, a snapshot and its upload to have happened. */
const SETTLED = 3_000

const lethe = (call: string) => `void globalThis.lethe.${call}`

const isThere = (page: Page) => page.waitForFunction('"lethe_more" in globalThis')
const texts = (server: LetheServer) =>
  server
    .requests('chunks')
    .map(({ text }) => text)
    .join('\n')

describe.concurrent('starts only where wanted', () => {
  test('after start(), also after stop(); what was named before counts', async ({
    lethe: server,
    site,
    page,
  }) => {
    site.set('/', html(server, '<p>x</p>', "{ start: { on: 'call' } }"))
    await page.goto(`${site.url}/`)
    await page.evaluate(lethe("identify('jane')"))
    await isThere(page)
    await page.waitForTimeout(SETTLED)
    expect(server.received).toEqual([])
    expect(await page.evaluate('lethe.browserId()')).toBeUndefined()
    await page.evaluate(lethe('start()'))
    await until(() => server.events().some(isSnapshot))
    await until(() => server.requests('identify').length)
    const [browser] = [...server.browsers.keys()]
    expect(await page.evaluate('lethe.browserId()')).toBe(browser)
    await page.evaluate(lethe('stop()'))
    const before = server.events().filter(isSnapshot).length
    await page.evaluate(lethe('start()'))
    await until(() => server.events().filter(isSnapshot).length > before)
    expect(server.browsers.size).toBe(1)
  })

  test('on the named pages, from the call that navigates there until the one that leaves', async ({
    lethe: server,
    site,
    page,
  }) => {
    const rules = "{ start: { only: ['/shop', /[?]tried=1/], never: ['/shop/admin'] } }"
    site.set('/', html(server, '<p id="where">x</p>', rules))
    await page.goto(`${site.url}/`)
    await isThere(page)
    await page.waitForTimeout(SETTLED)
    expect(server.received).toEqual([])
    const go = (path: string, text: string) =>
      page.evaluate(
        ([path, text]) => {
          history.pushState({}, '', path)
          ;(document.getElementById('where') as HTMLElement).textContent = text as string
        },
        [path, text],
      )
    await go('/shop/1', 'SEEN')
    await until(() => server.events().some(isSnapshot))
    await go('/shop/admin', 'CANARY')
    await page.waitForTimeout(SETTLED)
    await go('/?tried=1', 'SEEN AGAIN')
    await until(() => texts(server).includes('SEEN AGAIN'))
    await page.evaluate('history.back()')
    await page.evaluate(() => {
      addEventListener('popstate', () => document.body.append('CANARY'))
    })
    await page.waitForTimeout(SETTLED)
    expect(texts(server)).not.toContain('CANARY')
    expect(server.requests('start')).toHaveLength(1)
  })

  test('pages that are never recorded are not recorded by start() either', async ({
    lethe: server,
    site,
    page,
  }) => {
    site.set('/admin', html(server, '<p>CANARY</p>', "{ start: { never: ['/admin'] } }"))
    await page.goto(`${site.url}/admin`)
    await isThere(page)
    await page.evaluate(lethe('start()'))
    await page.waitForTimeout(SETTLED)
    expect(server.received).toEqual([])
  })
})

describe.concurrent('what is held back', () => {
  test('before an error is sent with it, and nothing is sent without an error', async ({
    lethe: server,
    site,
    page,
  }) => {
    site.set('/', html(server, '<p>BEFORE</p>', "{ start: { on: 'error' } }"))
    site.set('/next', html(server, '<p>NEXT</p>', "{ start: { on: 'error' } }"))
    await page.goto(`${site.url}/`)
    await isThere(page)
    await page.evaluate(`document.body.append('CHANGED')`)
    await page.waitForTimeout(6_000)
    expect(server.requests('chunks')).toEqual([])
    await page.evaluate(`setTimeout(() => { throw new Error('now') })`)
    await until(() => texts(server).includes('CHANGED'))
    expect(texts(server)).toContain('BEFORE')
    // The session goes on being sent on its next page.
    await page.goto(`${site.url}/next`)
    await until(() => texts(server).includes('NEXT'))
  })

  test('of a short session is not sent; of a longer one all is, over pages too', async ({
    lethe: server,
    site,
    page,
  }) => {
    const options = '{ start: { minimumSeconds: 8 } }'
    site.set('/', html(server, '<p>FIRST</p>', options))
    site.set('/next', html(server, '<p>NEXT</p>', options))
    await page.goto(`${site.url}/`)
    await isThere(page)
    await page.waitForTimeout(SETTLED)
    await page.goto(`${site.url}/next`)
    await isThere(page)
    expect(server.requests('chunks')).toEqual([])
    await until(() => texts(server).includes('NEXT'))
    expect(texts(server)).toContain('FIRST')
    const [start, chunk] = [server.requests('start')[0], server.requests('chunks')[0]]
    expect(Number(chunk?.query.to)).toBeLessThan(8_000)
    expect(start).toBeDefined()
  })
})

test.concurrent("a page's sample rate and the project's: the lower counts", async ({
  lethe: server,
  site,
  page,
}) => {
  site.set('/', html(server, '<p>x</p>', '{ sampleRate: 0 }'))
  await page.goto(`${site.url}/`)
  await until(() => server.requests('start').length)
  await page.waitForTimeout(SETTLED)
  expect(server.requests('chunks')).toEqual([])
  expect(await page.evaluate('"lethe_recorder" in globalThis')).toBe(false)
})

test.concurrent('start() records whatever the lot says, and nothing where the project records nothing', async ({
  lethe: server,
  site,
  page,
}) => {
  site.set('/', html(server, '<p>x</p>', '{ sampleRate: 0 }'))
  await page.goto(`${site.url}/`)
  await until(() => server.requests('start').length)
  await page.waitForTimeout(SETTLED)
  await page.evaluate(lethe('start()'))
  await until(() => server.events().some(isSnapshot))
  expect(server.requests('start')).toHaveLength(1)

  server.state.settings = { ...server.state.settings, sampleRate: 0 }
  const before = server.requests('chunks').length
  await page.evaluate(lethe('reset(); lethe.start()'))
  await until(() => server.requests('start').length === 2)
  await page.waitForTimeout(SETTLED)
  const [, second] = [...server.browsers.keys()]
  const sent = server.requests('chunks').slice(before)
  expect(sent.filter(({ query }) => query.browser === second)).toEqual([])
})

test.concurrent('after stop() the history is as it was before, and what covers ours does nothing', async ({
  lethe: server,
  site,
  page,
}) => {
  const rules = "{ start: { only: ['/shop'] } }"
  site.set('/', html(server, '<p>x</p>', rules))
  await page.addInitScript(() => {
    Object.assign(globalThis, { own: History.prototype.pushState })
  })
  const isOwn = 'History.prototype.pushState === own'
  await page.goto(`${site.url}/`)
  await page.waitForFunction(`!(${isOwn})`)
  await page.evaluate(lethe('stop()'))
  expect(await page.evaluate(isOwn)).toBe(true)

  await page.evaluate(lethe('start()'))
  await page.evaluate(`{
    const ours = History.prototype.pushState
    globalThis.theirs = History.prototype.pushState = function (...input) { ours.apply(this, input) }
    lethe.stop()
    history.pushState({}, '', '/shop/1') }`)
  await page.waitForTimeout(SETTLED)
  expect(server.received).toEqual([])
  expect(await page.evaluate('History.prototype.pushState === theirs')).toBe(true)
  await page.evaluate(`lethe.start(); history.pushState({}, '', '/shop/2')`)
  await until(() => server.events().some(isSnapshot))
})

test.concurrent('subdomains are one browser by a cookie, where the page asks for it', async ({
  lethe: server,
  site,
  browser,
}) => {
  const context = await browser.newContext()
  const page = await context.newPage()
  const { port } = new URL(site.url)
  const at = (name: string) => `http://${name}.shop.localhost:${port}/`
  site.set('/', html(server, '<p>x</p>', "{ cookieDomain: 'shop.localhost' }"))
  await page.goto(at('www'))
  await until(() => server.events().some(isSnapshot))
  await page.evaluate(lethe("identify('jane')"))
  await until(() => server.requests('identify').length)
  await page.goto(at('app'))
  await until(
    () =>
      server.events().filter(says('lethe:paused')).length ||
      server.events().filter(isSnapshot).length > 1,
  )
  expect(server.browsers.size).toBe(1)
  expect(server.requests('start')).toHaveLength(1)
  // Whoever signs out in one place is somebody else in all.
  await page.evaluate(lethe('reset()'))
  await until(() => server.browsers.size === 2)
  await page.goto(at('www'))
  // Of each page one, and one of the page that went on as somebody else.
  await until(() => server.events().filter(isSnapshot).length === 4)
  expect(server.browsers.size).toBe(2)
  await page.evaluate(lethe('optOut()'))
  await page.goto(at('app'))
  await isThere(page)
  await page.waitForTimeout(SETTLED)
  expect(server.requests('start')).toHaveLength(2)
  expect(await context.cookies().then((all) => all.map(({ name }) => name))).toEqual([
    'lethe.consent',
  ])
  await context.close()
})
