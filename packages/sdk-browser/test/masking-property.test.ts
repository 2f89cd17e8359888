import type { attributes, eventWithTime, serializedNodeWithId } from '@rrweb/types'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byDepth } from '../../server/test/proof/deep.ts'
import { createMasker, type MaskEvent } from '../src/masking/masker.ts'
import { tightest } from '../src/masking/preset.ts'
import { maskEmails, maskPatterns } from '../src/masking/text.ts'
import { input, meta, mutation, page, type Sketch } from './events.ts'

/*
 * Canaries are planted in every place a preset promises to hide, on pages of any shape and in any
 * changes of them; none may be found in what comes out.
 */

const CANARY = /canary\d{6}|4000123\d{9}/

const digits = (length: number) =>
  fc
    .array(fc.integer({ min: 0, max: 9 }), { minLength: length, maxLength: length })
    .map((each) => each.join(''))
const token = digits(6).map((each) => `canary${each}`)
const address = fc
  .tuple(token, fc.constantFrom('example.com', 'mail.example.org', 'm\u00fcnchen.de'))
  .map((each) => each.join('@'))
const card = digits(9).chain((rest) =>
  fc.constantFrom('', ' ', '-').map((gap) => `4000123${rest}`.replace(/(.{4})(?=.)/g, `$1${gap}`)),
)
const words = fc.constantFrom('', 'Hello ', 'from: ', '\n  ', '(see ', '3 x ')
/** Text that is shown as it is, but for what looks like an address or a card in it. */
const shownText = fc.tuple(words, fc.oneof(address, card), words).map((each) => each.join(''))
const hiddenText = fc
  .tuple(words, fc.oneof(token, address, card), words)
  .map((each) => each.join(''))

const queryUrl = fc
  .tuple(
    fc.constantFrom(
      '/p',
      'https://a.example/p',
      '//a.example',
      '',
      'https://canary000001@a.example/',
    ),
    fc.constantFrom('?', '?a=', '?a=1&b[]=', '#', '?a#/'),
    token,
  )
  .map((each) => each.join(''))
const otherUrl = fc
  .tuple(
    fc.constantFrom('mailto:', 'tel:', 'javascript:go ', 'data:text/html,', 'sms:'),
    hiddenText,
  )
  .map((each) => each.join(''))

const attribute: fc.Arbitrary<attributes> = fc
  .oneof(
    fc.tuple(
      fc.constantFrom(
        ...[
          'value',
          'placeholder',
          'title',
          'alt',
          'label',
          'aria-label',
          'aria-description',
          'aria-valuetext',
        ],
        ...[
          'data-user',
          'data-x',
          'x-data',
          'ng-init',
          'content',
          'onclick',
          'onload',
          'srcdoc',
          'action',
        ],
        ...[
          'formaction',
          'summary',
          'download',
          'cite',
          'ping',
          'list',
          'accept',
          'unheard-of',
          'rr_dataURL',
        ],
      ),
      hiddenText,
    ),
    fc.tuple(
      fc.constantFrom('href', 'src', 'poster', 'xlink:href', 'background', 'rr_src'),
      fc.oneof(queryUrl, otherUrl),
    ),
    fc.tuple(
      fc.constantFrom('srcset', 'imagesrcset'),
      queryUrl.map((url) => `/a.png 1x, ${url} 2x`),
    ),
    fc.tuple(
      fc.constantFrom('style', '_cssText'),
      queryUrl
        // A bare hash in a style names a part of an SVG on the page: it is kept.
        .filter((url) => url[0] !== '#')
        .map((url) => `background: url("${url}")`),
    ),
    fc.tuple(fc.constantFrom('id', 'class', 'name', 'role'), address),
  )
  .map(([name, value]) => ({ [name]: value }))

/** What makes everything inside an element hidden, in the preset balanced. */
const HIDING: [tag: string, attributes: attributes][] = [
  ['div', { contenteditable: '' }],
  ['p', { contenteditable: 'plaintext-only' }],
  ['div', { role: 'textbox' }],
  ['section', { 'data-lethe-mask': '' }],
  ['section', { 'data-lethe-block': '' }],
  ['select', {}],
  ['option', {}],
  ['textarea', {}],
  ['datalist', {}],
  ['noscript', {}],
]
const PLAIN: [tag: string, attributes: attributes][] = [
  ['div', {}],
  ['span', {}],
  ['a', {}],
  ['img', {}],
  ['input', {}],
  ['input', { type: 'hidden' }],
  ['input', { type: 'checkbox' }],
  ['input', { type: 'password' }],
  ['input', { type: 'range' }],
  ['meter', {}],
  ['button', {}],
  ['video', {}],
  ['my-card', {}],
  ['li', {}],
  ['form', {}],
]

/** What a page would have shown, and may not where the project is stricter than the page. */
const UNMASKING: [tag: string, attributes: attributes] = ['div', { 'data-lethe-unmask': '' }]

function sketches(
  isHidden: boolean,
  isForm: boolean,
  depth: number,
  unmasking: (typeof UNMASKING)[] = [],
): fc.Arbitrary<Sketch> {
  const text: fc.Arbitrary<Sketch> = isHidden ? hiddenText : shownText
  if (depth === 0) return text
  const label: [string, attributes] = ['label', {}]
  return fc
    .tuple(
      fc.constantFrom(...HIDING, ...PLAIN, ...unmasking, label),
      fc.array(attribute, { maxLength: 4 }),
    )
    .chain(([[tag, own], more]) => {
      const attributes = Object.assign({}, ...more, own)
      const form = isForm || tag === 'form'
      const hides = HIDING.some((each) => each[1] === own) || (form && tag === 'label')
      const children = fc.array(
        fc.oneof(text, sketches(isHidden || hides, form, depth - 1, unmasking)),
        {
          maxLength: 4,
        },
      )
      return children.map((each): Sketch => [tag, attributes, ...each])
    })
}

/** What happens to a page after its snapshot: each change falls on a node by its number. */
const changes = fc.array(
  fc.record({
    what: fc.constantFrom('text', 'attribute', 'input', 'add', 'move'),
    at: fc.nat(10_000),
    attribute,
    hidden: hiddenText,
    shown: shownText,
  }),
  { maxLength: 12 },
)

type Changes = typeof changes extends fc.Arbitrary<infer T> ? T : never

interface Place {
  node: serializedNodeWithId
  isHidden: boolean
}

/** Every node with whether what is inside it is hidden, told by the sketch's own rules. */
function placesOf(node: serializedNodeWithId, isHidden = false, isForm = false): Place[] {
  if (node.type !== 0 && node.type !== 2) return [{ node, isHidden }]
  const tag = node.type === 2 ? node.tagName : ''
  const attributes: attributes = node.type === 2 ? node.attributes : {}
  const form = isForm || tag === 'form'
  const hides = HIDING.some(
    ([each, own]) =>
      (Object.keys(own).length > 0 || each === tag) &&
      Object.entries(own).every(([name, value]) => attributes[name] === value),
  )
  const inside = isHidden || hides || (form && tag === 'label')
  return [
    { node, isHidden: inside },
    ...node.childNodes.flatMap((each) => placesOf(each, inside, form)),
  ]
}

function eventsOf(body: Sketch[], list: Changes, everyTextHidden: boolean) {
  const { snapshot, nodeOf } = page(...body)
  const root = (snapshot as Extract<eventWithTime, { type: 2 }>).data.node
  const places = placesOf(root)
  const events = [meta('https://a.example/?t=canary000002#canary000003'), snapshot]
  for (const { what, at, attribute: changed, hidden, shown } of list) {
    const elements = places.filter(({ node }) => node.type === 2)
    const texts = places.filter(({ node }) => node.type === 3)
    const element = elements[at % elements.length] as Place
    const text = texts[at % Math.max(texts.length, 1)]
    const wordsFor = (place: Place) => (place.isHidden || everyTextHidden ? hidden : shown)
    if (what === 'text' && text) {
      events.push(mutation({ texts: [{ id: text.node.id, value: wordsFor(text) }] }))
    } else if (what === 'attribute') {
      events.push(mutation({ attributes: [{ id: element.node.id, attributes: changed as never }] }))
    } else if (what === 'input') {
      events.push(input(element.node.id, hidden, true))
    } else if (what === 'add') {
      const node = nodeOf(['span', changed, wordsFor(element)])
      events.push(mutation({ adds: [{ parentId: element.node.id, node }] }))
      if (node.type === 2) places.push(...placesOf(node, element.isHidden))
    }
  }
  return events
}

describe.each([
  ['balanced', false],
  ['strict', true],
] as const)('%s', (preset, everyTextHidden) => {
  test('no canary survives, on any page and through any change of it', () => {
    let canaries = 0
    fc.assert(
      fc.property(
        fc.array(sketches(everyTextHidden, false, 4), { minLength: 1, maxLength: 5 }),
        changes,
        (body, list) => {
          const events = eventsOf(body, list, everyTextHidden)
          canaries += events.filter((event) => CANARY.test(JSON.stringify(event))).length
          const mask = createMasker({ preset, unmask: true })
          for (const event of events) {
            const masked = JSON.stringify(mask(event)) ?? ''
            expect(CANARY.exec(masked.replace(/(?<=\d)[ \u00a0-](?=\d)/g, ''))?.[0]).toBeUndefined()
          }
        },
      ),
      { numRuns: byDepth(500, 1500) },
    )
    // Otherwise the property would hold for want of anything to hide.
    expect(canaries).toBeGreaterThan(byDepth(1000, 3000))
  })

  test('a snapshot masked in slices is the one masked at once, and so is what follows', () => {
    let turns = 0
    fc.assert(
      fc.property(
        fc.array(sketches(everyTextHidden, false, 4), { minLength: 4, maxLength: 12 }),
        changes,
        (body, list) => {
          const [address, snapshot, ...rest] = eventsOf(body, list, everyTextHidden)
          const [whole, sliced] = [0, 0].map(() => createMasker({ preset, unmask: true })) as [
            MaskEvent,
            MaskEvent,
          ]
          expect(sliced(address as eventWithTime)).toEqual(whole(address as eventWithTime))
          const next = sliced.slices(snapshot as Extract<eventWithTime, { type: 2 }>)
          let masked = next(0)
          for (; !masked; turns++) masked = next(0)
          expect(masked).toEqual(whole(snapshot as eventWithTime))
          for (const event of rest) expect(sliced(event)).toEqual(whole(event))
        },
      ),
      { numRuns: byDepth(100, 300) },
    )
    // Otherwise every page would have been done in one slice.
    expect(turns).toBeGreaterThan(byDepth(66, 200))
  })

  test('what is masked keeps its shape: the same nodes, in the same places', () => {
    fc.assert(
      fc.property(fc.array(sketches(everyTextHidden, false, 3), { maxLength: 4 }), (body) => {
        const shape = (node: serializedNodeWithId): unknown =>
          'childNodes' in node &&
          !('data-lethe-block' in ('attributes' in node ? node.attributes : {}))
            ? [node.id, node.childNodes.map(shape)]
            : [node.id]
        const { snapshot } = page(...body)
        const masked = createMasker({ preset, unmask: true })(snapshot)
        const rootOf = (event: unknown) =>
          (event as { data: { node: serializedNodeWithId } }).data.node
        const bare = (text: string) => text.replace(/,\[\]/g, '')
        expect(bare(JSON.stringify(shape(rootOf(masked))))).toBe(
          bare(JSON.stringify(shape(rootOf(snapshot)))),
        )
      }),
    )
  })
})

describe.each([
  ['open', 'balanced'],
  ['open', 'strict'],
  ['balanced', 'strict'],
  ['balanced', 'open'],
  ['strict', 'open'],
  ['strict', 'balanced'],
] as const)('a page that asks for %s in a project of %s', (ofPage, ofProject) => {
  test('shows no canary of either, though its elements ask to be shown', () => {
    const masking = tightest(ofPage, ofProject)
    const everyTextHidden = [ofPage, ofProject].includes('strict')
    const unmasking = masking.unmask ? [] : [UNMASKING]
    let canaries = 0
    const page = sketches(everyTextHidden, false, 4, unmasking)
    fc.assert(
      fc.property(fc.array(page, { minLength: 1, maxLength: 5 }), changes, (body, list) => {
        const events = eventsOf(body, list, everyTextHidden)
        canaries += events.filter((event) => CANARY.test(JSON.stringify(event))).length
        const mask = createMasker(masking)
        for (const event of events) {
          const masked = JSON.stringify(mask(event)) ?? ''
          expect(CANARY.exec(masked.replace(/(?<=\d)[ \u00a0-](?=\d)/g, ''))?.[0]).toBeUndefined()
        }
      }),
      { numRuns: byDepth(100, 300) },
    )
    expect(canaries).toBeGreaterThan(byDepth(200, 600))
  })
})

describe('open', () => {
  test('shows nothing that was typed, in whatever field it stands or is changed', () => {
    const typed = hiddenText.filter((text) => CANARY.test(text))
    const types = [
      '',
      'text',
      'email',
      'password',
      'hidden',
      'search',
      'tel',
      'number',
      'unheard-of',
    ]
    const field = fc
      .tuple(fc.constantFrom(...types), typed)
      .map(([type, value]): Sketch => ['input', { ...(type && { type }), value }])
    const area = typed.map((value): Sketch => ['textarea', { value }, value])
    const fields = fc.array(fc.oneof(field, area), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(fields, fc.array(typed, { minLength: 6, maxLength: 6 }), (body, later) => {
        const { snapshot } = page(['form', {}, ...body])
        const events = [snapshot]
        const root = (snapshot as Extract<eventWithTime, { type: 2 }>).data.node
        for (const [at, { node }] of placesOf(root).entries()) {
          if (node.type !== 2 || !/input|textarea/.test(node.tagName)) continue
          const text = later[at % later.length] as string
          events.push(input(node.id, text))
          events.push(mutation({ attributes: [{ id: node.id, attributes: { value: text } }] }))
          for (const child of node.childNodes) {
            events.push(mutation({ texts: [{ id: child.id, value: text }] }))
          }
        }
        const mask = createMasker({ preset: 'open', unmask: true })
        for (const event of events) expect(JSON.stringify(mask(event))).not.toMatch(CANARY)
      }),
      { numRuns: byDepth(200, 500) },
    )
  })
})

describe('patterns', () => {
  test('an address is found in any text around it', () => {
    const around = fc.string({ unit: fc.constantFrom(' ', '\n', '(', '<', '"', ',', ';') })
    fc.assert(
      fc.property(around, address, around, (before, secret, after) => {
        const masked = maskEmails(before + secret + after)
        expect(masked).not.toContain('canary')
        expect(masked.startsWith(before)).toBe(true)
        expect(masked.endsWith(after)).toBe(true)
        expect(masked.length).toBe((before + secret + after).length)
      }),
    )
  })

  test('text without an @ or a long number stays as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        fc.pre(!/@|%40|\d{4}/.test(text))
        expect(maskPatterns(text)).toBe(text)
      }),
    )
  })

  test('no text makes it slow: a megabyte of the worst kinds is done', () => {
    // Quadratic time would take hours here and end in the time-out.
    for (const unit of ['a', '1', '@', 'a@', 'a%40', '1 ', 'a@a.', '.', 'a@b.c ']) {
      const text = unit.repeat(1_000_000 / unit.length)
      expect(maskPatterns(text)).toHaveLength(text.length)
    }
  })
})
