import { describe, expect } from 'vitest'
import { html, isSnapshot, test, until } from './chromium.ts'

/** A page with a canary in every place that is to be hidden, and one that is to be seen. */
const planted = `
  <p>SHOWN</p>
  <form action="/CANARY?CANARY"><label>CANARY <input id="typed" value="CANARY" placeholder="CANARY"></label>
    <fieldset><legend>CANARY</legend><input type="hidden" name="csrf" value="CANARY"></fieldset>
    <input type="password" id="password" value="CANARY"><input type="email" value="CANARY">
    <input type="submit" value="CANARY"><input type="radio" name="r" value="CANARY" checked>
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
    for (const found of sent.matchAll(/CANARY|canary@|4111|4012/g)) {
      expect(sent.slice(found.index - 300, found.index + 100)).toBe('nothing')
    }
    expect(sent.includes('SHOWN')).toBe(masking === 'balanced')
  })
})

test('the project can tighten what the page asks for, from the first event on', async ({
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
