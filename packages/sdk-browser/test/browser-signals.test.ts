import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { test as base, html, isSnapshot, says, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

/** After how long `/by-method` responds, and with what. */
const byMethod: Record<string, [number, number]> = {
  GET: [900, 500],
  PUT: [600, 503],
  POST: [300, 404],
}

/** An API of the page's: `/slow`, `/status/500`; anything else is 200. */
const test = base.extend<{ api: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  api: async ({}, use) => {
    const server = createServer((request, response) => {
      const { url = '' } = request
      const [, status] = /^\/status\/(\d+)/.exec(url) ?? []
      const answer = (code = Number(status ?? 200)) => {
        response.writeHead(request.method === 'OPTIONS' ? 204 : code, {
          'access-control-allow-origin': '*',
          'access-control-allow-methods': '*',
        })
        response.end('{}')
      }
      const [late, answered] = byMethod[url === '/by-method' ? (request.method ?? '') : ''] ?? []
      if (late !== undefined && answered) {
        setTimeout(() => answer(answered), late)
      } else if (url.startsWith('/slow')) setTimeout(answer, 3_500)
      else answer()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  },
})

const payloads = (lethe: LetheServer, tag: string) =>
  lethe
    .events()
    .filter(says(tag))
    .map(({ data }) => data.payload)

/** Opens a page and waits until what the setting asks for is there. */
async function open(page: Page, url: string, lethe: LetheServer) {
  await page.goto(url)
  await until(() => lethe.events().some(isSnapshot))
  await page.waitForFunction(() => 'lethe_more' in globalThis)
}

const sum = (lethe: LetheServer, count: string) =>
  lethe.requests('chunks').reduce((total, { query }) => total + Number(query[count] ?? 0), 0)

test.concurrent('errors, rejections and what is printed are in the recording, masked, and counted', async ({
  lethe,
  site,
  page,
}) => {
  site.set('/', html(lethe, '<input id="name">', '{ signals: true }'))
  await open(page, `${site.url}/`, lethe)
  await page.fill('#name', 'Jane Doe')
  await page.evaluate(() => {
    setTimeout(() => {
      throw new TypeError('no cart of jane@example.com')
    })
    void Promise.reject(new RangeError('4111 1111 1111 1111'))
    void Promise.reject({ name: 'secret' })
    console.error(
      '%cfailed for %s',
      'color: red',
      'Jane Doe',
      { address: 'secret' },
      new Error('x'),
    )
    console.warn('careful')
    console.info('not told')
    console.error('lethe: ours')
  })
  await until(() => payloads(lethe, 'lethe.error').length === 3)
  const errors = payloads(lethe, 'lethe.error')
  expect(errors.map(({ message }) => message).sort()).toEqual([
    'Uncaught (in promise) RangeError: **** **** **** ****',
    'Uncaught (in promise) [object]',
    'Uncaught TypeError: no cart of ****************',
  ])
  expect(errors.find(({ message }) => message.includes('TypeError')).stack).toMatch(/ at .*:\d+/)
  await until(() => payloads(lethe, 'lethe.console').length === 2)
  expect(payloads(lethe, 'lethe.console')).toEqual([
    { level: 'error', text: 'failed for **** *** [object] Error: x' },
    { level: 'warn', text: 'careful' },
  ])
  expect(sum(lethe, 'errors')).toBe(3)
  expect(JSON.stringify(lethe.received)).not.toMatch(/secret|Jane|jane@|4111/)
})

test.concurrent('failed and slow requests are recorded with method, masked URL, status and time', async ({
  lethe,
  site,
  page,
  api,
}) => {
  const options = '{ signals: { requests: true, slowMilliseconds: 3_000 } }'
  site.set('/', html(lethe, '<p>x</p>', options))
  await open(page, `${site.url}/`, lethe)
  await page.evaluate(async (api) => {
    const post = { method: 'post', body: 'secret', headers: { 'content-type': 'text/plain' } }
    await fetch(`${api}/status/500?token=secret#secret`, post)
    await fetch(`${api}/fine`)
    await fetch(`${api}/slow`)
    await fetch('http://127.0.0.1:1/away').catch(() => {})
    await fetch(`${api}/status/403`, { mode: 'no-cors' })
    const aborted = new AbortController()
    const gone = fetch(`${api}/slow?aborted`, { signal: aborted.signal }).catch(() => {})
    aborted.abort()
    await gone
    const xhr = new XMLHttpRequest()
    xhr.open('PUT', `${api}/status/404`)
    xhr.send()
  }, api)
  await until(() => payloads(lethe, 'lethe.request').length >= 4)
  const told = payloads(lethe, 'lethe.request')
    .map(({ method, url, status }) => `${method} ${url.replace(api, '')} ${status}`)
    .sort()
  expect(told).toEqual([
    'GET /slow 200',
    'GET http://127.0.0.1:1/away 0',
    'POST /status/500?token=*#* 500',
    'PUT /status/404 404',
  ])
  const slow = payloads(lethe, 'lethe.request').find(({ url }) => url.endsWith('/slow'))
  expect(slow.milliseconds).toBeGreaterThanOrEqual(3_000)
  expect(sum(lethe, 'failedRequests')).toBe(3)
  expect(JSON.stringify(lethe.events())).not.toContain('secret')
})

test.concurrent('of requests of one address that are under way together each is told as it ended', async ({
  lethe,
  site,
  page,
  api,
}) => {
  site.set('/', html(lethe, '<p>x</p>', '{ signals: { requests: true } }'))
  await open(page, `${site.url}/`, lethe)
  await page.evaluate(async (api) => {
    const send = (method: string) =>
      new Promise<void>((resolve) => {
        const xhr = new XMLHttpRequest()
        xhr.onloadend = () => resolve()
        xhr.open(method, `${api}/by-method`)
        xhr.send()
      })
    const asked = ['GET', 'PUT', 'POST'].flatMap((method) => [
      fetch(`${api}/by-method`, { method }),
      send(method),
    ])
    await Promise.all(asked)
    const waited = new XMLHttpRequest()
    waited.open('GET', `${api}/status/502`, false)
    waited.send()
  }, api)
  const told = () => payloads(lethe, 'lethe.request')
  await until(() => told().length === 7)
  expect(
    told()
      .map(({ method, status }) => `${method} ${status}`)
      .sort(),
  ).toEqual([...['GET 500', 'GET 500', 'GET 502', 'POST 404', 'POST 404', 'PUT 503', 'PUT 503']])
  for (const { url, method, milliseconds } of told()) {
    const [least] = url.endsWith('/by-method') ? (byMethod[method] ?? []) : [0]
    expect(milliseconds).toBeGreaterThanOrEqual(least as number)
  }
})

test.concurrent('rage clicks and dead clicks are recorded with their element', async ({
  lethe,
  site,
  page,
}) => {
  site.set(
    '/',
    html(
      lethe,
      `<input id="field"><button id="dead">x</button><button id="live" onclick="this.textContent += '.'">x</button>
       <button id="asks" onclick="fetch('/')">x</button><p id="rage">x</p><a id="link" href="/next">x</a>
       <div data-lethe-block><button id="blocked">x</button></div>`,
      '{ signals: { clicks: true } }',
    ),
  )
  await open(page, `${site.url}/`, lethe)
  for (const id of ['#field', '#live', '#asks', '#blocked', '#dead']) {
    await page.click(id)
    await page.waitForTimeout(2_300)
  }
  // Sent together: on a busy machine three clicks one after the other may take a second.
  const { x, y } = (await page.locator('#rage').boundingBox()) as { x: number; y: number }
  await Promise.all([1, 2, 3].map(() => page.mouse.click(x + 2, y + 2)))
  await until(() => payloads(lethe, 'lethe.click').length === 2)
  const snapshot = JSON.stringify(lethe.events().find(isSnapshot))
  const idOf = (id: string) =>
    Number(
      new RegExp(`"id":"${id}"[^{}]*\\},"childNodes":\\[[^\\]]*\\],"id":(\\d+)`).exec(
        snapshot,
      )?.[1],
    )
  expect(payloads(lethe, 'lethe.click')).toEqual([
    { kind: 'dead', id: idOf('dead') },
    { kind: 'rage', id: idOf('rage') },
  ])
  expect([sum(lethe, 'deadClicks'), sum(lethe, 'rageClicks')]).toEqual([1, 1])
})

test.concurrent('a chunk that is sent after a click is not what the click did', async ({
  lethe,
  site,
  page,
}) => {
  const body = '<button id="dead">x</button>'
  site.set('/', html(lethe, body, '{ signals: { clicks: true, errors: true } }'))
  await open(page, `${site.url}/`, lethe)
  await page.click('#dead')
  // An error is sent half a second later.
  await page.evaluate('void setTimeout(() => { throw new Error("x") })')
  await until(() => sum(lethe, 'deadClicks') === 1)
})

test.concurrent('web vitals are recorded when the page is left', async ({ lethe, site, page }) => {
  const body =
    '<h1>Hello</h1><button onclick="for (const t = performance.now(); performance.now() - t < 60;);">x</button>'
  site.set('/', html(lethe, body, '{ signals: { vitals: true } }'))
  await open(page, `${site.url}/`, lethe)
  await page.click('button')
  await page.waitForTimeout(300)
  await page.goto('about:blank')
  await until(() => payloads(lethe, 'lethe.vital').some(({ name }) => name === 'LCP'))
  const vitals = Object.fromEntries(
    payloads(lethe, 'lethe.vital').map(({ name, value }) => [name, value]),
  )
  expect(Object.keys(vitals).sort()).toEqual(['CLS', 'FCP', 'INP', 'LCP', 'TTFB'])
  expect(vitals.INP).toBeGreaterThanOrEqual(56)
  expect(vitals.LCP).toBeGreaterThan(0)
})

describe.concurrent('the page', () => {
  test('loads no code for signals unless a setting requires it, and records none', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p>x</p>'))
    const loaded: string[] = []
    page.on('request', (request) => loaded.push(request.url()))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.evaluate(() => {
      console.error('x')
      setTimeout(() => {
        throw new Error('x')
      })
    })
    await page.goto('about:blank')
    await until(() => lethe.chunks.length)
    expect(loaded.filter((url) => url.includes('more.js'))).toEqual([])
    expect(lethe.events().filter((event) => /^lethe\./.test(event.data?.tag))).toEqual([])
  })

  test('keeps its functions: their names, text, results and errors, and its own wrappers', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p>x</p>', '{ signals: true }'))
    await page.addInitScript(() => {
      Object.assign(globalThis, {
        before: { fetch, error: console.error, open: XMLHttpRequest.prototype.open },
      })
    })
    await open(page, `${site.url}/`, lethe)
    const seen = await page.evaluate(async () => {
      const unhandled: string[] = []
      addEventListener('unhandledrejection', (event) => {
        unhandled.push(String(event.reason))
        event.preventDefault()
      })
      const promise = fetch('http://127.0.0.1:1/')
      const isPlain = Object.getPrototypeOf(promise) === Promise.prototype
      await new Promise((resolve) => setTimeout(resolve, 500))
      let thrown = ''
      try {
        // @ts-expect-error: what the browser says of it is the page's
        void fetch()
        // @ts-expect-error: the same
        new XMLHttpRequest().open()
      } catch (error) {
        thrown = (error as Error).name
      }
      const { open } = XMLHttpRequest.prototype
      return {
        unhandled: unhandled.length > 0,
        isPlain,
        thrown,
        names: [fetch.name, fetch.length, open.name, console.error.name],
        texts: [fetch, open, console.error].map((each) => `${each}`.replace(/\s/g, '')),
      }
    })
    expect(seen).toEqual({
      unhandled: true,
      isPlain: true,
      thrown: 'TypeError',
      names: ['fetch', 1, 'open', 'error'],
      texts: ['fetch', 'open', 'error'].map((name) => `function${name}(){[nativecode]}`),
    })
    const left = await page.evaluate(() => {
      // biome-ignore lint/suspicious/noExplicitAny: put there by this test
      const { before, lethe } = globalThis as any
      const ours = console.error
      const own = (...input: unknown[]) => ours(...input)
      console.error = own
      lethe.stop()
      return [
        fetch === before.fetch,
        XMLHttpRequest.prototype.open === before.open,
        console.error === own,
      ]
    })
    expect(left).toEqual([true, true, true])
  })

  test('that fails in a loop records fifty errors in ten seconds, and counts all', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p>x</p>', '{ signals: { errors: true } }'))
    await open(page, `${site.url}/`, lethe)
    await page.evaluate(() => {
      for (let at = 0; at < 300; at++) {
        setTimeout(() => {
          throw new Error('again')
        })
      }
    })
    await until(() => sum(lethe, 'errors') === 300)
    expect(payloads(lethe, 'lethe.error')).toHaveLength(50)
  })
})
