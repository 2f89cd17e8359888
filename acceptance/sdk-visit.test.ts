import { describe, expect } from 'vitest'
import { byDepth } from '../packages/server/test/proof/deep.ts'
import {
  call,
  changesWith,
  eventsOf,
  identityOf,
  isSnapshot,
  keyFor,
  recordedPage,
  replay,
  say,
  sessionsOf,
  test,
  until,
  untilRecorded,
  untilStored,
} from './sdk-site.ts'

/* The SDK in a real Chromium against the real server, on its demo page and on pages of others. */

describe.concurrent('the demo page', () => {
  test('is recorded from the first view on, and the replay shows it', async ({
    lethe,
    visitor,
    page,
  }) => {
    await page.goto(`${lethe.url}/demo?key=${lethe.publicKey}`)
    await page.getByText('This page is being recorded.').waitFor()
    const { sessionId } = await untilRecorded(lethe, page)
    await page.getByRole('button', { name: 'Add Sourdough' }).click()
    await page.getByRole('button', { name: 'Basket' }).click()
    await untilStored(lethe, sessionId, '1 × Sourdough')
    const events = await eventsOf(lethe, sessionId)
    const shown = await replay(
      visitor,
      events,
      `[document.querySelector('header strong').textContent,
        document.querySelector('#lines').textContent,
        document.querySelector('#shop').hasAttribute('hidden')]`,
    )
    expect(shown).toEqual(['Fennel & Fig', '1 × Sourdough', true])
    const { session } = (await lethe.api('GET', `/v1/sessions/${sessionId}`)).json
    expect(session).toMatchObject({ pages: 1, url: expect.stringContaining('/demo') })
  })

  test('what is typed there never leaves the browser', async ({ lethe, page }) => {
    await page.goto(`${lethe.url}/demo?key=${lethe.publicKey}`)
    const { sessionId } = await untilRecorded(lethe, page)
    await page.getByLabel('Find something').fill('canary-search')
    await page.getByRole('button', { name: 'Basket' }).click()
    await page.getByLabel('Name').fill('canary-name')
    await page.getByLabel(/E-?mail/).fill('canary@example.com')
    await page.getByLabel('Card number').fill('4000123412341234')
    await page.getByRole('button', { name: 'Pay' }).click()
    const inputs = async () =>
      (await eventsOf(lethe, sessionId)).filter(({ type, data }) => type === 3 && data.source === 5)
    await until(async () => (await inputs()).length >= 3)
    await until(async () =>
      (await eventsOf(lethe, sessionId)).some(({ type, data }) => type === 3 && data.source === 2),
    )
    expect(JSON.stringify(await eventsOf(lethe, sessionId))).not.toMatch(/canary|40001234/)
  })

  test('signing in links the earlier sessions; signing out starts as a new browser', async ({
    lethe,
    page,
  }) => {
    await page.goto(`${lethe.url}/demo?key=${lethe.publicKey}`)
    const first = await untilRecorded(lethe, page)
    // Half an hour goes by, as far as the SDK can tell.
    await page.goto('about:blank')
    await page.goto(`${lethe.url}/docs`)
    await page.evaluate(`for (const [name, value] of Object.entries(localStorage)) {
      if (!name.startsWith('lethe.pk_')) continue
      localStorage.setItem(name, JSON.stringify({ ...JSON.parse(value), activeAt: 0 }))
    }`)
    await page.goto(`${lethe.url}/demo?key=${lethe.publicKey}`)
    const second = await until(async () => {
      const identity = await identityOf(page)
      return identity?.sessionId === first.sessionId ? undefined : identity
    })
    expect(second.browserId).toBe(first.browserId)
    await untilRecorded(lethe, page)

    await page.getByRole('button', { name: 'Sign in as Ada' }).click()
    await until(async () => (await sessionsOf(lethe, 'ada'))?.length === 2)
    const tied = await sessionsOf(lethe, 'ada')
    expect(tied.map(({ id }: { id: string }) => id)).toEqual([second.sessionId, first.sessionId])
    expect(tied.at(-1).beforeIdentification).toBe(true)
    await page.getByRole('button', { name: 'Add Fig jam' }).click()
    await until(async () => JSON.stringify(await eventsOf(lethe, second.sessionId)).includes('"1"'))

    await page.getByRole('button', { name: 'Sign out' }).click()
    const third = await until(async () => {
      const identity = await identityOf(page)
      return identity?.browserId === first.browserId ? undefined : identity
    })
    await untilRecorded(lethe, page)
    // Another person on the same device has a browser of their own, and Ada keeps hers.
    await page.getByRole('button', { name: 'Sign in as Grace' }).click()
    await until(async () => (await sessionsOf(lethe, 'grace'))?.length === 1)
    expect((await sessionsOf(lethe, 'grace'))[0].id).toBe(third.sessionId)
    expect(await sessionsOf(lethe, 'ada')).toHaveLength(2)
  })
})

describe.concurrent('a page of another origin', () => {
  test('keeps its session over a reload, and shares it with another tab', async ({
    lethe,
    site,
    visitor,
    page,
  }) => {
    site.set('/', await recordedPage(lethe, '<p>hello</p>'))
    await page.goto(`${site.url}/`)
    const before = await untilRecorded(lethe, page)
    await page.reload()
    await until(
      async () => (await eventsOf(lethe, before.sessionId)).filter(isSnapshot).length === 2,
    )
    expect(await identityOf(page)).toMatchObject(before)

    const other = await visitor.newPage()
    await other.goto(`${site.url}/`)
    await say(other, 'IN-OTHER')
    await untilStored(lethe, before.sessionId, 'IN-OTHER')
    expect(await identityOf(other)).toMatchObject(before)
    const { session, tabs } = (await lethe.api('GET', `/v1/sessions/${before.sessionId}`)).json
    expect(tabs).toHaveLength(2)
    expect(session).toMatchObject({ pages: 3, browserId: before.browserId })
    // Each tab is a document of its own to a player.
    for (const { tab } of tabs) {
      expect((await eventsOf(lethe, before.sessionId, tab)).slice(0, 2)).toMatchObject([
        { type: 4 },
        { type: 2 },
      ])
    }
  })

  test('loses nothing while offline, and delivers each event once', async ({
    lethe,
    site,
    visitor,
    page,
  }) => {
    site.set('/', await recordedPage(lethe, '<p>hello</p>'))
    await page.goto(`${site.url}/`)
    const { sessionId } = await untilRecorded(lethe, page)
    const { session: before } = (await lethe.api('GET', `/v1/sessions/${sessionId}`)).json
    let failed = 0
    page.on('requestfailed', () => failed++)
    await visitor.setOffline(true)
    const marks = Array.from({ length: 6 }, (_, at) => `OFFLINE-${at}`)
    for (const [at, mark] of marks.entries()) {
      await say(page, mark)
      // The first chunk is tried and tried again, and the others wait behind it.
      if (at % 2) await until(() => failed > at / 2)
    }
    expect(changesWith(await eventsOf(lethe, sessionId), 'OFFLINE-0')).toEqual([])
    await visitor.setOffline(false)
    await untilStored(lethe, sessionId, 'OFFLINE-5')
    await say(page, 'ONLINE')
    await untilStored(lethe, sessionId, 'ONLINE')
    const events = await eventsOf(lethe, sessionId)
    expect(marks.map((mark) => changesWith(events, mark).length)).toEqual(marks.map(() => 1))
    const times = [...marks, 'ONLINE'].map((mark) => events.indexOf(changesWith(events, mark)[0]))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(events.filter(isSnapshot)).toHaveLength(1)
    const { session } = (await lethe.api('GET', `/v1/sessions/${sessionId}`)).json
    expect(session.chunks).toBeGreaterThan(before.chunks)
  })

  // A browser gives a page half a second to leave, in which a busy machine may not let it run.
  test('delivers its last moments when it goes with its tab', { retry: 2 }, async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', await recordedPage(lethe, '<p>hello</p>'))
    await page.goto(`${site.url}/`)
    const { sessionId } = await untilRecorded(lethe, page)
    await say(page, 'LAST')
    await page.close({ runBeforeUnload: true })
    await untilStored(lethe, sessionId, 'LAST')
    expect(changesWith(await eventsOf(lethe, sessionId), 'LAST')).toHaveLength(1)
  })

  test('delivers them when it goes to another site, with a key limited to its origin, and hiding it', async ({
    lethe,
    site,
    page,
  }) => {
    const key = keyFor(lethe.dataDir, site.url)
    const html = (await recordedPage(lethe, '<p>hello</p>')).replaceAll(lethe.publicKey, key)
    site.set('/', html, { 'referrer-policy': 'no-referrer' })
    await page.goto(`${site.url}/`)
    const { sessionId } = await untilRecorded(lethe, page)
    await say(page, 'LAST')
    await page.goto('about:blank')
    await untilStored(lethe, sessionId, 'LAST')
    expect(changesWith(await eventsOf(lethe, sessionId), 'LAST')).toHaveLength(1)
  })

  test('of an origin that is not allowed is not recorded', async ({ lethe, site, page }) => {
    const key = keyFor(lethe.dataDir, 'https://shop.example')
    site.set('/', (await recordedPage(lethe, '<p>hello</p>')).replaceAll(lethe.publicKey, key))
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    const answered = page.waitForResponse((response) => response.url().includes('/ingest/v1/start'))
    await page.goto(`${site.url}/`)
    expect((await answered).status()).toBe(403)
    await call(page, "identify('nobody-here')")
    await page.reload()
    expect(await identityOf(page)).toBeUndefined()
    expect((await lethe.api('GET', '/v1/persons/nobody-here')).status).toBe(404)
    expect(faults).toEqual([])
  })

  test('of 5,000 nodes is recorded whole', async ({ lethe, site, visitor, page }) => {
    const cards = Array.from(
      { length: 720 },
      (_, at) => `<li class="c${at % 9}"><h2>Item ${at}</h2><p>text <b>${at}</b></p></li>`,
    ).join('')
    site.set('/', await recordedPage(lethe, `<ul>${cards}</ul>`))
    await page.goto(`${site.url}/`)
    const nodes = await page.evaluate(`(() => {
      const walker = document.createTreeWalker(document)
      let count = 1
      while (walker.nextNode()) count++
      return count
    })()`)
    expect(nodes).toBeGreaterThan(5_000)
    const { sessionId } = await untilRecorded(lethe, page)
    await say(page, 'ADDED')
    await untilStored(lethe, sessionId, 'ADDED')
    const question =
      "[document.querySelectorAll('ul *').length, document.querySelector('ul').textContent]"
    const shown = await replay(visitor, await eventsOf(lethe, sessionId), question)
    expect(shown).toEqual(await page.evaluate(question))
  })

  test.for([
    // The next one asks for this and more.
    ...byDepth([], [['nonces', "script-src 'nonce-abc'"] as const]),
    ['nonces and trusted types', "script-src 'nonce-abc'; trusted-types lethe; TYPES"],
    ['hosts, and loads the script by its hash', "script-src 'self' HOST"],
  ] as const)(
    'under a strict policy of %s is recorded without violating it',
    async ([, policy], { lethe, site, page }) => {
      const full = `default-src 'none'; img-src data:; connect-src HOST; ${policy}`
        .replaceAll('HOST', lethe.url)
        .replace('TYPES', "require-trusted-types-for 'script'")
      let html = await recordedPage(lethe, '<p>hello</p>', 'abc')
      if (policy.includes('HOST')) html = await pageByHash(lethe.url)
      site.set('/', html, { 'content-security-policy': full })
      site.set('/app.js', `lethe.init('${lethe.publicKey}')`)
      const printed: string[] = []
      page.on('console', (message) => printed.push(message.text()))
      await page.addInitScript(
        'addEventListener("securitypolicyviolation", (event) => console.log(event.violatedDirective))',
      )
      await page.goto(`${site.url}/`)
      const { sessionId } = await untilRecorded(lethe, page)
      await say(page, 'UNDER-POLICY')
      await untilStored(lethe, sessionId, 'UNDER-POLICY')
      expect(printed).toEqual([])
    },
  )
})

/** A page that names the script with its hash, and starts it from a script of its own. */
async function pageByHash(url: string): Promise<string> {
  const answer = await fetch(`${url}/sdk/manifest.json`)
  const { version, files } = JSON.parse(await answer.text())
  const { integrity } = files['lethe.js']
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>
    <link rel="icon" href="data:,">
    <script src="${url}/sdk/${version}/lethe.js" integrity="${integrity}" crossorigin></script>
    <script src="/app.js"></script></head><body><p>hello</p></body></html>`
}
