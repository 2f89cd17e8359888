import { expect, test } from 'vitest'
import { createFeed } from '../src/replay/feed.ts'

/** What is played of a page with this style sheet, recorded where the system asked for `media`. */
function played(media: object, css: string): string {
  const style = { type: 2, tagName: 'style', id: 3, attributes: { _cssText: css }, childNodes: [] }
  const html = { type: 2, tagName: 'html', id: 2, attributes: {}, childNodes: [style] }
  const node = { type: 0, id: 1, childNodes: [html] }
  const events = [
    { type: 4, data: { href: '/', width: 1, height: 1, media }, timestamp: 1 },
    { type: 2, data: { node, initialOffset: { left: 0, top: 0 } }, timestamp: 1 },
  ]
  const feed = createFeed()
  const shown = events.map((event) => feed.read(JSON.stringify(event)))
  expect(feed.outline.entries.map(({ what }) => what)).toEqual(['page'])
  return JSON.stringify(shown)
}

const holds = '@media (min-width: 0)'
const fails = '@media (max-width: 0)'

test.each([
  ['@media (prefers-color-scheme: dark)', holds, fails],
  ['@media ( prefers-color-scheme:light )', fails, holds],
  ['@media (prefers-reduced-motion)', holds, fails],
  ['@media (prefers-reduced-motion: no-preference)', fails, holds],
  ['@media (prefers-contrast: more)', holds, fails],
  ['@media (prefers-contrast)', holds, fails],
])('%s is as the visitor’s system had it', (query, forDark, forLight) => {
  const css = `${query}{a{color:red}}`
  const dark = { scheme: 'dark', motion: 'reduce', contrast: 'more' }
  expect(played(dark, css)).toContain(`${forDark}{a`)
  expect(played({ scheme: 'light' }, css)).toContain(`${forLight}{a`)
})

test('the scheme a page allows is the visitor’s', () => {
  const css = ':root{color-scheme: light dark}'
  expect(played({ scheme: 'dark' }, css)).toContain(':root{color-scheme: dark}')
  expect(played({ scheme: 'light' }, css)).toContain(':root{color-scheme: light}')
  expect(played({ scheme: 'dark', page: 'light dark' }, '')).toContain(
    '"style":"color-scheme:dark;',
  )
  expect(played({ scheme: 'dark', page: 'light' }, '')).not.toContain('color-scheme:')
  expect(played({ scheme: 'dark', page: 'dark;x:url(/y)' }, '')).not.toContain('/y')
})
