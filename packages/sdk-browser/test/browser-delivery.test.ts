import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { describe, expect } from 'vitest'
import { html, isSnapshot, KEY, test, until } from './chromium.ts'

describe.concurrent('the snippet', () => {
  test('keeps calls until the script is there', async ({ dist, lethe, site, page }) => {
    const snippet = (await readFile(join(dist, 'snippet.html'), 'utf8'))
      .replaceAll('{{host}}', lethe.url)
      .replaceAll('{{key}}', KEY)
    const calls = "<script>lethe.identify('jane')</script>"
    site.set('/', `<!doctype html><head>${snippet}${snippet}${calls}</head><p>hello</p>`)
    await page.goto(`${site.url}/`)
    await until(() => [...lethe.browsers.values()][0]?.userId === 'jane')
    await until(() => lethe.events().some(isSnapshot))
    expect(lethe.requests('start')).toHaveLength(1)
  })

  test('works where Trusted Types are required, and others cannot use its policy', async ({
    dist,
    lethe,
    site,
    page,
  }) => {
    const snippet = (await readFile(join(dist, 'snippet.html'), 'utf8'))
      .replaceAll('{{host}}', lethe.url)
      .replaceAll('{{key}}', KEY)
      .replace('<script>', '<script nonce="abc">')
    const keep = '<script nonce="abc">globalThis.kept = lethe.t</script>'
    site.set('/', `<!doctype html><head>${snippet}${keep}</head><p>hello</p>`, {
      'content-security-policy':
        "script-src 'nonce-abc'; require-trusted-types-for 'script'; trusted-types lethe",
    })
    const printed: string[] = []
    page.on('console', (message) => printed.push(message.text()))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    expect(printed.filter((text) => !/favicon|404/.test(text))).toEqual([])
    const passed = await page.evaluate(
      (url) =>
        [`${url}/sdk/0.1.0/recorder.js`, 'https://evil.example/x.js', `${url}/x.js`].map((each) =>
          // biome-ignore lint/suspicious/noExplicitAny: kept by the page of this test
          String((globalThis as any).kept.createScriptURL(each)),
        ),
      lethe.url,
    )
    expect(passed).toEqual([`${lethe.url}/sdk/0.1.0/recorder.js`, '', ''])
  })

  test('does not run a script that is not the one it was made for', async ({
    dist,
    lethe,
    site,
    page,
  }) => {
    const snippet = (await readFile(join(dist, 'snippet.html'), 'utf8'))
      .replaceAll('{{host}}', lethe.url)
      .replaceAll('{{key}}', KEY)
    site.set('/', `<!doctype html><head>${snippet}</head>`)
    await page.route('**/lethe.js', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: `${await response.text()};globalThis.evil = true` })
    })
    const failed = page.waitForEvent('console', (message) => /integrity/.test(message.text()))
    await page.goto(`${site.url}/`)
    await failed
    expect(await page.evaluate(() => 'evil' in globalThis)).toBe(false)
  })
})

describe.concurrent('a page with a strict content security policy', () => {
  test.for([
    ['a nonce', "script-src 'nonce-abc'"],
    ['hosts', 'script-src HOST SELF'],
    [
      'trusted types',
      "script-src 'nonce-abc'; require-trusted-types-for 'script'; trusted-types lethe",
    ],
  ] as const)(
    'of %s is recorded, and reports nothing',
    async ([, policy], { lethe, site, page }) => {
      const full = `default-src 'none'; connect-src HOST; ${policy}`
        .replaceAll('HOST', lethe.url)
        .replaceAll('SELF', site.url)
      const body = html(lethe, '<p>hello</p>')
        .replace('<script src', '<script nonce="abc" src')
        .replace(/<script>.*?<\/script>/, '<script nonce="abc" src="/app.js"></script>')
      site.set('/', body, { 'content-security-policy': full })
      site.set('/app.js', `lethe.init('${KEY}')`)
      const printed: string[] = []
      page.on('console', (message) => printed.push(message.text()))
      await page.goto(`${site.url}/`)
      await until(() => lethe.events().some(isSnapshot))
      expect(
        printed.filter((text) => /Content Security|Trusted/.test(text) && !/favicon/.test(text)),
      ).toEqual([])
    },
  )
})

test.concurrent('as a module it is bundled by the application, and records', async ({
  dist,
  lethe,
  site,
  page,
}) => {
  const entry = `import { lethe } from ${JSON.stringify(join(dist, 'esm/index.js'))}
    lethe.init('${KEY}', { host: '${lethe.url}/' })`
  const bundle = await rolldown({
    input: 'entry',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === 'entry' ? id : null),
        load: (id) => (id === 'entry' ? entry : null),
      },
    ],
  })
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: 'app.js',
    chunkFileNames: '[name].js',
  })
  for (const each of output) if (each.type === 'chunk') site.set(`/${each.fileName}`, each.code)
  site.set('/', '<!doctype html><p>hello</p><script type="module" src="/app.js"></script>')
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
})

test.concurrent('on a server every call does nothing', async ({ dist }) => {
  const { lethe } = await import(join(dist, 'esm/index.js'))
  lethe.init(KEY, { host: 'https://lethe.example' })
  for (const name of ['identify', 'reset', 'stop', 'optIn', 'optOut']) lethe[name]('jane')
})

describe.concurrent('a page it cannot work on', () => {
  test('without storage it records all the same, in memory', async ({ lethe, site, page }) => {
    const inner = html(lethe, '<p>inside</p>').replaceAll('"', '&quot;')
    site.set('/', `<!doctype html><iframe sandbox="allow-scripts" srcdoc="${inner}"></iframe>`)
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    expect(faults).toEqual([])
  })

  test('nothing is thrown into a page that has broken what it needs', async ({
    lethe,
    site,
    context,
  }) => {
    const breakages = [
      'delete globalThis.fetch',
      'globalThis.fetch = () => { throw new Error("broken") }',
      'delete globalThis.MutationObserver',
      'navigator.sendBeacon = () => { throw new Error("broken") }',
      'Object.defineProperty(globalThis, "localStorage", { get() { throw new Error("no") } })',
      'Storage.prototype.setItem = () => { throw new Error("full") }',
      'JSON.stringify = () => { throw new Error("broken") }',
      'Element.prototype.closest = Element.prototype.matches = () => { throw new Error("broken") }',
      'globalThis.MessageChannel = undefined',
    ]
    for (const breakage of breakages) {
      const page = await context.newPage()
      const faults: string[] = []
      page.on('pageerror', (error) => faults.push(error.message))
      site.set(
        '/',
        html(lethe, '<p>hello</p><input>').replace(
          '<script',
          `<script>${breakage}</script><script`,
        ),
      )
      await page.goto(`${site.url}/`)
      const works = await page.evaluate(async () => {
        globalThis.lethe?.identify('jane')
        document.querySelector('p')?.append('more')
        dispatchEvent(new Event('pointermove'))
        document.dispatchEvent(new Event('visibilitychange'))
        await new Promise((done) => setTimeout(done, 500))
        dispatchEvent(new Event('pagehide'))
        globalThis.lethe?.reset()
        globalThis.lethe?.stop()
        return document.querySelector('p')?.textContent
      })
      expect(works, breakage).toBe('hellomore')
      expect(faults, breakage).toEqual([])
      await page.close()
    }
  })

  test('a wrong key or host gives one warning in the console', async ({ lethe, site, page }) => {
    const printed: string[] = []
    page.on('console', (message) => message.type() === 'warning' && printed.push(message.text()))
    site.set('/', html(lethe, '').replace(`'${KEY}', {}`, "'sk_secret'"))
    await page.goto(`${site.url}/`)
    await page.evaluate(() => globalThis.lethe?.init('pk_x', { host: 'lethe' }))
    expect(printed).toEqual(['lethe: init: no pk_ key or host', 'lethe: init: no pk_ key or host'])
    expect(lethe.received).toEqual([])
  })
})

test.concurrent('a prerendered page is recorded from when it is shown', async ({
  lethe,
  site,
  page,
}) => {
  // A driven browser renders nothing ahead, so the page is told that it is.
  await page.addInitScript(() => {
    Object.defineProperty(document, 'prerendering', { value: true, configurable: true })
  })
  site.set('/', html(lethe, '<p>ahead</p>'))
  await page.goto(`${site.url}/`)
  await page.evaluate(() => globalThis.lethe?.identify('jane'))
  await page.evaluate(() => new Promise((done) => setTimeout(done, 500)))
  expect(lethe.received).toEqual([])
  await page.evaluate(() => document.dispatchEvent(new Event('prerenderingchange')))
  await until(() => lethe.events().some(isSnapshot))
  await until(() => [...lethe.browsers.values()][0]?.userId === 'jane')
})
