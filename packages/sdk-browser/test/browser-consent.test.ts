import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { html, isSnapshot, type Site, test, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

const kept = (page: Page) =>
  page.evaluate(() => Object.keys({ ...localStorage, ...sessionStorage }).sort())

async function open(lethe: LetheServer, site: Site, page: Page, options: string) {
  site.set('/', html(lethe, '<p></p>', options))
  await page.goto(`${site.url}/`)
}

/** Long enough for a page that would record to have asked for a session. */
const settle = (page: Page) => page.evaluate(() => new Promise((done) => setTimeout(done, 500)))

describe.concurrent('while consent is', () => {
  for (const consent of ['pending', 'denied']) {
    test(`${consent}, nothing is recorded, stored or sent`, async ({ lethe, site, page }) => {
      await open(lethe, site, page, `{ consent: '${consent}' }`)
      await page.evaluate(() => globalThis.lethe?.identify('jane'))
      await settle(page)
      expect(lethe.received).toEqual([])
      expect(await kept(page)).toEqual([])
    })
  }

  test('pending, calls wait for optIn(), which is remembered', async ({ lethe, site, page }) => {
    await open(lethe, site, page, "{ consent: 'pending' }")
    await page.evaluate(() => globalThis.lethe?.identify('jane'))
    await page.evaluate(() => globalThis.lethe?.optIn())
    await until(() => [...lethe.browsers.values()][0]?.userId === 'jane')
    // Else what the first page recorded may come with what the second one does.
    await until(() => lethe.requests('chunks').length >= 1)
    await page.reload()
    await until(() => lethe.events().filter(isSnapshot).length >= 1)
    await until(() => lethe.requests('chunks').length >= 2)
  })
})

describe.concurrent('optOut()', () => {
  test('ends recording and deletes ids and queue, for later pages too', async ({
    lethe,
    site,
    page,
  }) => {
    await open(lethe, site, page, '{ start: { minimumSeconds: 1 }, assets: true }')
    await until(() => lethe.events().some(isSnapshot))
    expect(await kept(page)).toContain('lethe.on')
    await page.evaluate(() => {
      document.querySelector('p')?.append('UNSENT')
      globalThis.lethe?.optOut()
    })
    await page.reload()
    await settle(page)
    expect(JSON.stringify(lethe.events())).not.toContain('UNSENT')
    expect(await kept(page)).toEqual(['lethe.consent'])
    expect(lethe.requests('start')).toHaveLength(1)
  })

  test('ends it in the other tabs', async ({ lethe, site, page, context }) => {
    await open(lethe, site, page, '{}')
    await until(() => lethe.events().some(isSnapshot))
    const other = await context.newPage()
    await other.goto(`${site.url}/`)
    await until(() => lethe.events().filter(isSnapshot).length === 2)
    await other.evaluate(() => globalThis.lethe?.optOut())
    await until(async () => {
      await page.evaluate(() => document.querySelector('p')?.append('x'))
      return !(await page.evaluate(() => Object.keys(localStorage).join())).includes('pk_test')
    })
    await page.bringToFront()
    await page.evaluate(() => new Promise((done) => setTimeout(done, 6000)))
    const before = lethe.received.length
    await page.evaluate(() => document.querySelector('p')?.append('LATER'))
    await page.reload()
    await settle(page)
    expect(lethe.received.length).toBe(before)
  })

  test('before init is remembered as well; optIn() revokes it', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, '<p></p>').replace('lethe.init', 'lethe.optOut();lethe.init'))
    await page.goto(`${site.url}/`)
    await settle(page)
    expect(lethe.received).toEqual([])
    await page.evaluate(() => globalThis.lethe?.optIn())
    await until(() => lethe.events().some(isSnapshot))
  })
})

describe.concurrent('Global Privacy Control', () => {
  for (const [options, records] of [
    ['{ respectGlobalPrivacyControl: true }', false],
    ['{}', true],
  ] as const) {
    test(`${records ? 'is ignored otherwise' : 'is a refusal where the page says so'}`, async ({
      lethe,
      site,
      page,
    }) => {
      await page.addInitScript(() =>
        Object.defineProperty(navigator, 'globalPrivacyControl', { value: true }),
      )
      await open(lethe, site, page, options)
      if (records) await until(() => lethe.events().some(isSnapshot))
      else await settle(page)
      expect(lethe.received.length > 0).toBe(records)
    })
  }
})

test.concurrent('stop() ends recording and sends what there is; init() starts again', async ({
  lethe,
  site,
  page,
}) => {
  await open(lethe, site, page, '{}')
  await until(() => lethe.events().some(isSnapshot))
  await page.evaluate(() => document.querySelector('p')?.append('BEFORE'))
  await page.evaluate(() => globalThis.lethe?.stop())
  await until(() => JSON.stringify(lethe.events()).includes('BEFORE'))
  await page.evaluate(() => document.querySelector('p')?.append('BETWEEN'))
  await settle(page)
  expect(JSON.stringify(lethe.events())).not.toContain('BETWEEN')
  await page.evaluate(() => globalThis.lethe?.init('pk_test'))
  await until(() => lethe.events().filter(isSnapshot).length === 2)
  expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(1)
})
