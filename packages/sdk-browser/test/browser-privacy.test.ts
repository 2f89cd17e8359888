import { describe, expect } from 'vitest'
import { html, isSnapshot, says, test, until } from './chromium.ts'

/** A page with a canary in every place that is to be hidden, and one that is to be seen. */
const planted = `
  <p>SHOWN</p>
  <form action="/CANARY?CANARY"><label>CANARY <input id="typed" value="CANARY" placeholder="CANARY"></label>
    <fieldset><legend>CANARY</legend><input type="hidden" name="csrf" value="CANARY"></fieldset>
    <input type="password" id="password" value="CANARY"><input type="email" value="CANARY">
    <input type="submit" value="SHOWN"><input type="radio" name="r" value="CANARY" checked>
    <textarea id="area" placeholder="CANARY">CANARY</textarea>
    <select id="select"><optgroup label="CANARY"><option value="CANARY" label="CANARY">CANARY</option>
      <option id="option">CANARY2</option></optgroup></select>
    <input autocomplete="cc-number" id="card" value="CANARY"><input autocomplete="one-time-code" value="CANARY">
  </form>
  <div contenteditable id="editable">CANARY</div><div role="textbox" id="box">CANARY</div>
  <div data-user="CANARY" data-lethe-mask title="CANARY"><b id="masked">CANARY</b></div>
  <div data-lethe-block><p>CANARY</p><input id="blocked" value="CANARY"></div>
  <a id="link" href="/p?CANARY&a=CANARY#CANARY" title="CANARY" aria-label="CANARY" onclick="'CANARY'">x</a>
  <a href="mailto:CANARY">x</a><a href="https://CANARY:CANARY@a.invalid/">x</a>
  <img src="/i.png?CANARY" srcset="/i.png?a=CANARY 2x" alt="CANARY" longdesc="CANARY">
  <iframe srcdoc="<p>SHOWN <input value='CANARY'><a href='/?a=CANARY'>x</a></p>"></iframe>
  <my-part made-up="CANARY"></my-part><noscript><img src="/p?CANARY"></noscript><!-- CANARY -->
  <div style="background:url(/b.png?a=CANARY)">x</div><style>.a{background:url(/c.png?a=CANARY)}</style>
  <p id="pattern">canary@example.com and 4111 1111 1111 1111</p><svg><text aria-label="CANARY">s</text></svg>
  <div id="host"></div><meta name="description" content="CANARY"><script>
    document.getElementById('host').attachShadow({ mode: 'open' }).innerHTML =
      '<form><label>CANARY<input value=CANARY></label></form><p title=CANARY>SHOWN</p>'
    // CANARY
  </script>`

/** What somebody and the page itself do with it afterwards. */
async function use(page: import('playwright-core').Page) {
  for (const field of ['#typed', '#password', '#area', '#card', '#blocked']) {
    await page.fill(field, 'CANARY typed')
  }
  await page.click('#editable')
  await page.keyboard.type('CANARY')
  await page.selectOption('#select', { index: 1 })
  await page.evaluate(() => {
    const at = (id: string) => document.getElementById(id) as HTMLElement
    at('box').textContent = 'CANARY'
    at('masked').textContent = 'CANARY'
    at('option').textContent = 'CANARY'
    at('pattern').textContent = 'now other.canary@example.org, 4012888888881881'
    at('link').setAttribute('href', '/q?b=CANARY')
    at('link').setAttribute('data-new', 'CANARY')
    at('link').style.background = 'url(/d.png?CANARY)'
    at('typed').setAttribute('value', 'CANARY')
    at('typed').setAttribute('type', 'hidden')
    at('typed').setAttribute('value', 'CANARY again')
    at('editable').insertAdjacentHTML(
      'beforeend',
      '<ul><li>CANARY <a href="/?a=CANARY">x</a></li></ul>',
    )
    document.body.insertAdjacentHTML(
      'beforeend',
      '<form><label>CANARY<input value="CANARY"></label></form>',
    )
    document.styleSheets[0]?.insertRule('.z{background:url(/e.png?CANARY)}')
    const sheet = new CSSStyleSheet()
    sheet.replaceSync('.y{background:url(/f.png?CANARY)}')
    document.adoptedStyleSheets = [sheet]
    history.replaceState({}, '', '/?after=CANARY#CANARY')
    document.body.append('DONE')
  })
}

describe.for(['balanced', 'strict'] as const)('%s', (masking) => {
  test('no canary of a page leaves the browser', async ({ lethe, site, page }) => {
    site.set('/', html(lethe, planted, `{ masking: '${masking}' }`))
    await page.goto(`${site.url}/?token=CANARY#CANARY`)
    await until(() => lethe.events().some(isSnapshot))
    await use(page)
    await page.goto('about:blank')
    const done = masking === 'strict' ? '"****"' : 'DONE'
    await until(() => lethe.requests('chunks').some(({ text }) => text.includes(done)))
    const sent = lethe.received
      .map((each) => each.path + JSON.stringify(each.query) + each.text)
      .join('\n')
    for (const found of sent.matchAll(/CANARY|canary@|4111 1111|40128888/g)) {
      expect(sent.slice(found.index - 300, found.index + 100)).toBe('nothing')
    }
    expect(sent.includes('SHOWN')).toBe(masking === 'balanced')
  })
})

test.concurrent("what the page's own function masks of its URLs leaves nowhere, nor where it throws", async ({
  lethe,
  site,
  page,
}) => {
  const options = `{ masking: 'open', signals: true, maskUrl(url) {
    if (url.includes('throw')) throw new Error(url)
    return url.replace(/CANARY/g, '-') } }`
  const body = `<p>x</p><a href="/of/CANARY/SHOWN">x</a><a href="/throw/CANARY">x</a>
    <img src="/i/CANARY.png" srcset="/i/CANARY.png 2x" alt="">
    <p style="background:url(/b/CANARY.png)"></p><style>i{background:url(/c/CANARY.png)}</style>`
  site.set('/of/CANARY', html(lethe, body, options))
  await page.goto(`${site.url}/of/CANARY?CANARY`)
  await until(() => lethe.events().some(isSnapshot))
  await page.waitForFunction('"lethe_more" in globalThis')
  await page.evaluate(async () => {
    await fetch('/missing/CANARY')
    console.error('of', `${location.origin}/of/CANARY`)
    history.pushState({}, '', '/throw/CANARY')
    document.body.append('DONE')
  })
  await until(() => lethe.events().filter(says('lethe.request')).length)
  await until(() => JSON.stringify(lethe.events()).includes('DONE'))
  const sent = lethe.received.map((each) => JSON.stringify(each.query) + each.text).join()
  for (const found of sent.matchAll(/CANARY/g)) {
    expect(sent.slice(found.index - 300, found.index + 100)).toBe('nothing')
  }
  expect(sent).toContain('/of/-/SHOWN')
  expect(JSON.parse(lethe.requests('start')[0]?.text ?? '').url).toBe(`${site.url}/of/-`)
  expect(lethe.events().find(says('lethe:url')).data.payload).toEqual({ href: '*' })
})

test.concurrent('the address a session begins with has no secret in it', async ({
  lethe,
  site,
  page,
}) => {
  const secrets = [
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c',
    'x;jsess=0123',
  ]
  const path = `/reset/${secrets.join('/')}/550e8400-e29b-41d4-a716-446655440000/a-shop`
  site.set(path, html(lethe, '<p>x</p>', "{ masking: 'open' }"))
  await page.goto(`${site.url}${path}?q`)
  await until(() => lethe.requests('start').length)
  expect(JSON.parse(lethe.requests('start')[0]?.text ?? '').url).toBe(
    `${site.url}/reset/*/*/*/a-shop`,
  )
})

test.concurrent('the project can tighten what the page asks for, from the first event on', async ({
  lethe,
  site,
  page,
}) => {
  lethe.state.settings = { ...lethe.state.settings, masking: 'strict' }
  site.set('/', html(lethe, '<p data-lethe-unmask>CANARY</p>', "{ masking: 'open' }"))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  expect(JSON.stringify(lethe.received)).not.toContain('CANARY')
})
