import { expect } from 'vitest'
import { html, isSnapshot, test, until } from './chromium.ts'

test.concurrent('styles are recorded as written where the browser prints less of them', async ({
  lethe,
  site,
  page,
}) => {
  const lossy = (name: string) => `.${name}{padding:var(--${name});padding-bottom:9px}`
  const css = { 'content-type': 'text/css' }
  // The same server by another name is another origin.
  const elsewhere = site.url.replace('127.0.0.1', 'localhost')
  site.set('/linked.css', lossy('linked'), css)
  site.set('/open.css', lossy('open'), { ...css, 'access-control-allow-origin': '*' })
  site.set('/shut.css', lossy('shut'), css)
  const links = ['/linked.css', `${elsewhere}/open.css`, `${elsewhere}/shut.css`]
  const head = links.map((href) => `<link rel="stylesheet" href="${href}">`).join('')
  site.set(
    '/',
    html(
      lethe,
      `${head}<style>${lossy('own')} @media all{${lossy('nested')}}</style><style>${lossy('grown')}</style>
      <script>document.styleSheets[document.styleSheets.length - 1].insertRule('.rule{color:red}')</script>`,
    ),
  )
  await page.goto(`${site.url}/`)
  const text = await until(() => {
    const all = JSON.stringify(lethe.events())
    return ['linked', 'open'].every((name) => all.includes(`var(--${name})`)) && all
  })
  for (const name of ['own', 'nested', 'grown', 'linked', 'open']) {
    expect(text, name).toContain(`padding:var(--${name});padding-bottom:9px`)
  }
  expect(text).toContain('.rule { color: red; }')
  expect(text).not.toContain('--shut')
})

test.concurrent('attributes that a constructed sheet or a late one selects by are kept, others are not', async ({
  lethe,
  site,
  page,
}) => {
  site.set(
    '/',
    html(
      lethe,
      `<my-part variant="warm" data-user="CANARY"></my-part><p data-state="open" data-user="CANARY">x</p>
      <script>
        const sheet = new CSSStyleSheet()
        sheet.replaceSync(':host([variant=warm]){color:red}')
        customElements.define('my-part', class extends HTMLElement {
          constructor() { super(); this.attachShadow({ mode: 'open' }).adoptedStyleSheets = [sheet] }
        })
      </script>`,
    ),
  )
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  expect(JSON.stringify(lethe.events())).toContain('"variant":"warm"')
  expect(JSON.stringify(lethe.events())).not.toContain('"data-state"')
  await page.addStyleTag({ content: '[data-state=open]{color:blue}' })
  await until(() => JSON.stringify(lethe.events()).includes('"data-state":"open"'))
  expect(JSON.stringify(lethe.events())).not.toContain('CANARY')
})

test.concurrent('popovers are recorded when they are shown, hidden, and there already', async ({
  lethe,
  site,
  page,
}) => {
  site.set(
    '/',
    html(
      lethe,
      '<div popover id="one">one</div><div popover="manual" id="two">two</div><script>two.showPopover()</script>',
    ),
  )
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  const snapshot = JSON.stringify(lethe.events().find(isSnapshot))
  expect(snapshot.match(/"data-lethe-popover":""/g)).toHaveLength(1)
  await page.evaluate('one.showPopover()')
  await page.evaluate('one.hidePopover()')
  const changes = await until(() => {
    const found = lethe.events().filter((event) => /lethe-popover/.test(JSON.stringify(event)))
    return found.length > 2 ? found.slice(1) : undefined
  })
  expect(changes.map((event) => JSON.stringify(event.data.attributes))).toEqual([
    expect.stringContaining('"data-lethe-popover":""'),
    expect.stringContaining('"data-lethe-popover":null'),
  ])
})

test.concurrent('popovers in a shadow root are recorded when they are shown and hidden', async ({
  lethe,
  site,
  page,
}) => {
  const inside = `host.attachShadow({ mode: 'open' }).innerHTML = '<p popover>over</p>'`
  site.set('/', html(lethe, `<div id="host"></div><script>${inside}</script>`))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  const changes = () =>
    lethe
      .events()
      .flatMap(({ data }) => data.attributes?.map((each: object) => JSON.stringify(each)))
  await page.evaluate("host.shadowRoot.querySelector('p').showPopover()")
  await until(() => changes().some((each) => each?.includes('{"data-lethe-popover":""}')))
  await page.evaluate("host.shadowRoot.querySelector('p').hidePopover()")
  await until(() => changes().some((each) => each?.includes('{"data-lethe-popover":null}')))
})

test.concurrent('style sheets that are turned off and on are recorded, and off already', async ({
  lethe,
  site,
  page,
}) => {
  site.set(
    '/',
    html(
      lethe,
      `<style id="one">p{color:red}</style><style id="two" media="screen">p{color:blue}</style>
      <script>one.sheet.disabled = true</script>`,
    ),
  )
  await page.goto(`${site.url}/`)
  const snapshot = JSON.stringify(await until(() => lethe.events().find(isSnapshot)))
  expect(snapshot).toMatch(/"id":"one","_cssText":"[^"]*","media":"not all"/)
  expect(snapshot).toContain('"id":"two","media":"screen"')
  await page.evaluate('one.disabled = false; two.sheet.disabled = true; two.disabled = false')
  const changes = await until(() => {
    const found = lethe.events().flatMap(({ data }) => data.attributes ?? [])
    return found.length > 2 ? found : undefined
  })
  expect(changes.map(({ attributes }) => attributes)).toEqual([
    { media: null },
    { media: 'not all' },
    { media: 'screen' },
  ])
})

test.concurrent('a blocked element is a box of its size in its place, whichever styles set them', async ({
  lethe,
  site,
  page,
}) => {
  const style = '#b{padding:20px;border:3px solid;width:200px;height:40px;float:right;margin:7px}'
  site.set(
    '/',
    html(lethe, `<style>${style}</style><div id="b" class="k" data-lethe-block>CANARY</div>`),
  )
  await page.goto(`${site.url}/`)
  const text = JSON.stringify(await until(() => lethe.events().find(isSnapshot)))
  expect(text).toContain('"rr_width":"246px","rr_height":"86px"')
  expect(text).toMatch(/"style":"box-sizing:border-box;[^"]*float:right;[^"]*margin-left:7px;/)
  expect(text).not.toContain('CANARY')
})

test.concurrent('sheets that shadow roots adopt while the snapshot is taken are recorded', async ({
  lethe,
  site,
  page,
}) => {
  const many = 60
  const hosts = Array.from({ length: many }, (_, at) => `<x-${at}></x-${at}>`).join('')
  const body = `${'<p>x</p>'.repeat(10_000)}${hosts}<script>
    let next = 0
    const define = () => {
      if (!('lethe_recorder' in globalThis)) return setTimeout(define)
      const color = 'rgb(1,2,' + next + ')'
      customElements.define('x-' + next++, class extends HTMLElement {
        constructor() {
          super()
          const sheet = new CSSStyleSheet()
          sheet.replaceSync('b{color:' + color + '}')
          this.attachShadow({ mode: 'open' }).adoptedStyleSheets = [sheet]
          this.shadowRoot.innerHTML = '<b>x</b>'
        }
      })
      if (next < ${many}) setTimeout(define)
    }
    define()</script>`
  site.set('/', html(lethe, body, "{ masking: 'open' }"))
  await page.goto(`${site.url}/`)
  await until(() => page.evaluate(`!!document.querySelector('x-${many - 1}').shadowRoot`))
  await until(() => JSON.stringify(lethe.events()).includes(`rgb(1, 2, ${many - 1})`))
  const events = lethe.events().slice(lethe.events().findLastIndex(isSnapshot))
  const adopted = events.filter(({ data }) => data.source === 15 && data.id > 1)
  expect(new Set(adopted.map(({ data }) => data.id)).size).toBe(many)
})
