import { EventType, IncrementalSource } from '@rrweb/types'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createFilter } from '../src/replay/filter.ts'
import { harmlessCss } from '../src/replay/filter-css.ts'
import { hostileRecordings } from './hostile.ts'

const filterEvents = (events: Iterable<unknown>) => {
  const filter = createFilter()
  return [...events].map((event) => filter(event)).filter((event) => event !== undefined)
}

const trap = 'http://trap.example'

test('the corpus has sixty forged recordings and more', () => {
  const names = hostileRecordings(trap).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThanOrEqual(60)
})

test.each(hostileRecordings(trap))(
  'nothing of “$name” is left that loads or runs',
  ({ events }) => {
    const kept = filterEvents(events)
    const markup = JSON.stringify(kept, (key, value) =>
      // What stands on the page as text is shown as text.
      key === 'textContent' && typeof value === 'string' && !value.includes('{') ? '' : value,
    )
    // The addresses of an SVG picture within an address are fetched by nobody: pictures load nothing.
    const outside = markup.replaceAll(/data:image\/svg\+xml[^"]*"/g, '"')
    expect(outside).not.toContain(trap)
    expect(outside).not.toMatch(/javascript:|srcdoc|http-equiv|"on[a-z]+":/i)
    expect(outside).not.toMatch(/"tagName":"(?:script|base|meta|object|embed|frame|portal)"/i)
  },
)

test('a page that means no harm keeps its look', () => {
  const page = {
    type: EventType.FullSnapshot,
    timestamp: 1,
    data: {
      initialOffset: { top: 5, left: 0 },
      node: {
        type: 0,
        id: 1,
        childNodes: [
          {
            type: 2,
            id: 2,
            tagName: 'html',
            attributes: { lang: 'en', class: 'js' },
            childNodes: [
              {
                type: 2,
                id: 3,
                tagName: 'style',
                attributes: {},
                childNodes: [
                  {
                    type: 3,
                    id: 4,
                    isStyle: true,
                    textContent: 'a:hover{color:red}/* rr_split */',
                  },
                ],
              },
              {
                type: 2,
                id: 5,
                tagName: 'a',
                attributes: { href: 'https://shop.example/', 'data-x': '1', style: 'color: red' },
                childNodes: [{ type: 3, id: 6, textContent: 'url(http://a text)' }],
              },
              {
                type: 2,
                id: 7,
                tagName: 'my-button',
                attributes: { class: 'b' },
                childNodes: [],
                isCustom: true,
              },
            ],
          },
        ],
      },
    },
  }
  const [kept] = filterEvents([page])
  expect(kept?.data).toMatchObject({
    initialOffset: { top: 5, left: 0 },
    node: {
      childNodes: [
        {
          attributes: { lang: 'en', class: 'js' },
          childNodes: [
            { childNodes: [{ textContent: 'a:hover{color:red}/* rr_split */' }] },
            {
              attributes: { href: '#', 'data-x': '1', style: 'color: red' },
              childNodes: [{ textContent: 'url(http://a text)' }],
            },
            { tagName: 'my-button', attributes: { class: 'b' } },
          ],
        },
      ],
    },
  })
})

test('what a removed element stood for keeps its place, so that siblings find theirs', () => {
  const script = { type: 2, id: 5, tagName: 'script', attributes: {}, childNodes: [] }
  const add = {
    type: EventType.IncrementalSnapshot,
    timestamp: 1,
    data: {
      source: IncrementalSource.Mutation,
      texts: [],
      attributes: [],
      removes: [],
      adds: [{ parentId: 2, nextId: null, node: script }],
    },
  }
  const [kept] = filterEvents([add])
  expect(kept?.data).toMatchObject({ adds: [{ node: { id: 5, tagName: 'template' } }] })
})

test('any JSON at all is taken without a throw, and gives only events the player can take', () => {
  const event = fc.record({
    type: fc.oneof(fc.integer({ min: 0, max: 6 }), fc.jsonValue()),
    timestamp: fc.oneof(fc.integer(), fc.jsonValue()),
    data: fc.oneof(
      fc.jsonValue(),
      fc.record({
        source: fc.integer({ min: 0, max: 16 }),
        id: fc.oneof(fc.nat(9), fc.jsonValue()),
        adds: fc.jsonValue(),
        attributes: fc.array(fc.record({ id: fc.nat(9), attributes: fc.jsonValue() })),
        positions: fc.jsonValue(),
        styles: fc.jsonValue(),
      }),
    ),
  })
  fc.assert(
    fc.property(fc.array(event), (events) => {
      for (const kept of filterEvents(events)) {
        expect(Number.isFinite(kept.timestamp)).toBe(true)
        expect(typeof kept.data).toBe('object')
      }
    }),
  )
})

test('CSS never keeps an address elsewhere, however it is written', () => {
  const piece = fc.constantFrom(
    'url(',
    'u\\72l(',
    'URL(',
    '"',
    "'",
    ')',
    '(',
    '{',
    '}',
    ';',
    '\\',
    '\n',
    '/*',
    '*/',
    ' ',
    '@import ',
    '@\\69mport ',
    'image-set(',
    'a',
    ':',
    'http://trap.example/x',
    '//trap.example',
    '\f',
    '\0',
    'url("',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const css = harmlessCss(pieces.join(''))
      // Read by itself again nothing is found that could be taken out any more.
      expect(harmlessCss(css)).toBe(css)
    }),
    { numRuns: 3_000 },
  )
})

test('CSS that loads nothing is not touched', () => {
  const css =
    '.a>b::after{content:"url(x)";background:url("data:image/png;base64,AAAA");mask:url("#m")}'
  expect(harmlessCss(css)).toBe(css)
})
