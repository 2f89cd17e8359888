import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { html, isSnapshot, says, test, until } from './chromium.ts'

const rrwebFolder = join(createRequire(import.meta.url).resolve('rrweb'), '..')
const wholeRrweb = () => readFile(join(rrwebFolder, 'rrweb.umd.min.cjs'), 'utf8')

describe.concurrent('a page', () => {
  test('is recorded with what happens on it, and the replay shows it', async ({
    lethe,
    site,
    page,
    context,
  }) => {
    site.set('/', html(lethe, '<h1 class="a">Shoes</h1><ul></ul><button>Buy</button>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.evaluate(() => {
      document.querySelector('ul')?.insertAdjacentHTML('beforeend', '<li>One <b>red</b> pair</li>')
      document.querySelector('h1')?.setAttribute('class', 'b')
    })
    await page.click('button')
    await until(() => lethe.events().find((event) => event.type === 3 && event.data.type === 2))

    const player = await context.newPage()
    await player.addScriptTag({ content: await wholeRrweb() })
    const shown = await player.evaluate((events) => {
      // biome-ignore lint/suspicious/noExplicitAny: the player as a global
      const replayer = new (globalThis as any).rrweb.Replayer(events, { mouseTail: false })
      replayer.pause(events.at(-1).timestamp - events[0].timestamp + 1)
      const replayed = replayer.iframe.contentDocument as Document
      return [replayed.querySelector('h1')?.outerHTML, replayed.querySelector('ul')?.outerHTML]
    }, lethe.events())
    expect(shown).toEqual(['<h1 class="b">Shoes</h1>', '<ul><li>One <b>red</b> pair</li></ul>'])
  })

  test('causes no preflight, and sends no cookie and no location of the visitor', async ({
    lethe,
    site,
    page,
    context,
  }) => {
    await context.addCookies([{ name: 'a', value: 'b', url: lethe.url }])
    site.set('/secret', html(lethe, 'hello'))
    await page.goto(`${site.url}/secret?token=1`)
    await page.evaluate(() => globalThis.lethe?.identify('u1'))
    await until(() => lethe.chunks.length && lethe.requests('identify').length)
    // A beacon, which a page sends as it is left, carries what cookies there are; nobody reads them.
    for (const { headers } of lethe.received) expect(headers.cookie).toBeUndefined()
    await page.goto('about:blank')
    expect(lethe.received.map(({ method }) => method)).not.toContain('OPTIONS')
    for (const { headers, text } of lethe.received) {
      expect(headers['content-type']).toMatch(/^text\/plain/)
      expect(text).not.toContain('token=1')
    }
    expect(lethe.requests('start')[0]?.headers.referer).toBeUndefined()
  })

  test('sends gzip, and the same text where the browser cannot compress', async ({
    lethe,
    site,
    page,
    context,
  }) => {
    site.set('/', html(lethe, `<p>${'text '.repeat(1000)}</p>`))
    await page.goto(`${site.url}/`)
    await until(() => lethe.chunks.length)
    const older = await context.newPage()
    await older.addInitScript('delete globalThis.CompressionStream')
    await older.goto(`${site.url}/`)
    const [first, second] = await until(() => {
      const [one, two] = [true, false].map((isGzip) =>
        lethe
          .requests('chunks')
          .find((each) => each.isGzip === isGzip && /"type":2/.test(each.text)),
      )
      return one && two && [one, two]
    })
    expect(first?.bytes).toBeLessThan(second?.bytes ?? 0)
  })
})

describe.concurrent('the snapshot in slices', () => {
  const rich = `
    <style>.a{color:red} .b{background:url(/b.png)}</style><link rel="stylesheet" href="/a.css">
    <svg viewBox="0 0 10 10"><defs><linearGradient id="g"><stop offset="1"/></linearGradient></defs>
      <path d="M0 0L9 9" fill="url(#g)"/><text>svg text</text><a xlink:href="/x">y</a></svg>
    <form name="f"><input name="attributes"><input name="childNodes"><label>Name <input value="x">
      </label><select><option>1</option><option selected>2</option></select>
      <textarea>some</textarea><input type="checkbox" checked></form>
    <dialog open><p>in a dialog</p></dialog><details open><summary>s</summary>more</details>
    <div data-lethe-block class="k"><p>blocked</p></div><my-part>custom</my-part>
    <div style="overflow:scroll;height:50px" id="scrolled"><div style="height:900px">tall</div></div>
    <img src="/i.png" srcset="/i.png 1x, /j.png 2x" alt="x"><video src="/v.mp4" muted></video>
    <audio controls></audio><canvas width="9" height="9"></canvas><p>text <!-- a comment --> <b>x</b></p>
    <table><tbody><tr><td background="/bg.png">cell</td></tr></tbody></table>
    <div id="host">light</div><noscript><img src="/n.png"></noscript><a href="relative?x#y">link</a>
    <script>
      const root = document.getElementById('host').attachShadow({ mode: 'open' })
      root.innerHTML = '<style>p{margin:0}</style><p>in the shadow <slot></slot></p><span></span>'
      root.querySelector('span').attachShadow({ mode: 'open' }).innerHTML = '<i>deeper</i>'
      document.getElementById('scrolled').scrollTop = 120
    </script>`

  test('is the one rrweb itself would take', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, rich, "{ masking: 'open' }"))
    site.set('/a.css', '.c{color:blue}', { 'content-type': 'text/css' })
    const record = await readFile(
      join(createRequire(import.meta.url).resolve('@rrweb/record'), '../record.umd.cjs'),
      'utf8',
    )
    await page.goto(`${site.url}/`)
    const ours = (await until(() => lethe.events().find(isSnapshot))).data.node
    await page.evaluate(() => globalThis.lethe?.stop())
    await page.addScriptTag({ content: record })
    const theirs = await page.evaluate(() => {
      // biome-ignore lint/suspicious/noExplicitAny: events of many shapes
      const events: any[] = []
      // biome-ignore lint/suspicious/noExplicitAny: the recorder as a global
      const stop = (globalThis as any).rrwebRecord.record({
        // biome-ignore lint/suspicious/noExplicitAny: events of many shapes
        emit: (event: any) => events.push(event),
        maskAllInputs: true,
        blockSelector: '[data-lethe-block]',
        slimDOMOptions: 'all',
      })
      stop()
      return JSON.parse(JSON.stringify(events.find((event) => event.type === 2).data.node))
    })
    expect(comparable(ours)).toEqual(comparable(theirs))
  })

  test('is whole, though the page changes between the slices', async ({
    lethe,
    site,
    page,
    context,
  }) => {
    const list = Array.from({ length: 3000 }, (_, at) => `<li id="l${at}">${at}</li>`).join('')
    site.set('/', html(lethe, `<ul id="a">${list}</ul><ul id="b"></ul><ol></ol>`))
    // Slices of no time at all, and a page that never rests while they are taken.
    await page.addInitScript(() => {
      let clock = 0
      performance.now = () => (clock += 1000)
      let seed = 7
      const random = (below: number) => {
        seed = (seed * 48_271) % 2_147_483_647
        return seed % below
      }
      addEventListener('DOMContentLoaded', () => {
        const [a, b, ol] = ['#a', '#b', 'ol'].map((each) => document.querySelector(each) as Element)
        let count = 0
        const timer = setInterval(() => {
          for (let times = 0; times < 5; times++) {
            const one = a?.children[random(a.children.length)]
            const target = [a, b, ol][random(3)]
            const what = random(6)
            if (what === 0) one?.remove()
            else if (what === 1) target?.append(one as Element)
            else if (what === 2) target?.prepend(one as Element)
            else if (what === 3) a?.insertBefore(one as Element, a.children[random(90)] as Element)
            else if (what === 4)
              one?.insertAdjacentHTML('afterend', `<li>new ${count}<b>x</b></li>`)
            else if (one) one.textContent = `changed ${count}`
            count++
          }
          if (count >= 600) {
            clearInterval(timer)
            document.body.dataset.done = 'yes'
            document.body.append('THE END')
          }
        })
      })
    })
    await page.goto(`${site.url}/`)
    await until(() => page.evaluate(() => document.body.dataset.done), 100)
    const real = await page.evaluate(() => document.body.textContent)
    await page.evaluate(() => globalThis.lethe?.stop())
    await until(() => JSON.stringify(lethe.events()).includes('THE END'))

    // Otherwise the page would have rested, and nothing been shown.
    const afterwards = lethe.events()[lethe.events().findIndex(isSnapshot) + 1]
    expect(afterwards.data.adds.length).toBeGreaterThan(20)

    const player = await context.newPage()
    await player.addScriptTag({ content: await wholeRrweb() })
    const replayed = await player.evaluate((events) => {
      // biome-ignore lint/suspicious/noExplicitAny: the player as a global
      const replayer = new (globalThis as any).rrweb.Replayer(events, { mouseTail: false })
      replayer.pause(events.at(-1).timestamp - events[0].timestamp + 1)
      return replayer.iframe.contentDocument.body.textContent
    }, lethe.events())
    expect(replayed).toBe(real)
  })
})

describe.concurrent('what is too much for a page', () => {
  test('of another colour scheme is taken again, but not where the page is left with it', async ({
    lethe,
    site,
    page,
  }) => {
    // No beacon carries a snapshot of it.
    const rows = Array.from(
      { length: 2_000 },
      (_, row) => `<p id="row-${row}">${Math.random()}</p>`,
    )
    site.set('/', html(lethe, rows.join('')))
    await page.emulateMedia({ colorScheme: 'light' })
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.emulateMedia({ colorScheme: 'dark' })
    await until(() => lethe.events().filter(isSnapshot).length === 2)
    await page.evaluate(() => {
      matchMedia('(prefers-color-scheme: dark)').onchange = async () => {
        document.body.append(document.createElement('last-words'))
        await undefined
        dispatchEvent(new Event('pagehide'))
        location.href = 'about:blank'
      }
    })
    await page.emulateMedia({ colorScheme: 'light' })
    await until(() => JSON.stringify(lethe.events()).includes('last-words'))
  })

  test('a page of too many elements is not recorded, and the recording says so', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<i></i>'.repeat(50_001)))
    await page.goto(`${site.url}/`)
    const { data } = await until(() => lethe.events().find(says('lethe:stopped')))
    expect(data.payload).toMatchObject({ reason: 'page_too_big' })
    expect(lethe.events().some(isSnapshot)).toBe(false)
  })

  test('a page that changes without end is recorded until the budget is spent', async ({
    lethe,
    site,
    page,
  }) => {
    site.set('/', html(lethe, '<p></p>'))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    await page.evaluate(() => {
      for (let count = 0; count < 60; count++) {
        setTimeout(() => {
          const p = document.querySelector('p') as Element
          p.replaceChildren(...Array.from({ length: 1000 }, () => document.createElement('b')))
        })
      }
    })
    const { data } = await until(() => lethe.events().find(says('lethe:stopped')))
    expect(data.payload).toEqual({ reason: 'too_many_mutations' })
    const before = lethe.events().length
    await page.evaluate(() => document.querySelector('p')?.append('more'))
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 200)))
    expect(lethe.events().length).toBe(before)
  })
})

test.concurrent('a change of route in a single-page application is recorded, masked', async ({
  lethe,
  site,
  page,
}) => {
  site.set('/', html(lethe, '<p></p>'))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  await page.evaluate(() => {
    history.pushState({}, '', '/orders?token=secret#secret')
    document.querySelector('p')?.append('Orders')
  })
  const { data } = await until(() => lethe.events().find(says('lethe:url')))
  expect(data.payload).toEqual({ href: `${site.url}/orders?token=*#*` })
})

/** Ids differ between two recordings; what the masker drops from one is dropped from both. */
// biome-ignore lint/suspicious/noExplicitAny: nodes of many shapes
function comparable(node: any): unknown {
  const { id: _, rootId: __, childNodes, attributes, ...rest } = node
  // The text of a noscript is HTML, which the masker drops in every preset.
  if (rest.tagName === 'noscript') return rest
  const { srcdoc: ___, ...kept } = attributes ?? {}
  // Where a blocked element stands, which rrweb forgets.
  if ('rr_width' in kept) delete kept.style
  // rrweb leaves out the white space of the head; it costs more code than it saves. Of meta elements
  // it leaves out many, and we all: nobody sees one.
  // biome-ignore lint/suspicious/noExplicitAny: nodes of many shapes
  const isSeen = (child: any) =>
    (rest.tagName !== 'head' || child.type !== 3) && child.tagName !== 'meta'
  return {
    ...rest,
    attributes: Object.fromEntries(
      Object.entries(kept).filter(([name]) => !/^on|^nonce/.test(name)),
    ),
    childNodes: childNodes?.filter(isSeen).map(comparable),
  }
}
