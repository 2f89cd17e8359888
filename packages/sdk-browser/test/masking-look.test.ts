import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { MaskingPreset } from '../src/api.ts'
import { maskCss } from '../src/masking/css.ts'
import { createMasker } from '../src/masking/masker.ts'
import { maskPatterns } from '../src/masking/text.ts'
import { maskTokens, maskUrl, setUrlRules } from '../src/masking/url.ts'
import { input, meta, mutation, page, type Sketch } from './events.ts'

afterEach(() => setUrlRules({}))

const masked = (preset: MaskingPreset, ...body: Sketch[]) =>
  JSON.stringify(createMasker({ preset, unmask: true })(page(...body).snapshot))

describe('what a selector of the page names is look', () => {
  const kept: [css: string, name: string, value: string, shown: string][] = [
    ['[data-theme="dark"] p{}', 'data-theme', 'dark', 'dark'],
    ["p[data-bs-theme='dark']{}", 'data-bs-theme', 'dark', 'dark'],
    ['.x:not([data-state=open]) b{}', 'data-state', 'open', 'open'],
    [':host([variant=primary]){}', 'variant', 'primary', 'primary'],
    ['@media print{@layer a{[aria-checked="true"]{}}}', 'aria-checked', 'true', 'true'],
    ['[data-side^=top]{}', 'data-side', 'top-CANARY', 'top'],
    ['[data-side$=end]{}', 'data-side', 'CANARY-end', 'end'],
    ['[data-tags~=new][data-tags~=hot]{}', 'data-tags', 'hot CANARY new', 'new hot'],
    ['[data-kind*="warn" i]{}', 'data-kind', 'CANARY WARNING', 'warn'],
    ['[data-open]{}', 'data-open', 'CANARY', ''],
    ['.data-\\[state\\=open\\]\\:x[data-state=open]{}', 'data-state', 'open', 'open'],
  ]
  test.each(kept)('%s keeps of %s="%s" just "%s"', (css, name, value, shown) => {
    for (const preset of ['balanced', 'strict'] as const) {
      const all = masked(preset, ['p', { [name]: value }], ['style', {}, css])
      expect(all).toContain(`"${name}":${JSON.stringify(shown)}`)
      expect(all).not.toContain('CANARY')
    }
  })

  test.each([
    ['[data-user="42"]{}', { 'data-user': 'CANARY' }],
    ['[data-other]{}', { 'data-user': 'CANARY' }],
    ['[onclick]{}', { onclick: 'CANARY' }],
    ['[value="CANARY"]{}', { 'ng-value': 'CANARY' }],
    ['[data-\\[user\\]]{}', { 'data-user': 'CANARY' }],
  ])('%s lets nothing else through', (css, attributes) => {
    const all = masked('balanced', ['style', {}, css], ['p', attributes])
    expect(all.slice(all.indexOf('"tagName":"p"'))).not.toContain('CANARY')
  })

  test('also where the sheet is linked, comes with a change, or as a rule', () => {
    const { snapshot, idOf, nodeOf } = page(
      ['p', { one: '' }],
      ['link', { _cssText: '[data-a=x]{}' }],
    )
    const mask = createMasker({ preset: 'balanced', unmask: true })
    mask(snapshot)
    const shows = (name: string) =>
      JSON.stringify(
        mask(mutation({ attributes: [{ id: idOf('one'), attributes: { [name]: 'x' } }] })),
      )
    expect(shows('data-a')).toContain('"data-a":"x"')
    expect(shows('data-b')).not.toContain('"data-b"')
    expect(mask.look.takeMissed()).toBe(false)
    mask(mutation({ adds: [{ parentId: idOf('one'), node: nodeOf(['style', {}, '[data-b]{}']) }] }))
    expect(mask.look.takeMissed(), 'an element before it lacks what it asks for').toBe(true)
    expect(mask.look.takeMissed()).toBe(false)
    expect(shows('data-b')).toContain('"data-b":""')
    const rule = { source: 8, id: 1, adds: [{ rule: '[data-c=x]{}' }] }
    mask({ type: 3, data: rule, timestamp: 4 } as never)
    expect(shows('data-c')).toContain('"data-c":"x"')
  })

  test('no style sheet makes it slow', () => {
    for (const unit of ['[', '[a', '[a=', '[a="', '[a]', '[a=b]', ']', '\\[']) {
      const all = masked('balanced', ['style', {}, unit.repeat(1_000_000 / unit.length)])
      expect(all.length).toBeGreaterThan(100)
    }
  })
})

describe('controls', () => {
  test.each([
    ['progress', { value: '0.7', max: '1' }],
    ['meter', { value: '-3.5' }],
    ['li', { value: '7' }],
  ])('a number of the page in %s stays', (tag, attributes) => {
    expect(masked('balanced', [tag, attributes])).toContain(JSON.stringify(attributes))
    expect(masked('balanced', [tag, { value: 'CANARY' }])).not.toContain('CANARY')
  })

  test('the label of a button made of an input is text', () => {
    for (const type of ['submit', 'button', 'reset']) {
      const button: Sketch = ['input', { type, value: 'Send to a@example.com' }]
      expect(masked('balanced', button)).toContain('"value":"Send to *************"')
      expect(masked('strict', button)).toContain('"value":"**** ** *************"')
    }
  })

  test('a field that becomes a button stays masked', () => {
    const { snapshot, idOf } = page(['input', { type: 'text', x: '' }])
    const mask = createMasker({ preset: 'balanced', unmask: true })
    mask(snapshot)
    const id = idOf('x')
    mask(mutation({ attributes: [{ id, attributes: { type: 'submit' } }] }))
    const changed = mask(mutation({ attributes: [{ id, attributes: { value: 'CANARY' } }] }))
    expect(JSON.stringify([changed, mask(input(id, 'CANARY'))])).not.toContain('CANARY')
  })

  test('what would pass for another choice says that it is masked', () => {
    const types = ['checkbox', 'radio', 'range', 'color', 'date', 'time', 'number']
    for (const type of types) {
      const own: Sketch = ['input', { type, value: '80', checked: true, disabled: '' }]
      const all = masked('balanced', own)
      expect(all).toContain('"data-lethe-masked":""')
      expect(all).toContain('"disabled":""')
      expect(all).not.toMatch(/80|true/)
    }
    expect(masked('balanced', ['input', { type: 'text' }])).not.toContain('data-lethe-masked')
    expect(masked('open', ['input', { type: 'checkbox' }])).not.toContain('data-lethe-masked')
    expect(masked('open', ['input', { type: 'range' }])).toContain('data-lethe-masked')
  })

  test('what is chosen in controls made of elements is masked as in native ones', () => {
    const css: Sketch = [
      'style',
      {},
      '[aria-selected=true],[aria-checked=true],[data-state=checked]{}',
    ]
    for (const own of [
      { role: 'option', 'aria-selected': 'true' },
      { role: 'radio', 'aria-checked': 'true', 'data-state': 'checked' },
      { role: 'menuitemradio', 'aria-checked': 'true' },
      { role: 'checkbox', 'aria-checked': 'true', 'data-state': 'checked' },
    ]) {
      const all = masked('balanced', css, ['form', {}, ['div', own, ['b', {}, 'CANARY']]])
      expect(all).not.toMatch(/CANARY|"true"|"checked"/)
    }
    const button: Sketch = ['button', { 'aria-haspopup': 'listbox' }, ['span', {}, 'CANARY']]
    expect(masked('balanced', button)).not.toContain('CANARY')
    const tab: Sketch = ['button', { role: 'tab', 'aria-selected': 'true' }, 'Orders']
    expect(masked('balanced', css, tab)).toContain('"aria-selected":"true"},"id"')
    const toggle: Sketch = ['button', { role: 'switch', 'aria-checked': 'true' }]
    expect(masked('balanced', css, toggle)).toContain('"aria-checked":"true"')
  })
})

describe('tokens in URLs', () => {
  const hex = '0123456789abcdef'.repeat(4)
  const secrets = [
    '/reset/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
    `/verify/${hex}`,
    '/o/550e8400-e29b-41d4-a716-446655440000',
    '/cart;jsessionid=0123ABCDEF',
    '/invite/Xk29fjQpL0sVbT83mZq1',
    '/magic/3f8c1d2e9b7a4c5d8e6f/go',
    '/k/sk_live_51H8x9J2eZvKYlo2C',
    '/t/dGhpcyBpcyBhIHRlc3Q_',
  ]
  const parts = secrets.map((each) => each.split(/[/;]/).find((part) => part.length > 10) as string)
  test.each(secrets)('%s does not leave, wherever a URL stands, in any preset', (path) => {
    const url = `https://a.example${path}`
    for (const preset of ['open', 'balanced', 'strict'] as const) {
      const all = [
        masked(
          preset,
          ['a', { href: url }],
          ['img', { src: `${url}/p.png`, srcset: `${url}/p.png 2x` }],
          ['div', { style: `background:url(${url}/p.png)` }],
          ['style', {}, `p{background:url("${url}/p.png")}`],
        ),
        JSON.stringify(createMasker({ preset, unmask: true })(meta(url))),
      ].join()
      for (const part of parts) expect(all).not.toContain(part)
    }
    if (path.includes(';')) return
    const elsewhere = maskTokens(`https://a.example/?next=${path.slice(1)}#${path}`)
    for (const part of parts) expect(elsewhere).not.toContain(part)
  })

  test.each([
    '/blog/how-to-make-a-really-long-article-title-2024',
    '/products/Samsung-Galaxy-S21-Ultra-256GB-Black',
    '/docs/getting-started/installation',
    '/getUserProfileSettingsPage2',
    '/p/internationalization',
    '/orders/1234567',
  ])('%s is a page, and stays', (path) => {
    expect(maskUrl(path)).toBe(path)
    expect(maskTokens(`https://a.example${path}`)).toBe(`https://a.example${path}`)
  })

  const uuid = '550e8400-e29b-41d4-a716-446655440000'
  test('UUIDs stay where a page says that they only name things; no other secret does', () => {
    setUrlRules({ maskUuids: false })
    const plain = 'f47ac10b-58cc-4372-a567-0e02b2c3d479'
    expect(maskUrl(`/o/${plain}/x?a=${plain}`)).toBe(`/o/${plain}/x?a=*`)
    expect(maskTokens(`/o/${uuid}?a=${uuid}`)).toBe(`/o/${uuid}?a=${uuid}`)
    for (const path of secrets.filter((each) => !each.includes(uuid))) {
      for (const url of [path, `${path}/${uuid}`]) {
        for (const part of parts.filter((each) => each !== uuid)) {
          expect(maskTokens(url)).not.toContain(part)
        }
      }
    }
    expect(maskTokens(`/k/${uuid}${hex}`)).toBe('/k/*')
  })

  test('a function of the page masks more, whatever it does', () => {
    const returned = fc.oneof(fc.string(), fc.constantFrom(...secrets), fc.anything())
    const url = fc.oneof(fc.constantFrom(...secrets), fc.webUrl())
    fc.assert(
      fc.property(url, returned, fc.boolean(), (given, value, isThrown) => {
        const maskOwn = () => {
          if (isThrown) throw value
          return value as string
        }
        setUrlRules({ maskUrl: maskOwn })
        for (const mask of [maskUrl, maskTokens]) {
          const shown = mask(given)
          for (const part of parts) expect(shown).not.toContain(part)
          if (isThrown || typeof value !== 'string') expect(shown).toBe('*')
        }
      }),
    )
    setUrlRules({ maskUrl: (each) => each.replace(/(?<=\/of\/)[^/?]+/, '-') })
    expect(maskUrl('https://a.example/of/jane?q=1')).toBe('https://a.example/of/-?q=*')
    expect(maskTokens('https://a.example/of/jane?q=1')).toBe('https://a.example/of/-?q=1')
    const all = masked('open', ['a', { href: '/of/jane' }], ['style', {}, 'p{a:url(/of/jane)}'])
    expect(all).not.toContain('jane')
  })

  test('the name of a file keeps the hash of its content', () => {
    for (const path of [
      `/assets/app-${hex}.css`,
      '/media/Inter.p.3a7e9b2c.woff2',
      `/s/${hex}.png`,
    ]) {
      expect(maskUrl(path, 'asset')).toBe(path)
    }
    expect(maskUrl(`/s/${hex}/a.png`, 'asset')).toBe('/s/*/a.png')
  })
})

test.each([
  ['+49 170 1234567', 'call +49 170 1234567 now'],
  ['(555) 123-4567', '(555) 123-4567'],
  ['555-123-4567', '(555-123-4567)'],
  ['06 12 34 56 78', 't: 06 12 34 56 78.'],
  ['020 7946 0958', '020 7946 0958'],
  ['0170/1234567', '0170/1234567'],
  ['123-45-6789', 'SSN 123-45-6789,'],
  ['QQ 12 34 56 C', 'NINO QQ 12 34 56 C'],
  ['RSSMRA85M01H501Q', 'CF RSSMRA85M01H501Q'],
  ['DE89 3704 0044 0532 0130 00', 'IBAN DE89 3704 0044 0532 0130 00'],
  ['GB82WEST12345698765432', 'GB82WEST12345698765432'],
])('%s is masked in page text', (secret, text) => {
  expect(maskPatterns(text)).not.toContain(secret)
  expect(maskPatterns(text).replace(/\*/g, '')).not.toMatch(/\d/)
})

test.each([
  'Order 1234567 of 12 May, 3 items',
  '2026-11-28 12:30:45',
  '2026-11-28T12:30:45.123Z',
  '192.168.100.200',
  '$1,234,567.00',
  '1.234.567,89 EUR',
  '1 000 000 000',
  'v1.2.3-4567',
  'Rooms 123 456, 10:15 - 11:45, 2024-2025',
])('%s is no secret number', (text) => expect(maskPatterns(text)).toBe(text))

describe('under strict CSS prints nothing', () => {
  test.each([
    'a::before{content: attr(x) "CANARY"}',
    'a{--s: "CANARY"}',
    'a{content:"CANARY" / "CANARY"}',
    "li{list-style: 'CANARY'}",
    '@counter-style x{symbols:"CANARY" "CANARY"}',
    'a{content/*;*/:/*"*/"CANARY"}',
    'a{quotes:"CANARY" "x"}',
    'a{content:"CANARY',
    'c\\6fntent: "CANARY"',
  ])('%s', (css) => {
    expect(maskCss(css, 2)).not.toContain('CANARY')
    expect(masked('strict', ['style', {}, css], ['p', { style: css }])).not.toContain('CANARY')
  })

  test('a property that is set by a script', () => {
    const mask = createMasker({ preset: 'strict', unmask: true })
    const { snapshot, idOf } = page(['p', { x: '' }])
    mask(snapshot)
    const style = { '--c': '"CANARY"', content: ['"CANARY"', 'important'], font: '12px "Inter"' }
    const changed = mutation({ attributes: [{ id: idOf('x'), attributes: { style } }] })
    const set = { source: 13, id: 1, index: [0], set: { property: '--c', value: '"CANARY"' } }
    const all = JSON.stringify([mask(changed), mask({ type: 3, data: set, timestamp: 1 } as never)])
    expect(all).not.toContain('CANARY')
    expect(all).toContain('Inter')
  })

  test('names of fonts, areas and selectors stay', () => {
    for (const css of [
      '@font-face{font-family:"Inter";src:local("Inter") format("woff2")}',
      'a[rel="x"]{grid-template-areas:"a b" "c d";font:12px "Inter"}',
      '@import "x.css";',
    ]) {
      expect(maskCss(css, 2)).toBe(css)
    }
  })
})
