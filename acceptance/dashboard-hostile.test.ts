import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { byDepth, isDeep } from '../packages/server/test/proof/deep.ts'
import { el, page, send, spaced, txt } from './forged.ts'
import { test } from './lethe.ts'

/*
 * Recordings that want more of a browser than it has, forged with the public key that stands in every
 * page. The viewer can go on using the dashboard while it plays, and leave it.
 */

const boxes = (count: number, attributes: object = {}) =>
  Array.from({ length: count }, () => el('i', attributes, el('b')))

const sheet = (css: string) => el('style', {}, txt(css))
const times = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => make(index)).join('')

/** Goes on for a while, so that whatever is costly is done again and again. */
function changes(id: number, count = 300): object[] {
  return Array.from({ length: count }, (_, index) => ({
    type: 3,
    data: {
      source: 0,
      adds: [],
      removes: [],
      texts: [],
      attributes: [{ id, attributes: { class: `x${index % 9}` } }],
    },
  }))
}

function hostile(): Record<string, () => object[]> {
  const clicks = (count: number) => (): object[] => {
    const buttons = Array.from({ length: 50 }, (_, index) => el('button', {}, txt(`No ${index}`)))
    return [
      ...page([], buttons),
      ...Array.from({ length: count }, (_, index) => ({
        type: 3,
        data: { source: 2, type: 2, id: buttons[(index * 7) % 50]?.id, x: 1, y: 1 },
      })),
    ]
  }
  return {
    '8,000 animations': () => {
      const css = '@keyframes a{to{filter:blur(9px);width:9px}}i{animation:a 1s infinite alternate}'
      return [...page([sheet(css)], boxes(8_000)), ...changes(1, 100)]
    },
    'a real session of 50,000 events': clicks(50_000),
    // The budget of the player leaves most of these out: `budget.test.ts`.
    ...(isDeep && {
      '20,000 rules that look at the whole page': () => {
        const rules = times(
          20_000,
          (index) => `i:has(b:nth-child(${index})):has(+ i > b) b{top:1px}`,
        )
        const box = el('div')
        return [...page([sheet(rules)], [box, ...boxes(2_000)]), ...changes(box.id)]
      },
      '300,000 elements at once': () => {
        const box = el('div')
        const adds = Array.from({ length: 300_000 }, () => ({
          parentId: box.id,
          nextId: null,
          node: el('i'),
        }))
        const parts = Array.from({ length: 10 }, (_, index) => ({
          type: 3,
          data: {
            source: 0,
            adds: adds.slice(index * 30_000, (index + 1) * 30_000),
            removes: [],
            texts: [],
            attributes: [],
          },
        }))
        return [...page([], [box]), ...parts, ...changes(box.id)]
      },
      '10,000 frames': () => {
        const box = el('div')
        return [...page([], [box, ...boxes(10_000).map(() => el('iframe'))]), ...changes(box.id)]
      },
      'a million clicks': clicks(1_000_000),
    }),
  }
}

interface Turns {
  /** How often a page got a turn, of one each 20 ms. */
  count: number
  /** How long it waited for one at the most, in milliseconds. */
  longest: number
}

const startCounting = (page: Page) =>
  page.evaluate(`
    window.turns = { count: 0, longest: 0, last: performance.now() }
    setInterval(() => {
      const { count, longest, last } = turns
      const now = performance.now()
      window.turns = { count: count + 1, longest: Math.max(longest, now - last - 20), last: now }
    }, 20)
    undefined`)

const turnsOf = (page: Page) => page.evaluate('window.turns') as Promise<Turns>

describe('a recording that wants more than a browser has leaves the dashboard usable', () => {
  test.for(Object.entries(hostile()))(
    '%s',
    // The machine is shared, and its own pauses come into the figures: a viewing is tried three times.
    { timeout: 300_000, retry: 2 },
    async ([name, make], { lethe, owner }) => {
      const sessionId = await send(lethe, [spaced(make(), 5)])
      // A page beside it that does nothing at all: what it waits is what this machine is busy with.
      const idle = await owner.context().newPage()
      await idle.goto('/projects/1/settings/system')
      await owner.bringToFront()
      await owner.goto(`/projects/1/sessions/${sessionId}`)
      await startCounting(owner)
      await startCounting(idle)
      await owner.getByRole('button', { name: 'Play', exact: true }).click()
      await owner.getByRole('searchbox', { name: 'Search events' }).waitFor()
      await new Promise((resolve) => setTimeout(resolve, byDepth(3_000, 6_000)))
      const [own, other] = await Promise.all([turnsOf(owner), turnsOf(idle)])
      await idle.close()
      // The page around the player responds, and another page is a click away.
      await owner.getByRole('searchbox', { name: 'Search events' }).fill('nothing is called this')
      await owner.getByText(/No events/).waitFor()
      const leftAt = performance.now()
      await owner.getByRole('link', { name: 'People' }).click()
      await owner.getByRole('heading', { name: 'People', exact: true }).waitFor()
      const left = performance.now() - leftAt
      const figures = [own.longest, other.longest, left].map((one) => `${Math.round(one)} ms`)
      console.log(`| ${[name, ...figures].join(' | ')} |`)
      // The page around the recording gets its turns, as a page does that does nothing. A deep run
      // has the machine to itself; beside other tests the bounds only tell a page that hangs.
      expect(own.count).toBeGreaterThan(other.count * byDepth(0.25, 0.5))
      expect(own.longest).toBeLessThan(byDepth(1_000, 200) + 2 * other.longest)
      expect(left).toBeLessThan(2_000 + 10 * other.longest)
    },
  )
})

test('a recording runs in its own process even without a second address', async ({
  lethe,
  browser,
}) => {
  const context = await browser.newContext()
  const page = await context.newPage()
  // A name of this machine that has no other, as an installation has.
  await page.goto(`${lethe.url.replace('127.0.0.1', 'shop.localhost')}/sign-in`)
  const isReached = await page.evaluate(`new Promise((resolve) => {
    const frame = document.createElement('iframe')
    frame.onload = () => resolve(frame.contentDocument !== null)
    frame.src = '/replay'
    document.body.append(frame)
  })`)
  expect(isReached).toBe(false)
  await context.close()
})
