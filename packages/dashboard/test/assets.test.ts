import { expect, test } from 'vitest'
import { createFeed } from '../src/replay/feed.ts'
import { harmlessCss, propertyOf } from '../src/replay/filter-css.ts'

const png = 'data:image/png;base64,iVBORw0KGgo='
const font = 'data:font/woff2;base64,d09GMgAB'

function played(...payloads: object[]) {
  const element = (id: number, tagName: string, childNodes: object[] = []) => ({
    type: 2,
    tagName,
    id,
    attributes: tagName === 'img' ? { src: 'https://shop.example/a.png' } : {},
    childNodes,
  })
  const html = element(2, 'html', [element(3, 'head'), element(4, 'body', [element(5, 'img')])])
  const events = [
    { type: 4, data: { href: '/', width: 1, height: 1 }, timestamp: 1 },
    {
      type: 2,
      data: { node: { type: 0, id: 1, childNodes: [html] }, initialOffset: { left: 0, top: 0 } },
      timestamp: 1,
    },
    ...payloads.map((payload, at) => ({
      type: 5,
      data: { tag: 'lethe:asset', payload },
      timestamp: 2 + at,
    })),
  ]
  const feed = createFeed()
  const shown = events.map((event) => feed.read(JSON.stringify(event)))
  expect(feed.outline.entries.map(({ what }) => what)).toEqual(['page'])
  return JSON.stringify(shown.slice(2).filter((event) => event !== undefined))
}

test('an image of a recording is shown where it stood, without its server', () => {
  const shown = played({ key: 'a', data: png }, { key: 'a', id: 5 }, { key: 'a', id: 5 })
  expect(shown.match(/"src":"data:image\/png/g)).toHaveLength(2)
})

test('a font of a recording is a rule of the page', () => {
  const css = 'font-family:Shop;unicode-range:U+0-FF'
  const shown = played({ key: 'f', data: font }, { key: 'f', css, parent: 3 })
  expect(shown).toContain('@font-face{font-family:Shop;unicode-range:U+0-FF;src:url(')
  expect(shown).toContain(font)
})

test('an image that a style sheet draws is found by its address, wherever that stands', () => {
  const url = 'https://shop.example/b.png?*'
  const shown = played({ key: 'a', data: png }, { key: 'a', urls: [url, '/b.png?*'], parent: 3 })
  const name = propertyOf(url)
  expect(shown).toContain(`:root{${name}:url(\\"${png}\\");${propertyOf('/b.png?*')}:url(`)
  for (const written of [`url(${url})`, `url( "${url}" )`, `image-set(url('${url}') 1x)`]) {
    expect(harmlessCss(`a{background:${written}}`)).toContain(`var(${name},url("data:,"))`)
  }
  // Not where a property has no value.
  expect(harmlessCss(`@font-face{src:url(${url})}a{b:url(${url})}`)).toBe(
    `@font-face{src:url("data:,")}a{b:var(${name},url("data:,"))}`,
  )
  // What belongs to more than one image is taken back.
  expect(played({ key: '', urls: [url], parent: 3 })).toContain(`:root{${name}:url(\\"data:,\\")}`)
})

test('nothing else comes of an asset: no address, no script, no rule that loads', () => {
  const evil = [
    { key: 'a', data: 'https://evil.example/a.png' },
    { key: 'b', data: 'data:text/html;base64,PGI+' },
    { key: 'c', data: 'data:image/svg+xml,<svg onload="x()">' },
    { key: 'd', data: 'data:image/png;base64,aa");background:url("https://evil.example' },
  ]
  for (const payload of evil) {
    const uses = [{ id: 5 }, { css: 'x:y', parent: 3 }, { urls: ['/x.png'], parent: 3 }]
    expect(played(payload, ...uses.map((use) => ({ ...payload, ...use })))).toBe('[]')
  }
  const css =
    'src:url(https://evil.example/f)}@import "https://evil.example";a{b:url(//evil.example)'
  expect(played({ key: 'f', data: font }, { key: 'f', css, parent: 3 })).not.toContain('evil')
})
