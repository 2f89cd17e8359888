import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { look, openWindow, shows } from './axe.ts'
import { el, page, send, type Timed, txt } from './forged.ts'
import { type Lethe, newWindow, test } from './lethe.ts'

const custom = (tag: string, payload: object) => ({ type: 5, data: { tag, payload } })
const click = (id: number) => ({ type: 3, data: { source: 2, type: 2, id, x: 40, y: 40 } })

/** Two tabs that somebody goes to and fro between, and what broke in them. */
function twoTabs(): Timed[][] {
  const tab = (name: string) => {
    const button = el('button', {}, txt('Pay'))
    return { button, events: page([], [el('h1', {}, txt(name)), button]) }
  }
  const [one, two] = [tab('The basket'), tab('The terms')]
  const nine = Array.from({ length: 9 }, (_, n): Timed => [2_000 + n * 90, click(one.button.id)])
  const failed = {
    method: 'POST',
    url: 'https://shop.example/api/pay',
    status: 502,
    milliseconds: 81,
  }
  return [
    [
      ...one.events.map((event, n): Timed => [n, event]),
      ...nine,
      [2_900, custom('lethe.click', { kind: 'rage', id: one.button.id, clicks: 9 })],
      [3_000, custom('lethe.request', failed)],
      [3_100, custom('lethe.error', { message: 'TypeError: total is undefined' })],
      [3_200, custom('lethe.vital', { name: 'LCP', value: 2_340.5 })],
      [3_300, custom('lethe.vital', { name: 'CLS', value: 0.31 })],
      [10_000, click(one.button.id)],
      [14_000, custom('lethe:paused', { reason: 'idle' })],
      [18_000, click(one.button.id)],
    ],
    [
      ...two.events.map((event, n): Timed => [5_000 + n, event]),
      [6_000, click(two.button.id)],
      [9_000, custom('lethe.error', { message: 'in the other tab' })],
      [20_000, click(two.button.id)],
    ],
  ]
}

const replayed = (owner: Page) =>
  owner
    .frameLocator('iframe[title="Replay of the session"]')
    .frameLocator('iframe[title="Recorded page"]')

const rowOf = (owner: Page, text: string | RegExp) =>
  owner.getByRole('region', { name: 'Events' }).getByRole('button', { name: text })

let sent: Promise<string> | undefined

/** Once for all the tests, which only add notes and links to it. */
async function sendTwoTabs(lethe: Lethe): Promise<string> {
  sent ??= send(lethe, twoTabs())
  return `/projects/1/sessions/${await sent}`
}

test('the tabs of a session are one time line, and the one that was used is seen', async ({
  lethe,
  owner,
}) => {
  await owner.goto(await sendTwoTabs(lethe))
  await owner.getByText('0:00 / 0:20').waitFor()
  await replayed(owner).getByRole('heading', { name: 'The basket' }).waitFor()
  await rowOf(owner, /Switched to Tab 2/)
    .first()
    .waitFor()
  await rowOf(owner, /in the other tab/).click()
  await replayed(owner).getByRole('heading', { name: 'The terms' }).waitFor()
  await rowOf(owner, '0:10 Clicked “Pay” Tab 1').click()
  await replayed(owner).getByRole('heading', { name: 'The basket' }).waitFor()
  // While it plays it goes on to the tab in which somebody went on.
  await owner.keyboard.press('>')
  await owner.getByRole('button', { name: 'Play', exact: true }).click()
  await replayed(owner).getByRole('heading', { name: 'The terms' }).waitFor()
  await owner.getByRole('button', { name: 'Watch again' }).waitFor()
  await owner.getByLabel('Browser tab').selectOption({ label: 'Tab 1 of 2' })
  await replayed(owner).getByRole('heading', { name: 'The basket' }).waitFor()
  expect(new URL(owner.url()).searchParams.get('tab')).toBe('t0')
  // What is not recorded of one tab was seen in the other.
  for (const kind of [/Errors 2/, /Network 1/, /Rage clicks 1/, /Tabs 3/]) {
    await owner.getByRole('button', { name: kind }).waitFor()
  }
})

test('a rule that a script put into a style sheet with text is there after each seek', async ({
  lethe,
  owner,
}) => {
  const style = el('style', {}, txt('h1 { color: blue }'))
  const heading = el('h1', {}, txt('Seen at first'))
  const rule = { rule: 'h1 { display: none }', index: 1 }
  const mutation = { source: 0, texts: [], attributes: [], removes: [] }
  const add = { parentId: heading.id, nextId: null, node: txt('!') }
  const [meta, snapshot] = page([style], [heading, el('h2', {}, txt('Always seen'))]) as [
    object,
    object,
  ]
  const sessionId = await send(lethe, [
    [
      [0, meta],
      [1, snapshot],
      [2_000, { type: 3, data: { source: 8, id: style.id, adds: [rule] } }],
      [2_500, { type: 3, data: { ...mutation, adds: [add] } }],
      [4_000, click(heading.id)],
    ],
  ])
  const first = replayed(owner).getByText('Seen at first')
  await owner.goto(`/projects/1/sessions/${sessionId}?t=3`)
  const slider = owner.getByRole('slider', { name: 'Time' })
  await replayed(owner).getByText('Always seen').waitFor()
  await first.waitFor({ state: 'hidden' })
  await slider.press('PageDown')
  await first.waitFor()
  await slider.press('PageUp')
  await first.waitFor({ state: 'hidden' })
})

test('a moment has a note, and a link that shows the recording to somebody without an account', async ({
  lethe,
  owner,
  browser,
}) => {
  await owner.goto(await sendTwoTabs(lethe))
  await rowOf(owner, /total is undefined/).click()
  await owner.getByText('Notes', { exact: true }).click()
  await owner.getByLabel('New note').fill('It breaks here')
  await owner.keyboard.press('Enter')
  await owner.getByText('It breaks here').waitFor()
  await rowOf(owner, /in the other tab/).click()
  await owner.getByRole('button', { name: '0:03', exact: true }).click()
  await owner.getByText('0:03 / 0:20').waitFor()

  await owner.getByRole('button', { name: 'Share' }).click()
  await owner.getByRole('button', { name: 'Create link' }).click()
  const link = await owner.getByRole('dialog').getByText('/shared#').textContent()
  const context = await newWindow(browser, lethe)
  const stranger = await context.newPage()
  await stranger.goto(link ?? '')
  await stranger.getByText('0:03 / 0:20').waitFor()
  await replayed(stranger).getByRole('heading', { name: 'The basket' }).waitFor()
  expect(await stranger.getByText('It breaks here').count()).toBe(0)

  await owner.getByRole('button', { name: 'Done' }).click()
  await owner.getByRole('button', { name: 'Share' }).click()
  await owner.getByRole('button', { name: 'Revoke' }).click()
  await owner.getByRole('button', { name: 'Revoke' }).waitFor({ state: 'detached' })
  await stranger.goto('about:blank')
  await stranger.goto(link ?? '')
  await stranger.getByText('This link doesn’t work').waitFor()
  await context.close()
})

test('anything is found by the keyboard alone', async ({ lethe, owner }) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'crm-4711',
    properties: { name: 'Ada Lovelace' },
  })
  const path = await sendTwoTabs(lethe)
  await owner.goto('/projects/1/deletions')
  await owner.getByRole('heading', { name: 'Deletions', exact: true }).waitFor()
  const find = async (text: string) => {
    const field = owner.getByRole('combobox', { name: 'Find' })
    await field.waitFor({ state: 'detached' })
    await owner.keyboard.press('Control+k')
    await field.fill(text)
  }
  await find('crm-4711')
  await owner.getByRole('option', { name: /Ada Lovelace/, selected: true }).waitFor()
  await owner.keyboard.press('Enter')
  await owner.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
  await find(path.split('/').at(-1) as string)
  await owner.getByRole('option', { name: /Anonymous/, selected: true }).waitFor()
  await owner.keyboard.press('Enter')
  await owner.waitForURL(`**${path}*`)
  await find('e')
  const options = owner.getByRole('listbox', { name: 'Results' }).getByRole('option')
  await options.filter({ hasText: 'shop.example' }).first().waitFor()
  await owner.keyboard.press('ArrowUp')
  await owner.keyboard.press('ArrowDown')
  expect(await options.first().getAttribute('aria-selected')).toBe('true')
  await owner.keyboard.press('Escape')
  await owner.getByRole('combobox', { name: 'Find' }).waitFor({ state: 'detached' })
})

test('axe finds nothing in the player, its dialogs, a shared recording, and what finds', async ({
  lethe,
  owner,
  browser,
}) => {
  const path = await sendTwoTabs(lethe)
  const sessionId = path.split('/').at(-1)
  await owner.goto(path)
  const link = await owner.evaluate(`(async () => {
    const at = (kind, body) => fetch('/dashboard/v1/projects/1/sessions/${sessionId}/' + kind, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    }).then((answer) => answer.json())
    await at('notes', { at: 3000, text: 'It breaks here' })
    return (await at('links', { at: 3000, days: 7 })).link
  })()`)
  const window = await openWindow(browser, lethe, owner)
  const dialog = (name: string) => async (page: Page) => {
    await shows('in the other tab')(page)
    await page.getByRole('button', { name }).click()
    await page.getByRole('dialog').waitFor()
  }
  const found = await look(window, [
    { name: 'player', path, ready: shows('in the other tab') },
    { name: 'share', path, ready: dialog('Share') },
    {
      name: 'find',
      path,
      ready: async (page) => {
        await shows('in the other tab')(page)
        await page.keyboard.press('Control+k')
        await page.getByRole('combobox', { name: 'Find' }).fill('shop')
        await page.getByRole('listbox', { name: 'Results' }).getByRole('option').first().waitFor()
      },
    },
    {
      name: 'shared',
      path: '/sign-in',
      ready: async (page) => {
        await page.goto(String(link))
        await shows('in the other tab')(page)
      },
    },
  ])
  expect(found).toEqual({})
  await window.context().close()
})
