import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { isDeep } from '../../server/test/proof/deep.ts'
import { html, isSnapshot, type Site, says, test, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

/* The page is not trusted, and not changed. */

const open = async (lethe: LetheServer, site: Site, page: Page, body: string, before = '') => {
  site.set('/', html(lethe, body, "{ masking: 'open' }").replace('<script', `${before}<script`))
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
}

const stored = (lethe: LetheServer, text: string) =>
  until(() => JSON.stringify(lethe.events()).includes(text))

const counted = 'a fetch that adds headers and counts'

/** Each kind alone; and all of them together, of which the last fetch hides the one that counts. */
const overrides: Record<string, string> = {
  'Date.now that answers a Date': 'Date.now = () => new Date()',
  'Array.prototype.toJSON of Prototype 1.6':
    'Array.prototype.toJSON = function () { return "[" + this.join(", ") + "]" }',
  'Object.prototype.toJSON': `Object.defineProperty(Object.prototype, 'toJSON',
    { value() { return 'object' }, configurable: true, writable: true })`,
  'JSON.stringify that answers nothing': 'JSON.stringify = () => undefined',
  'JSON.parse that throws': 'JSON.parse = () => { throw new Error("parse") }',
  [counted]: `{ const own = fetch
    window.fetch = (url, options) => { window.fetched = (window.fetched ?? 0) + 1
      return own(url, { ...options, headers: { ...options?.headers, 'x-trace': '1' } }) } }`,
  'a fetch that is bound': 'window.fetch = (() => Promise.reject()).bind(null)',
  'Promise replaced': 'window.Promise = class { then() {} catch() {} }',
  'setTimeout that never runs': 'window.setTimeout = () => 7; window.clearTimeout = () => {}',
  'Map and Set': 'window.Map = window.Set = class { has() { return true } get() { return 1 } }',
  WeakMap: 'window.WeakMap = class { get() {} set() {} has() { return false } }',
  'Array.from of an old library': 'Array.from = (list) => [list]',
  'Math.random': 'Math.random = () => "random"',
  'storage with prefixes': `Storage.prototype.getItem = () => 'x'
    Storage.prototype.setItem = () => { throw new Error('full') }`,
  'listeners that are wrapped': `EventTarget.prototype.addEventListener = () => {}`,
  MutationObserver:
    'window.MutationObserver = class { observe() {} disconnect() {} takeRecords() {} }',
  'accessors of nodes': `Object.defineProperty(Node.prototype, 'childNodes', { get: () => [] })
    Object.defineProperty(Node.prototype, 'parentNode', { get: () => null })`,
  'performance.now': 'Performance.prototype.now = () => 0',
  'performance replaced': 'window.performance = { now: () => 7 }',
  matchMedia: 'window.matchMedia = undefined',
  'Proxy and Reflect': 'window.Proxy = function () { return {} }; Reflect.apply = () => undefined',
}

describe.concurrent('a page that overrides', () => {
  for (const [name, script] of Object.entries({
    ...(isDeep ? overrides : { [counted]: overrides[counted] }),
    'all of that': Object.values(overrides).join('\n'),
  })) {
    test(`${name} is recorded whole`, async ({ lethe, site, page }) => {
      await open(lethe, site, page, '<p>FIRST</p>', `<script>${script}</script>`)
      await page.evaluate("document.querySelector('p').append('LATER')")
      await stored(lethe, '"LATER"')
      const events = lethe.events()
      expect(events.slice(0, 2).map(({ type }) => type)).toEqual([4, 2])
      expect(JSON.stringify(events[1])).toContain('FIRST')
      expect(Array.isArray(events[1].data.node.childNodes)).toBe(true)
      const times = events.map(({ timestamp }) => timestamp)
      expect(times.every((time) => Math.abs(time - Date.now()) < 60_000)).toBe(true)
      expect(lethe.requests('start')).toHaveLength(1)
      expect(await page.evaluate('window.fetched')).toBeUndefined()
      expect(await page.evaluate("document.querySelectorAll('iframe').length")).toBe(0)
    })
  }
})

test.concurrent('times only increase, even if the system clock is changed', async ({
  lethe,
  site,
  page,
}) => {
  await open(lethe, site, page, '<p></p>')
  await page.evaluate(`{
    const own = Date.now.bind(Date)
    Date.now = () => own() - 3_600_000
    document.querySelector('p').append('LATER') }`)
  await stored(lethe, '"LATER"')
  const times = lethe.events().map(({ timestamp }) => timestamp)
  expect(times).toEqual([...times].sort((a, b) => a - b))
})

describe.concurrent('the page gets', () => {
  test('errors of native functions as often as they occur, and recording continues', async ({
    lethe,
    site,
    page,
  }) => {
    await open(lethe, site, page, '<style>p{color:red}</style><p></p><input>')
    const thrown = await page.evaluate(`(() => {
      const sheet = document.styleSheets[0]
      const rule = sheet.cssRules[0]
      const tries = [
        () => sheet.insertRule('x::-moz-y{}'),
        () => sheet.insertRule('p{}', 99),
        () => sheet.deleteRule(99),
        () => rule.insertRule('@import "x"'),
        () => sheet.replaceSync('p{}'),
        () => document.querySelector('p').attachShadow({ mode: 'no' }),
        () => customElements.define('p', class extends HTMLElement {}),
        () => (document.querySelector('input').type = 'file', document.querySelector('input').value = 'x'),
      ]
      const names = []
      for (let times = 0; times < 6; times++)
        for (const each of tries) try { each(); names.push('none') } catch (error) { names.push(error.name) }
      return names.slice(-tries.length)
    })()`)
    expect(thrown).toEqual([
      'SyntaxError',
      'IndexSizeError',
      'IndexSizeError',
      expect.stringMatching(/Error$/),
      'NotAllowedError',
      'TypeError',
      'SyntaxError',
      'InvalidStateError',
    ])
    await page.evaluate("document.styleSheets[0].insertRule('b{color:blue}')")
    await page.evaluate("document.querySelector('p').append('LATER')")
    await stored(lethe, '"LATER"')
    const events = lethe.events()
    expect(events.filter(isSnapshot)).toHaveLength(1)
    expect(events.some(says('lethe:stopped'))).toBe(false)
    // Only what worked is told.
    const rules = events.filter(({ data }) => data.source === 8)
    expect(rules.map(({ data }) => data.adds?.[0].rule)).toEqual(['b{color:blue}'])
  })

  test('its own wrappers back after stop(), and nothing of ours', async ({ lethe, site, page }) => {
    await open(lethe, site, page, '<style>p{color:red}</style><p></p><input>')
    const kept = await page.evaluate(`(() => {
      const places = [
        [CSSStyleSheet.prototype, 'insertRule'], [CSSStyleSheet.prototype, 'deleteRule'],
        [CSSStyleSheet.prototype, 'replaceSync'], [CSSGroupingRule.prototype, 'insertRule'],
        [CSSStyleDeclaration.prototype, 'setProperty'], [Element.prototype, 'attachShadow'],
        [customElements, 'define'],
      ]
      const wrappers = places.map(([owner, name]) => {
        const own = owner[name]
        return (owner[name] = function (...input) { return own.apply(this, input) })
      })
      const input = HTMLInputElement.prototype
      const { set, ...value } = Object.getOwnPropertyDescriptor(input, 'value')
      const wrapped = function (text) { set.call(this, text) }
      Object.defineProperty(input, 'value', { ...value, set: wrapped })
      lethe.stop()
      document.styleSheets[0].insertRule('i{}')
      document.querySelector('input').value = 'x'
      return places.map(([owner, name], at) => owner[name] === wrappers[at])
        .concat(Object.getOwnPropertyDescriptor(input, 'value').set === wrapped)
    })()`)
    expect(kept).toEqual(Array(8).fill(true))
    const natives = await page.evaluate(`(() => {
      const text = (each) => Function.prototype.toString.call(each)
      const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'checked')
      return [text(CSSStyleSheet.prototype.replace), text(set), 'lethe' in document]
    })()`)
    expect(natives).toEqual([
      'function replace() { [native code] }',
      'function set checked() { [native code] }',
      false,
    ])
  })

  test('no timer for each value it sets, and the last one is recorded', async ({
    lethe,
    site,
    page,
  }) => {
    await open(lethe, site, page, '<div></div>')
    const timers = await page.evaluate(`(async () => {
      document.querySelector('div').innerHTML = '<input type="checkbox">'.repeat(2_000)
      await new Promise((resolve) => setTimeout(resolve, 100))
      let timers = 0
      const own = window.setTimeout
      window.setTimeout = (...input) => { timers++; return own(...input) }
      const boxes = document.querySelectorAll('input')
      for (let times = 0; times < 11; times++) for (const box of boxes) box.checked = times % 2 === 0
      window.setTimeout = own
      return timers
    })()`)
    expect(timers).toBe(0)
    const changes = () => lethe.events().filter(({ data }) => data.source === 5)
    await until(() => changes().length >= 2_000)
    expect(changes()).toHaveLength(2_000)
    expect(changes().every(({ data }) => data.isChecked)).toBe(true)
  })
})

test.concurrent('a flood of changes is replaced by a new snapshot, and recording continues', async ({
  lethe,
  site,
  page,
}) => {
  await open(lethe, site, page, '<ul></ul><p></p>')
  await page.evaluate(`{
    const list = document.querySelector('ul')
    for (let at = 0; at < 30_000; at++) list.append(document.createElement('li'))
    while (list.children.length > 3) list.lastChild.remove()
    list.lastChild.append('LAST') }`)
  await until(() => lethe.events().filter(isSnapshot).length === 2)
  await page.evaluate("document.querySelector('li:last-child').append('LATER')")
  await stored(lethe, '"LATER"')
  const events = lethe.events()
  expect(events.some(says('lethe:stopped'))).toBe(false)
  const after = events.slice(events.findLastIndex(isSnapshot))
  expect(JSON.stringify(after[0])).toContain('LAST')
  const texts = after.flatMap(({ data }) => data.adds ?? [])
  // It is told of a node that the snapshot shows.
  expect(texts.map(({ node }) => node.textContent)).toEqual(['LATER'])
  expect(JSON.stringify(after[0])).toContain(`"id":${texts[0].parentId}}`)
})

test.concurrent('large data URLs are left out before a limit is reached, in the first snapshot and later', async ({
  lethe,
  site,
  page,
}) => {
  const image = `data:image/png;base64,${'iVBORw0KGgo'.repeat(100_000)}`
  const many = Array.from({ length: 10 }, (_, at) => `<img width="9" height="9" id="i${at}">`)
  await open(
    lethe,
    site,
    page,
    `<p>FIRST</p>${many.join('')}<script>
      for (const each of document.images) each.src = ${JSON.stringify(image)}</script>`,
  )
  await page.evaluate(`(() => {
    const late = new Image(8, 8)
    late.src = document.images[0].src
    document.body.append(late, 'LATER') })()`)
  await stored(lethe, '"LATER"')
  const events = lethe.events()
  expect(events.some(says('lethe:stopped'))).toBe(false)
  expect(events.some(says('lethe:dropped'))).toBe(false)
  const text = JSON.stringify(events)
  expect(text.match(/"src":"data:image\/gif[^"]*"/g)).toHaveLength(11)
  expect(text.length).toBeLessThan(100_000)
})

test.concurrent('a recorder that does not load is tried again, with one warning, and identify goes out meanwhile', async ({
  lethe,
  site,
  page,
}) => {
  const printed: string[] = []
  page.on('console', (message) => message.type() === 'warning' && printed.push(message.text()))
  let tries = 0
  await page.route('**/recorder.js', (route) => (++tries > 2 ? route.continue() : route.abort()))
  site.set('/', html(lethe, '<p></p>').replace('</script></head>', ";lethe.identify('jane')$&"))
  await page.goto(`${site.url}/`)
  await until(() => lethe.requests('identify').length)
  await until(() => lethe.events().some(isSnapshot))
  await page.evaluate("document.querySelector('p').append('LATER')")
  await stored(lethe, '"LATER"')
  expect(tries).toBe(3)
  expect(printed).toEqual(['lethe: recorder not loaded'])
  expect([...lethe.browsers.values()]).toEqual([{ userId: 'jane', retired: false }])
  expect(lethe.requests('start').map(({ text }) => JSON.parse(text).pending)).toEqual([true])
})
