import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { html, isSnapshot, type Site, test, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

interface Open {
  lethe: LetheServer
  site: Site
  page: Page
}

async function open({ lethe, site, page }: Open, body = '<p>hello</p>') {
  site.set('/', html(lethe, body))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
}

const identify = (page: Page, userId: unknown) =>
  page.evaluate((id) => globalThis.lethe?.identify(id as string), userId)

const say = (page: Page, text: string) =>
  page.evaluate((each) => document.querySelector('p')?.append(each), text)

/** The browsers whose stored chunks hold a text, in the order of their chunks. */
const browsersWith = (lethe: LetheServer, text: string) => [
  ...new Set(
    lethe.chunks
      .filter(({ events }) => JSON.stringify(events).includes(text))
      .map((each) => each.browser),
  ),
]

describe.concurrent('identify', () => {
  test('keeps the session, so what came before belongs to the person', async ({
    lethe,
    site,
    page,
  }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    await say(page, 'AFTER')
    await until(() => browsersWith(lethe, 'AFTER').length)
    expect(new Set(lethe.chunks.map((chunk) => chunk.session)).size).toBe(1)
    expect([...lethe.browsers.values()]).toEqual([{ userId: 'jane', retired: false }])
  })

  test('as somebody else starts a new browser and a new session, once', async ({
    lethe,
    site,
    page,
  }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await say(page, 'OF-JANE')
    await identify(page, 'joe')
    await until(() => [...lethe.browsers.values()].some(({ userId }) => userId === 'joe'))
    await say(page, 'OF-JOE')
    await until(() => browsersWith(lethe, 'OF-JOE').length)
    const [jane, joe] = lethe.browsers.keys()
    expect(browsersWith(lethe, '"OF-JOE"')).toEqual([joe])
    // Joe's first snapshot shows the page, which still says what Jane's changes made of it.
    expect(browsersWith(lethe, 'OF-JANE')).toEqual([jane, joe])
    expect(lethe.chunks.filter(({ browser }) => browser === joe)[0]?.events.some(isSnapshot)).toBe(
      true,
    )
    expect(lethe.requests('identify').map(({ text }) => JSON.parse(text).userId)).toEqual([
      'jane',
      'joe',
    ])
  })

  test('passes on the hash of the backend', async ({ lethe, site, page }) => {
    await open({ lethe, site, page })
    await page.evaluate(() => globalThis.lethe?.identify('jane', { hash: 'ab12' }))
    const [request] = await until(() => lethe.requests('identify')[0] && lethe.requests('identify'))
    expect(JSON.parse(request?.text ?? '')).toMatchObject({ userId: 'jane', userHash: 'ab12' })
  })

  test('ignores ids that stand for nobody, and the warning says why without the id', async ({
    lethe,
    site,
    page,
  }) => {
    const printed: string[] = []
    page.on('console', (message) => message.type() === 'warning' && printed.push(message.text()))
    await open({ lethe, site, page })
    const nobody = (
      'undefined null NaN anonymous Anonymous anon guest GUEST user visitor unknown none true ' +
      'false 0 000 -1 - n/a {{user.id}} %USER_ID% <user> ' +
      '00000000-0000-0000-0000-000000000000'
    ).split(' ')
    for (const id of [...nobody, '[object Object]', 0, Number.NaN]) await identify(page, id)
    expect(new Set(printed)).toEqual(new Set(['lethe: identify: names nobody']))
    for (const id of ['', ' ', '\n\t ']) await identify(page, id)
    for (const id of [null, true, {}, ['jane']]) await identify(page, id)
    await identify(page, 'x'.repeat(201))
    expect([...new Set(printed.map((text) => text.split(': ')[2]))].slice(1)).toEqual([
      'no text',
      'too long',
    ])
    expect(printed).toHaveLength(nobody.length + 11)
    expect(lethe.requests('identify')).toHaveLength(0)
    await identify(page, 'null pointer')
    await until(() => lethe.requests('identify').length)
    expect(lethe.browsers.values().next().value?.userId).toBe('null pointer')
  })

  test('converts a number to text', async ({ lethe, site, page }) => {
    await open({ lethe, site, page })
    await identify(page, 42)
    await until(() => lethe.requests('identify').length)
    await identify(page, '42')
    await identify(page, '\u{1f600}'.repeat(200))
    await until(() => lethe.browsers.size === 2)
    const names = () => [...lethe.browsers.values()].map(({ userId }) => userId)
    await until(() => names()[1])
    expect(names()).toEqual(['42', '\u{1f600}'.repeat(200)])
  })

  test('before init waits for it, and is sent once though called on every render', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '').replace('lethe.init', "lethe.identify('jane');lethe.init"))
    await page.goto(`${site.url}/`)
    await until(() => lethe.requests('identify').length)
    await page.evaluate(() => {
      for (let times = 0; times < 100; times++) globalThis.lethe?.identify('jane')
    })
    await until(() => lethe.events().some(isSnapshot))
    expect(lethe.requests('identify').length).toBeLessThanOrEqual(2)
  })

  test('leaves no user id in the browser', async ({ lethe, site, page }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane@example.com')
    await until(() => lethe.requests('identify').length)
    await page.reload()
    await until(() => lethe.events().filter(isSnapshot).length > 1)
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    )
    expect(kept).toContain('browserId')
    expect(kept).not.toContain('jane')
  })
})

test.concurrent('reset starts a new browser, linked to nobody', async ({ lethe, site, page }) => {
  await open({ lethe, site, page })
  await identify(page, 'jane')
  await until(() => lethe.requests('identify').length)
  await page.evaluate(() => globalThis.lethe?.reset())
  await until(() => lethe.browsers.size === 2)
  await say(page, 'LATER')
  await until(() => browsersWith(lethe, 'LATER').length)
  const [first, second] = lethe.browsers.keys()
  expect(browsersWith(lethe, 'LATER')).toEqual([second])
  expect([...lethe.browsers.values()].map(({ userId }) => userId)).toEqual(['jane', undefined])
  await page.reload()
  await until(() => lethe.events(({ browser }) => browser === second).filter(isSnapshot).length > 1)
  expect(lethe.browsers.size).toBe(2)
  expect(first).not.toBe(second)
})

describe.concurrent('when an erasure has retired the browser', () => {
  test('recording continues anonymously, and no byte of the old browser is sent any more', async ({
    lethe,
    site,
    page,
  }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    const [old] = lethe.browsers.keys()
    lethe.retire('jane')
    const before = lethe.chunks.length
    await say(page, 'DURING')
    await until(() => lethe.browsers.size === 2)
    await until(() => lethe.events(({ browser }) => browser !== old).some(isSnapshot))
    await say(page, 'AFTER')
    await until(() => browsersWith(lethe, '"AFTER"').length)

    const fresh = [...lethe.browsers.keys()][1]
    expect(browsersWith(lethe, 'AFTER')).toEqual([fresh])
    expect(lethe.chunks.slice(before).every(({ browser }) => browser === fresh)).toBe(true)
    expect(lethe.events(({ browser }) => browser === fresh)[1]).toMatchObject({ type: 2 })
    expect(lethe.requests('identify')).toHaveLength(1)
    expect(lethe.browsers.get(fresh ?? '')?.userId).toBeUndefined()
    const stored = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }]),
    )
    expect(stored).not.toContain(old)
  })

  test('only the next call of the application names the person again', async ({
    lethe,
    site,
    page,
  }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    lethe.retire('jane')
    await say(page, 'more')
    await until(() => lethe.browsers.size === 2)
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length === 2)
    const [, fresh] = lethe.browsers.values()
    expect(fresh).toEqual({ userId: 'jane', retired: false })
  })

  test('an identify that meets the retirement is not repeated', async ({ lethe, site, page }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    // No earlier, or a chunk might be what meets it.
    lethe.state.script = ({ path }) => {
      if (path === '/ingest/v1/identify') lethe.retire('jane')
      return undefined
    }
    await page.evaluate(() => globalThis.lethe?.identify('jane', { hash: 'other' }))
    await until(() => lethe.browsers.size === 2)
    await say(page, 'AFTER')
    await until(() => browsersWith(lethe, 'AFTER').length)
    expect(lethe.requests('identify').map(({ status }) => status)).toEqual([200, 410])
    expect([...lethe.browsers.values()][1]?.userId).toBeUndefined()
  })

  test('a page opened later starts as a new browser, and its own identify counts', async ({
    lethe,
    site,
    page,
  }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    await page.goto('about:blank')
    lethe.retire('jane')
    // The session ended meanwhile, so the page has to ask for one.
    site.set('/', html(lethe, '<p></p>').replace('</script></head>', ";lethe.identify('jane')$&"))
    await page.addInitScript(() => {
      for (const [name, value] of Object.entries(localStorage)) {
        if (name.startsWith('lethe.pk')) {
          localStorage.setItem(name, JSON.stringify({ ...JSON.parse(value), activeAt: 0 }))
        }
      }
    })
    await page.goto(`${site.url}/`)
    await until(() => [...lethe.browsers.values()][1]?.userId === 'jane')
    expect(lethe.requests('start').map(({ status }) => status)).toEqual([200, 410, 200])
  })

  test('two tabs go on as one new browser', async ({ lethe, site, page, context }) => {
    await open({ lethe, site, page })
    await identify(page, 'jane')
    await until(() => lethe.requests('identify').length)
    const other = await context.newPage()
    await other.goto(`${site.url}/`)
    await until(() => lethe.events().filter(isSnapshot).length === 2)
    lethe.retire('jane')
    await say(page, 'ONE')
    await until(() => lethe.browsers.size === 2)
    const fresh = [...lethe.browsers.keys()][1]
    await until(() => lethe.events(({ browser }) => browser === fresh).some(isSnapshot))
    await say(other, 'TWO')
    await until(
      () => lethe.events(({ browser }) => browser === fresh).filter(isSnapshot).length === 2,
    )
    expect(lethe.browsers.size).toBe(2)
  })
})

describe.concurrent('tabs', () => {
  test('share one browser and one session, and have chunks of their own', async ({
    lethe,
    site,
    page,
    context,
  }) => {
    await open({ lethe, site, page })
    const other = await context.newPage()
    await other.goto(`${site.url}/`)
    await until(() => lethe.events().filter(isSnapshot).length === 2)
    const of = (what: 'browser' | 'session' | 'tab') =>
      new Set(lethe.chunks.map((each) => each[what]))
    expect([of('browser').size, of('session').size, of('tab').size]).toEqual([1, 1, 2])
    expect(lethe.requests('start')).toHaveLength(1)
  })

  test('continue the numbers of their chunks after a reload', async ({ lethe, site, page }) => {
    await open({ lethe, site, page })
    await page.reload()
    await until(() => lethe.events().filter(isSnapshot).length === 2)
    await page.reload()
    await until(() => lethe.events().filter(isSnapshot).length === 3)
    expect(new Set(lethe.chunks.map(({ tab }) => tab)).size).toBe(1)
    const numbers = lethe.chunks.map(({ number }) => number)
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  test('opened at once end up in one session', async ({ lethe, site, context }) => {
    site.set('/', html(lethe, '<p></p>'))
    const pages = await Promise.all([context.newPage(), context.newPage(), context.newPage()])
    await Promise.all(pages.map((each) => each.goto(`${site.url}/`)))
    await until(() => lethe.events().filter(isSnapshot).length === 3)
    expect(new Set(lethe.chunks.map(({ session }) => session)).size).toBe(1)
  })
})
