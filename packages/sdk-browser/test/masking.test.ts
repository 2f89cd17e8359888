import type { eventWithTime } from '@rrweb/types'
import { describe, expect, test } from 'vitest'
import type { MaskingPreset } from '../src/api.ts'
import { createMasker } from '../src/masking/masker.ts'
import { tightest } from '../src/masking/preset.ts'
import { input, meta, mutation, page, type Sketch } from './events.ts'

/** What leaves the browser of a page and of what happened on it, as text. */
function shown(preset: MaskingPreset, events: eventWithTime[], unmask = true) {
  const mask = createMasker({ preset, unmask })
  return events.map((event) => JSON.stringify(mask(event)) ?? '').join('\n')
}

const shownOf = (preset: MaskingPreset, ...body: Sketch[]) =>
  shown(preset, [page(...body).snapshot])

describe('balanced, the default', () => {
  const hidden: [what: string, sketch: Sketch][] = [
    ['what is typed', ['input', { value: 'CANARY' }]],
    ['a text area', ['textarea', { value: 'CANARY' }, 'CANARY']],
    ['a hidden input', ['input', { type: 'hidden', value: 'CANARY' }]],
    ['a placeholder', ['input', { placeholder: 'CANARY' }]],
    ['a label inside a form', ['form', {}, ['div', {}, ['label', {}, ['b', {}, 'CANARY']]]]],
    ['a legend inside a form', ['form', {}, ['fieldset', {}, ['legend', {}, 'CANARY']]]],
    [
      'the options of a select',
      ['select', {}, ['option', { value: 'CANARY', label: 'CANARY' }, 'CANARY']],
    ],
    ['a list of suggestions', ['datalist', {}, ['option', { value: 'CANARY' }, 'CANARY']]],
    ['editable text', ['div', { contenteditable: '' }, ['p', {}, 'CANARY']]],
    ['a text box made of a div', ['div', { role: 'textbox' }, 'CANARY']],
    ['data attributes', ['div', { 'data-user': 'CANARY', 'data-reactid': 'CANARY' }]],
    ['titles', ['span', { title: 'CANARY' }]],
    ['alternative texts', ['img', { alt: 'CANARY' }]],
    ['names for screen readers', ['span', { 'aria-label': 'CANARY', 'aria-valuetext': 'CANARY' }]],
    [
      'attributes it does not know',
      ['div', { 'x-data': 'CANARY', 'ng-init': 'CANARY', content: 'CANARY' }],
    ],
    ['event handlers', ['a', { onclick: 'go("CANARY")' }]],
    ['documents inside attributes', ['iframe', { srcdoc: '<p>CANARY</p>' }]],
    ['where a form goes', ['form', { action: '/f?CANARY' }]],
    ['the values of a query', ['a', { href: 'https://a.example/p?token=CANARY&b=CANARY' }]],
    ['a query without names', ['a', { href: '/p?CANARY' }]],
    ['the hash', ['a', { href: '/p#CANARY' }]],
    ['credentials of a URL', ['a', { href: 'https://CANARY:CANARY@a.example/' }]],
    ['a mail address to write to', ['a', { href: 'mailto:CANARY' }]],
    ['a script as a link', ['a', { href: 'javascript:go("CANARY")' }]],
    ['a page inside a URL', ['a', { href: 'data:text/html,CANARY' }]],
    [
      'the query of an image',
      ['img', { src: '/i.png?CANARY', srcset: '/i.png?u=CANARY 1x, /j.png?CANARY 2x' }],
    ],
    ['the query of a background', ['div', { style: 'background:url(/b.png?u=CANARY)' }]],
    [
      'the query of an image in a style sheet',
      ['style', { _cssText: '.a{background:url("/b.png?u=CANARY")}' }],
    ],
    ...[
      'image-set("/b.png?u=CANARY" 1x)',
      "src('/b.png?u=CANARY')",
      'url(/b.png?u=CANARY',
      'url("/b\\"c.png?u=CANARY")',
      'url(/b\\)c.png?u=CANARY)',
    ].map((value): [string, Sketch] => [
      `the query in ${value}`,
      ['div', { style: `background:${value}` }],
    ]),
    ['the query of an address in a variable', ['div', { style: "--u:'/b.png?u=CANARY'" }]],
    ['the query of an imported sheet', ['style', {}, '/* don\'t */ @import "/b.css?u=CANARY";']],
    [
      "attributes of the page's own elements",
      ['my-card', { name: 'CANARY', values: 'CANARY', 'text-owner': 'CANARY', summary: 'CANARY' }],
    ],
    ['attributes of SVG on other elements', ['div', { 'text-owner': 'CANARY', result: 'CANARY' }]],
    ['what a field made of a div counts to', ['div', { role: 'spinbutton' }, 'CANARY']],
    ['text for browsers without scripts', ['noscript', {}, '<img src="/p?CANARY">']],
    ['a card field', ['input', { autocomplete: 'cc-number', value: 'CANARY', name: 'CANARY' }]],
    [
      'a one-time code',
      ['input', { autocomplete: 'one-time-code', value: 'CANARY', id: 'CANARY' }],
    ],
    ['a blocked element', ['div', { 'data-lethe-block': '', id: 'CANARY' }, ['p', {}, 'CANARY']]],
    [
      'a masked element',
      ['div', { 'data-lethe-mask': '' }, ['p', {}, 'CANARY', ['img', { src: 'CANARY' }]]],
    ],
  ]
  test.each(hidden)('hides %s', (_, sketch) => {
    expect(shownOf('balanced', sketch)).not.toContain('CANARY')
  })

  test.each([
    ['jane.doe+x@example.com', 'Write to jane.doe+x@example.com, please'],
    ['jos\u00e9@ex\u00e4mple.de', 'jos\u00e9@ex\u00e4mple.de'],
    ['4111 1111 1111 1111', 'card 4111 1111 1111 1111.'],
    ['4111-1111-1111-1111', '4111-1111-1111-1111'],
    ['378282246310005', 'no378282246310005.'],
  ])('hides %s wherever text has it', (secret, text) => {
    const all = shownOf(
      'balanced',
      ['p', {}, text],
      ['div', { id: text, class: text }],
      ['a', { href: `/of/${encodeURI(text)}`, title: text }, text],
    )
    expect(all.replace(/%20/g, ' ').replace(/"id":"[^"]*"|"class":"[^"]*"/g, '')).not.toContain(
      secret,
    )
  })

  test('shows the page itself', () => {
    const all = shownOf('balanced', [
      'a',
      {
        class: 'md:flex',
        id: 'more',
        href: 'https://a.example/products?sort=CANARY',
        style: 'color: red',
      },
      'Order 1234567 of 12 May, 3 items',
    ])
    expect(all).toContain('Order 1234567 of 12 May, 3 items')
    expect(all).toContain(
      '"class":"md:flex","id":"more","href":"https://a.example/products?sort=*"',
    )
    expect(all).toContain('"style":"color: red"')
  })

  test('keeps what styles hang on: symbols of SVG, scopes of Vue and Angular, sharp images', () => {
    const all = shownOf(
      'balanced',
      ['p', { 'data-v-7ba5bd90': '', '_ngcontent-abc-c12': '' }],
      ['img', { src: '/logo@2x.png' }],
      ['style', { _cssText: '@media print{.a{fill:url(#grey)}}' }],
    )
    expect(all).toContain('"data-v-7ba5bd90":"","_ngcontent-abc-c12":""')
    expect(all).toContain('/logo@2x.png')
    expect(all).toContain('@media print{.a{fill:url(#grey)}}')
  })

  test('hides the query of what an SVG attribute refers to, and keeps references within the page', () => {
    const { snapshot, idOf } = page(['p', { x: '' }])
    const attributes = { fill: 'url(/s.svg?u=CANARY#a)', 'clip-path': 'url(#a)', 'font-size': '9' }
    const node = {
      type: 2 as const,
      tagName: 'rect',
      isSVG: true as const,
      attributes,
      childNodes: [],
      id: 99,
    }
    const all = shown('balanced', [snapshot, mutation({ adds: [{ parentId: idOf('x'), node }] })])
    expect(all).not.toContain('CANARY')
    expect(all).toContain('"clip-path":"url(#a)","font-size":"9"')
  })

  test('shows nothing that scripts put into all objects', () => {
    const { snapshot } = page(['p', { x: '' }])
    try {
      Object.assign(Object.prototype, { version: 'CANARY', 'data-lethe-block': '' })
      expect(shown('open', [snapshot])).not.toContain('CANARY')
    } finally {
      for (const name of ['version', 'data-lethe-block']) {
        delete (Object.prototype as Record<string, unknown>)[name]
      }
    }
  })

  test('hides which boxes are ticked and which option is chosen', () => {
    const form = page(['input', { type: 'checkbox', checked: true, x: '' }])
    const all = shown('balanced', [form.snapshot, input(form.idOf('x'), 'on', true)])
    expect(all).not.toContain('true')
  })

  test('does not tell the length of a password', () => {
    const login = page(['input', { type: 'password', value: 'four', x: '' }])
    const all = shown('balanced', [login.snapshot, input(login.idOf('x'), 'a much longer one')])
    expect(all.match(/"(?:value|text)":"(\**)"/g)).toEqual([
      '"value":"********"',
      '"text":"********"',
    ])
  })
})

describe('what changes is masked by the place it changes in', () => {
  test('text of an editable, an option, a label', () => {
    const { snapshot, idOf } = page(
      ['div', { contenteditable: 'true' }, ['p', { one: '' }, 'a']],
      ['select', {}, ['option', { two: '' }, 'a']],
      ['form', {}, ['label', { three: '' }, 'a']],
      ['p', { four: '' }, 'a'],
    )
    const texts = ['one', 'two', 'three', 'four'].map((name) => ({
      id: idOf(name, 'text'),
      value: name === 'four' ? 'SHOWN' : 'CANARY',
    }))
    const all = shown('balanced', [snapshot, mutation({ texts })])
    expect(all).not.toContain('CANARY')
    expect(all).toContain('SHOWN')
  })

  test('what is added into an editable, and below what was added', () => {
    const { snapshot, idOf, nodeOf } = page(['div', { contenteditable: '', x: '' }, 'a'])
    const added = nodeOf(['p', {}, 'CANARY'])
    const again = nodeOf(['b', {}, 'CANARY'])
    const all = shown('balanced', [
      snapshot,
      mutation({ adds: [{ parentId: idOf('x'), node: added }] }),
      mutation({ adds: [{ parentId: added.id, node: again }] }),
    ])
    expect(all).not.toContain('CANARY')
  })

  test('an element that becomes editable, masked or blocked later', () => {
    for (const name of ['contenteditable', 'data-lethe-mask', 'data-lethe-block']) {
      const { snapshot, idOf } = page(['div', { x: '' }, ['p', { y: '' }, 'before']])
      const all = shown('balanced', [
        snapshot,
        mutation({ attributes: [{ id: idOf('x'), attributes: { [name]: '' } }] }),
        mutation({ texts: [{ id: idOf('y', 'text'), value: 'CANARY' }] }),
      ])
      expect(all, name).not.toContain('CANARY')
    }
  })

  test('a field that was a password once stays one', () => {
    const { snapshot, idOf } = page(['input', { type: 'password', x: '' }])
    const id = idOf('x')
    const all = shown('balanced', [
      snapshot,
      mutation({ attributes: [{ id, attributes: { type: 'text' } }] }),
      mutation({ attributes: [{ id, attributes: { value: 'CANARY' } }] }),
      input(id, 'CANARY'),
    ])
    expect(all).not.toMatch(/CANARY|"\*{6}"/)
  })

  test('an element that is no longer unmasked', () => {
    const { snapshot, idOf } = page(['input', { 'data-lethe-unmask': '', x: '', value: 'SHOWN' }])
    const id = idOf('x')
    const all = shown('balanced', [
      snapshot,
      mutation({ attributes: [{ id, attributes: { 'data-lethe-unmask': null } }] }),
      input(id, 'CANARY'),
    ])
    expect(all).toContain('SHOWN')
    expect(all).not.toContain('CANARY')
  })

  test('attributes, one by one', () => {
    const { snapshot, idOf } = page(['a', { x: '' }])
    const attributes = {
      href: '/p?CANARY',
      title: 'CANARY',
      'data-a': 'CANARY',
      style: { background: 'url(/b?CANARY)', color: ['url(/b?CANARY)', 'important'] },
    }
    const all = shown('balanced', [
      snapshot,
      mutation({ attributes: [{ id: idOf('x'), attributes }] }),
    ])
    expect(all).not.toContain('CANARY')
  })

  test('a node that moved into an editable', () => {
    const { snapshot, idOf } = page(['p', { x: '' }, 'a'], ['div', { contenteditable: '', y: '' }])
    const text = { type: 3 as const, textContent: 'CANARY', id: idOf('x', 'text') }
    const all = shown('balanced', [
      snapshot,
      mutation({
        removes: [{ parentId: idOf('x'), id: text.id }],
        adds: [{ parentId: idOf('y'), node: text }],
      }),
      mutation({ texts: [{ id: text.id, value: 'CANARY' }] }),
    ])
    expect(all).not.toContain('CANARY')
  })

  test('what belongs to nodes that were never seen', () => {
    const all = shown('balanced', [
      mutation({
        texts: [{ id: 7, value: 'CANARY' }],
        attributes: [{ id: 8, attributes: { value: 'CANARY', title: 'CANARY' } }],
        adds: [{ parentId: 9, node: { type: 3, textContent: 'CANARY', id: 10 } }],
      }),
      input(11, 'CANARY'),
    ])
    expect(all).not.toContain('CANARY')
  })

  test('many nodes that come and go do not pile up', () => {
    const { snapshot, idOf } = page(['div', { x: '' }])
    const mask = createMasker({ preset: 'balanced', unmask: true })
    mask(snapshot)
    const parentId = idOf('x')
    for (let id = 1000; id < 21_000; id += 2) {
      const node = { type: 2 as const, tagName: 'p', attributes: {}, id, childNodes: [] }
      const text = { type: 3 as const, textContent: 'a', id: id + 1 }
      mask(
        mutation({
          adds: [
            { parentId, node },
            { parentId: id, node: text },
          ],
        }),
      )
      mask(mutation({ removes: [{ parentId, id }] }))
    }
    const alive = mask(mutation({ texts: [{ id: 20_999, value: 'still here?' }] }))
    expect(JSON.stringify(alive)).not.toContain('still here?')
  })
})

describe('the attributes a page sets', () => {
  test('unmask shows what is typed, labels and titles, but no address, card or query', () => {
    const all = shownOf('balanced', [
      'form',
      { 'data-lethe-unmask': '' },
      ['label', {}, 'Colour'],
      ['input', { value: 'green', placeholder: 'any', title: 'of jane@example.com' }],
      ['a', { href: '/p?q=CANARY' }, '4111111111111111'],
    ])
    for (const each of ['Colour', 'green', 'any']) expect(all).toContain(`"${each}"`)
    expect(all).not.toMatch(/CANARY|jane@|4111/)
  })

  test('unmask never shows a password, a hidden input or a card field', () => {
    const all = shownOf('open', [
      'form',
      { 'data-lethe-unmask': '' },
      ['input', { type: 'password', value: 'CANARY' }],
      ['input', { type: 'hidden', value: 'CANARY' }],
      ['input', { autocomplete: 'shipping cc-number', value: 'CANARY' }],
    ])
    expect(all).not.toContain('CANARY')
  })

  test('mask wins over unmask, whichever lies within', () => {
    const all = shownOf(
      'open',
      ['div', { 'data-lethe-mask': '' }, ['p', { 'data-lethe-unmask': '' }, 'CANARY']],
      ['div', { 'data-lethe-unmask': '' }, ['p', { 'data-lethe-mask': '' }, 'CANARY']],
    )
    expect(all).not.toContain('CANARY')
  })

  test('unmask counts for nothing where the project is stricter than the page', () => {
    const masking = tightest('open', 'balanced')
    const { snapshot } = page(['input', { 'data-lethe-unmask': '', value: 'CANARY' }])
    expect(masking).toEqual({ preset: 'balanced', unmask: false })
    expect(shown('balanced', [snapshot], masking.unmask)).not.toContain('CANARY')
  })

  test('ignore leaves out that something was typed at all', () => {
    const { snapshot, idOf } = page(['div', { 'data-lethe-ignore': '' }, ['input', { x: '' }]])
    const mask = createMasker({ preset: 'open', unmask: true })
    mask(snapshot)
    expect(mask(input(idOf('x'), 'a'))).toBeUndefined()
  })
})

describe('open and strict', () => {
  test('open hides what is typed and nothing else', () => {
    const all = shownOf('open', [
      'form',
      {},
      ['input', { value: 'CANARY', placeholder: 'Name', 'data-a': 'b' }],
      ['a', { href: '/p?q=1#h' }, 'jane@example.com'],
    ])
    expect(all).not.toContain('CANARY')
    for (const each of ['Name', '/p?q=1#h', 'jane@example.com']) expect(all).toContain(`"${each}"`)
    expect(all).toContain('"data-a":"b"')
  })

  test('open hides what gives access also in addresses that nobody sees', () => {
    const token = `eyJhbGciOiJIUzI1NiJ9.${'x'.repeat(20)}`
    for (const name of ['action', 'formaction', 'ping', 'cite', 'longdesc']) {
      const all = shownOf('open', ['form', { [name]: `/reset/${token}/now` }])
      expect(all).toContain(`"${name}":"/reset/*/now"`)
    }
  })

  test('strict hides all text and media, and leaves the lines their length', () => {
    const all = shownOf(
      'strict',
      ['h1', {}, 'CANARY and me'],
      ['img', { src: '/CANARY.png', srcset: '/CANARY.png 2x' }],
      ['video', { src: '/CANARY.mp4', poster: '/CANARY.png' }, ['source', { src: '/CANARY.webm' }]],
      ['div', { style: 'background: url(/CANARY.png)' }],
      ['style', { _cssText: '.a::after{content:"CANARY"}.b{background:url(/CANARY.png)}' }],
    )
    expect(all).not.toContain('CANARY')
    expect(all).toContain('"****** *** **"')
  })

  test('a project can tighten the preset of the page and never loosen it', () => {
    expect(tightest('balanced', 'open').preset).toBe('balanced')
    expect(tightest('balanced', 'strict').preset).toBe('strict')
    expect(tightest('strict', 'balanced')).toEqual({ preset: 'strict', unmask: true })
  })
})

describe('events', () => {
  test('the address of the page is masked like every other', () => {
    expect(shown('balanced', [meta('https://a.example/p?token=CANARY#CANARY')])).toContain(
      'https://a.example/p?token=*#*',
    )
  })

  test('kinds of events it does not know are not let through', () => {
    const mask = createMasker({ preset: 'open', unmask: true })
    const unknown = [
      { type: 6, data: { plugin: 'x', payload: 'CANARY' } },
      { type: 5, data: { tag: 'of the page', payload: 'CANARY' } },
      { type: 3, data: { source: 9, id: 1, commands: ['CANARY'] } },
      { type: 3, data: { source: 11, payload: ['CANARY'] } },
      { type: 99, data: 'CANARY' },
    ]
    for (const event of unknown) {
      expect(mask({ ...event, timestamp: 1 } as eventWithTime)).toBeUndefined()
    }
  })

  test('what goes in is never changed', () => {
    const { snapshot } = page([
      'form',
      { 'data-a': 'b' },
      ['input', { value: 'a' }],
      'j@example.com',
    ])
    const before = structuredClone(snapshot)
    createMasker({ preset: 'strict', unmask: true })(snapshot)
    expect(snapshot).toEqual(before)
  })
})
