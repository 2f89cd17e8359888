import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { byDepth } from '../packages/server/test/proof/deep.ts'
import { type Lethe, test } from './lethe.ts'

const count = byDepth(400, 2_000)

const nameOf = (number: number) => `Person ${String(number).padStart(4, '0')}`

/** Among the newest, which are at the top of the list. */
const many = nameOf(count - 2)

/** Every page of them open. */
const address = `/projects/1/persons?pages=${count / 50}`

test('of very many persons those far from the window are in the page, and not drawn', async ({
  lethe,
  owner,
}) => {
  await createPersons(lethe)
  await open(owner)
  const drawn = () => owner.evaluate(`${rows}.filter(${isDrawn}).length`)
  await expect.poll(drawn).toBeGreaterThan(10)
  expect(await drawn()).toBeLessThan(count / 4)
  expect(await owner.evaluate(`${isDrawn}(${rows}.at(-1))`)).toBe(false)
  // Screen readers get each row's position and the number of rows, whichever are drawn.
  expect(await owner.getByRole('table').getAttribute('aria-rowcount')).toBe(String(count + 1))
  expect(
    await owner.evaluate(`${rows}.every((row, at) => row.ariaRowIndex === String(at + 2))`),
  ).toBe(true)
  // The browser's own search finds what is not drawn.
  expect(await owner.evaluate(`find('Person 0003')`)).toBe(true)
  const found = `${rows}.find((row) => row.textContent.includes('Person 0003'))`
  await expect.poll(() => owner.evaluate(`${isDrawn}(${found})`)).toBe(true)
})

test('columns stay aligned with their heads, however far one scrolls', async ({ owner }) => {
  await open(owner)
  const edges = (row: string) =>
    owner.evaluate(
      `Array.from(${row}.cells, (cell) => Math.round(cell.getBoundingClientRect().left))`,
    )
  const ofHead = await edges(`document.querySelector('thead tr')`)
  for (const place of [0, count / 2 - 1, -1]) {
    await owner.evaluate(`${rows}.at(${place}).scrollIntoView({ block: 'center' })`)
    expect(await edges(`${rows}.at(${place})`)).toEqual(ofHead)
  }
  const head = `document.querySelector('thead').getBoundingClientRect().top`
  expect(Math.round((await owner.evaluate(head)) as number)).toBe(0)
})

test('the selection and the focus survive scrolling to the other end', async ({ owner }) => {
  await open(owner)
  await owner.getByLabel(`Select ${many}`).check()
  await owner.evaluate(`scrollTo(0, document.documentElement.scrollHeight)`)
  await expect.poll(() => owner.evaluate(`${isDrawn}(${rows}.at(-1))`)).toBe(true)
  await owner.getByLabel('Select Person 0001').check()
  await owner.getByText('2 selected').waitFor()
  await owner.evaluate(`scrollTo(0, 0)`)
  await expect.poll(() => owner.evaluate(`${isDrawn}(${rows}.at(0))`)).toBe(true)
  expect(await owner.evaluate('document.activeElement.ariaLabel')).toBe('Select Person 0001')
  expect(await owner.getByLabel(`Select ${many}`).isChecked()).toBe(true)
  await owner.getByRole('button', { name: 'Clear selection' }).click()
})

test.for([
  ['wide', 1440],
  ['narrow', 320],
] as const)('back and reload end at the same row, in a %s window', async ([, width], { owner }) => {
  await owner.setViewportSize({ width, height: 900 })
  // Not the page of the test before: after a change of width Chromium keeps the heights of some rows.
  await owner.goto(address)
  await untilAllAreThere(owner)
  const name = nameOf((count * 7) / 10)
  const link = owner.getByRole('link', { name })
  await link.scrollIntoViewIfNeeded()
  const top = () => link.evaluate((row) => Math.round((row as Box).getBoundingClientRect().top))
  // Rows that come into view get their own heights instead of estimated ones.
  let before = Number.NaN
  await expect
    .poll(async () => {
      const last = before
      before = await top()
      return before === last
    })
    .toBe(true)
  // The page's own click, as one by the mouse may scroll the list first.
  before = await link.evaluate((row) => {
    const { top } = (row as Box).getBoundingClientRect()
    ;(row as Box).click()
    return Math.round(top)
  })
  await owner.getByRole('heading', { name }).waitFor()
  await owner.goBack()
  await expect.poll(top).toBe(before)
  await owner.reload()
  await untilAllAreThere(owner)
  await expect.poll(top).toBe(before)
  await owner.setViewportSize({ width: 1440, height: 900 })
})

interface Box {
  click(): void
  getBoundingClientRect(): { left: number; top: number }
}

const rows = `Array.from(document.querySelectorAll('tbody tr'))`

const isDrawn = `((row) => row.checkVisibility({ contentVisibilityAuto: true }))`

/** Where the test before has not left it open. */
async function open(page: Page): Promise<void> {
  if (!page.url().endsWith(address)) await page.goto(address)
  await untilAllAreThere(page)
}

async function untilAllAreThere(page: Page): Promise<void> {
  const there = () => page.evaluate(`${rows}.length`)
  await expect.poll(there, { timeout: 30_000 }).toBe(count)
}

async function createPersons(lethe: Lethe): Promise<void> {
  const create = async (number: number) => {
    const { status } = await lethe.api('POST', '/v1/persons', {
      externalId: `p-${number}`,
      properties: { name: nameOf(number) },
    })
    expect(status).toBe(201)
  }
  const together = 20
  for (let first = 0; first < count; first += together) {
    await Promise.all(Array.from({ length: together }, (_, place) => create(first + place)))
  }
}
