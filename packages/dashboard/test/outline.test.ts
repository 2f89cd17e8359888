import { expect, test } from 'vitest'
import { createFeed } from '../src/replay/feed.ts'
import type { OutlineEntry } from '../src/replay/messages.ts'
import { createTimeline } from '../src/replay/timeline.ts'
import { momentOf } from '../src/sessions/query.ts'

const snapshot = {
  type: 2,
  data: {
    node: {
      type: 0,
      id: 1,
      childNodes: [
        {
          type: 2,
          id: 2,
          tagName: 'html',
          attributes: {},
          childNodes: [
            { type: 2, id: 3, tagName: 'button', attributes: {}, childNodes: [text(4, 'Pay')] },
            { type: 2, id: 5, tagName: 'button', attributes: {}, childNodes: [text(6, 'Back')] },
          ],
        },
      ],
    },
    initialOffset: { top: 0, left: 0 },
  },
}

function text(id: number, textContent: string) {
  return { type: 3, id, textContent }
}

const click = (id: number) => ({ type: 3, data: { source: 2, type: 2, id, x: 1, y: 1 } })
const custom = (tag: string, payload: object) => ({ type: 5, data: { tag, payload } })

type Events = (readonly [at: number, event: object])[]

/** What the page knows of a recording in the end, taken part by part as it is told. */
function listed(...tabs: Events[]) {
  const timeline = createTimeline()
  const entries: OutlineEntry[] = []
  const take = () => {
    do {
      const news = timeline.news(true)
      entries.splice(news.entries.from, entries.length, ...news.entries.rows)
    } while (timeline.hasMore())
  }
  const played = tabs.flatMap((events) => {
    const feed = createFeed()
    timeline.add(feed.outline)
    return events.map(([at, event], index) => {
      const result = feed.read(JSON.stringify({ ...event, timestamp: at }))
      if (index % 3 === 1) take()
      if (index === events.length - 1) feed.mark()
      return result
    })
  })
  take()
  return { entries, spans: timeline.spans(), played, timeline }
}

test('equal events in a row are one line with a count, and none is left out', () => {
  const nine = Array.from({ length: 9 }, (_, index) => [1_000 + index, click(3)] as const)
  const { entries } = listed([[1_000, snapshot], ...nine, [2_000, click(5)], [2_100, click(3)]])
  expect(entries.map(({ text, count }) => [text, count])).toEqual([
    ['“Pay”', 9],
    ['“Back”', 1],
    ['“Pay”', 1],
  ])
  const many = Array.from({ length: 20_000 }, (_, index) => {
    return [1_001 + index, click(index % 2 ? 3 : 5)] as [number, object]
  })
  expect(listed([[1_000, snapshot], ...many]).entries).toHaveLength(20_000)
})

test('what went wrong is told: errors, the console, requests, rage and dead clicks', () => {
  const { entries } = listed([
    [1_000, snapshot],
    [1_001, custom('lethe.error', { message: 'TypeError: x is undefined' })],
    [1_002, custom('lethe.console', { level: 'warn', text: 'deprecated' })],
    [
      1_003,
      custom('lethe.request', {
        method: 'POST',
        url: 'https://shop.example/pay',
        status: 503,
        milliseconds: 41.6,
      }),
    ],
    [1_004, custom('lethe.request', { method: 'GET', url: '/ok', status: 200, milliseconds: 5 })],
    [1_005, custom('lethe.request', { method: 'GET', url: '/away', status: 0, milliseconds: 5 })],
    [1_006, custom('lethe.click', { kind: 'rage', id: 3 })],
    [1_007, custom('lethe.click', { kind: 'dead', id: 5 })],
  ])
  expect(entries.map(({ what, text, isWrong = false }) => `${what} ${text} ${isWrong}`)).toEqual([
    'error TypeError: x is undefined true',
    'console deprecated false',
    'request POST /pay 503 true',
    'request GET /ok 200 false',
    'request GET /away failed true',
    'rage “Pay” true',
    'dead “Back” true',
  ])
  expect(entries[2]?.note).toBe('42 ms')
})

test('a time that was not recorded is a gap, and one in which nobody did anything is idle', () => {
  const { spans } = listed([
    [0, snapshot],
    [1_000, click(3)],
    [2_000, custom('lethe:paused', { reason: 'idle' })],
    [62_000, click(3)],
    [80_000, click(3)],
  ])
  expect(spans).toEqual([
    { kind: 'gap', from: 2_000, to: 62_000 },
    { kind: 'idle', from: 62_000, to: 80_000 },
  ])
})

test('a clock that is set back ends no recording, and changes no order', () => {
  const { played } = listed([
    [3_600_000, snapshot],
    [3_601_000, click(3)],
    [1_000, click(5)],
    [3_000, click(3)],
    [2_990, click(5)],
  ])
  expect(played.map((event) => event?.timestamp)).toEqual([
    3_600_000, 3_601_000, 3_601_000, 3_603_000, 3_603_000,
  ])
})

test.each([
  ['90', 90_000],
  ['1:30', 90_000],
  ['0:01:30', 90_000],
  ['1.5', 1_500],
  ['', 0],
  ['soon', 0],
  ['-5', 0],
])('the moment %s of an address is %d milliseconds', (text, milliseconds) => {
  expect(momentOf(text)).toBe(milliseconds)
})

test('web vitals are listed with what their figures mean', () => {
  const vital = (name: unknown, value: unknown) => custom('lethe.vital', { name, value })
  const { entries } = listed([
    [1, vital('LCP', 2_340.5)],
    [2, vital('CLS', 0.31)],
    [3, vital('INP', 300)],
    [4, vital('constructor', 1)],
    [5, vital('LCP', 'quick')],
  ])
  expect(entries.map(({ what, text, note, isWrong }) => [what, text, note, isWrong])).toEqual([
    ['vital', 'LCP 2341 ms', 'good', false],
    ['vital', 'CLS 0.31', 'poor', true],
    ['vital', 'INP 300 ms', 'needs improvement', false],
  ])
})

const move = { type: 3, data: { source: 1, positions: [{ x: 1, y: 1, id: 3, timeOffset: 0 }] } }

test('tabs stand on one time line, and the one that was used is known at each moment', () => {
  const first: Events = [
    [10_000, snapshot],
    [11_000, click(3)],
    [12_000, move],
    // A page that changes by itself is not one that somebody is at.
    [21_000, custom('lethe.error', { message: 'late' })],
    [40_000, click(5)],
  ]
  const second: Events = [
    [20_000, snapshot],
    [20_500, click(5)],
    [33_000, move],
  ]
  for (const tabs of [
    [first, second],
    [second, first],
  ]) {
    const { entries, timeline, spans } = listed(...tabs)
    const [one, other] = tabs[0] === first ? [0, 1] : [1, 0]
    expect(entries.filter(({ what }) => what !== 'tab')).toMatchObject([
      { at: 1_000, text: '“Pay”', tab: one },
      { at: 10_500, text: '“Back”', tab: other },
      { at: 11_000, text: 'late', tab: one },
      { at: 30_000, text: '“Back”', tab: one },
    ])
    expect(entries.filter(({ what }) => what === 'tab').map(({ at, tab }) => [at, tab])).toEqual([
      [10_000, other],
      [30_000, one],
    ])
    expect([0, 9_999, 10_000, 29_000, 30_000].map((at) => timeline.tabAt(at))).toEqual([
      one,
      one,
      other,
      other,
      one,
    ])
    expect(timeline.news(true).outline.duration).toBe(30_000)
    // Only where nothing was done in any of them.
    expect(spans.map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ['idle', 2_000, 10_000],
      ['idle', 10_500, 23_000],
      ['idle', 23_000, 30_000],
    ])
  }
})

test('a tab whose clock is years away is taken to have begun with the first', () => {
  const { entries } = listed(
    [
      [1e12, snapshot],
      [1e12 + 500, click(3)],
    ],
    [
      [5, snapshot],
      [405, click(5)],
    ],
  )
  expect(entries.filter(({ what }) => what === 'click').map(({ at }) => at)).toEqual([400, 500])
})
