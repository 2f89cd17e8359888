import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { visit } from './forged.ts'
import { newWindow, ownerEmail, password, test } from './lethe.ts'

/** The control that has the focus, as it would be read out; `isSeen`: something is drawn around it. */
interface Focused {
  tag: string
  name: string
  isSeen: boolean
  isInDialog: boolean
}

const lookAtFocus = `(() => {
  const element = document.activeElement
  const labels = Array.from(element.labels ?? []).map((label) => label.innerText)
  const ring = (one) => one && getComputedStyle(one).outlineStyle !== 'none'
  return {
    tag: element.tagName.toLowerCase(),
    name: (element.ariaLabel || labels.join(' ') || element.innerText || '').trim(),
    isSeen: ring(element) || ring(element.parentElement),
    isInDialog: element.closest('[role=dialog]') !== null,
  }
})()`

const focusOf = (page: Page) => page.evaluate(lookAtFocus) as Promise<Focused>

/** Goes on with Tab until a control of this name is reached, at most once around the page. */
async function tabTo(page: Page, name: RegExp): Promise<Focused> {
  const passed: string[] = []
  for (let step = 0; step < 60; step++) {
    await page.keyboard.press('Tab')
    const focused = await focusOf(page)
    if (focused.tag !== 'body') expect(focused.isSeen, `the focus on “${focused.name}”`).toBe(true)
    if (name.test(focused.name)) return focused
    passed.push(focused.name)
  }
  throw new Error(`Tab does not get to ${name}, only to: ${passed.join(', ')}`)
}

const focusIsIn = (page: Page, selector: string) =>
  expect
    .poll(() =>
      page.evaluate(`document.activeElement.closest(${JSON.stringify(selector)}) !== null`),
    )
    .toBe(true)

test('a person is found, deleted and proved to be gone with the keyboard alone', async ({
  lethe,
  browser,
  owner,
}) => {
  void owner
  await lethe.api('POST', '/v1/persons', { externalId: 'keys', properties: { name: 'Only Keys' } })
  await lethe.api('POST', '/v1/persons', { externalId: 'mice', properties: { name: 'Only Mice' } })
  await visit(lethe, 'keys')
  const page = await (await newWindow(browser, lethe)).newPage()
  const { keyboard } = page

  await page.goto('/')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await tabTo(page, /^Email/)
  await keyboard.type(ownerEmail)
  await tabTo(page, /^Password/)
  await keyboard.type(password)
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  // The focus starts at the content, not before the whole navigation.
  await focusIsIn(page, 'main')
  await page.getByRole('link', { name: 'People', exact: true }).press('Enter')
  await page.getByRole('table', { name: 'People' }).waitFor()

  await keyboard.press('/')
  await keyboard.type('only keys')
  const rows = page.getByRole('table', { name: 'People' }).locator('tbody tr')
  await expect.poll(() => rows.count()).toBe(1)
  expect((await focusOf(page)).tag).toBe('input')
  await tabTo(page, /^Only Keys$/)
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Only Keys' }).waitFor()
  await focusIsIn(page, 'main')

  // Back is where one came from, and forward again.
  await page.goBack()
  await expect.poll(async () => (await focusOf(page)).name).toBe('Only Keys')
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Only Keys' }).waitFor()

  await tabTo(page, /^Delete…$/)
  await keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  await expect.poll(async () => (await focusOf(page)).name).toBe('Person and recordings')
  await keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await expect.poll(async () => (await focusOf(page)).name).toBe('Delete…')
  await keyboard.press('Enter')
  await dialog.getByText('1 recording from 1 browser').waitFor()
  await expect.poll(async () => (await focusOf(page)).name).toBe('Person and recordings')
  await keyboard.press('ArrowDown')
  await dialog.getByRole('button', { name: 'Delete person, keep 1 recording' }).waitFor()
  await keyboard.press('ArrowUp')
  await dialog.getByRole('button', { name: 'Delete person and 1 recording' }).waitFor()
  const field = await tabTo(page, /to confirm/)
  expect(field.isInDialog).toBe(true)
  await keyboard.type('keys')
  await keyboard.press('Enter')

  await page.getByRole('heading', { name: /This person was deleted/ }).waitFor()
  await dialog.waitFor({ state: 'detached' })
  await focusIsIn(page, 'main')
  await tabTo(page, /^Verify$/)
  await keyboard.press('Enter')
  await page.getByText('Genuine and unchanged').waitFor()
  await tabTo(page, /^Show job$/)
  await keyboard.press('Enter')
  await dialog.getByText('Attempt 1').waitFor()
  await focusIsIn(page, '[role=dialog]')
  await tabTo(page, /^Download receipt$/)
  const download = page.waitForEvent('download')
  await keyboard.press('Enter')
  const receipt = await readFile(await (await download).path(), 'utf8')
  expect(receipt.split('.')).toHaveLength(3)
  await keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await focusIsIn(page, 'main')
  expect((await lethe.api('GET', '/v1/persons/keys')).status).toBe(404)
  expect((await lethe.api('GET', '/v1/persons/mice')).status).toBe(200)
  await page.context().close()
})

test('the menus and settings are reached and left with the keyboard alone', async ({ owner }) => {
  const { keyboard } = owner
  await owner.goto('/projects/1/settings/keys')
  await owner.getByRole('table', { name: 'Keys' }).waitFor()
  await tabTo(owner, /^Actions for the key /)
  const trigger = (await focusOf(owner)).name
  await keyboard.press('Enter')
  await owner.getByRole('menuitem', { name: 'Rotate…' }).waitFor()
  await keyboard.press('Escape')
  await expect.poll(async () => (await focusOf(owner)).name).toBe(trigger)
  await keyboard.press('Enter')
  await owner.getByRole('menuitem', { name: 'Rotate…' }).waitFor()
  await keyboard.press('ArrowDown')
  await keyboard.press('ArrowUp')
  await keyboard.press('Enter')
  await owner.getByRole('dialog').getByLabel('Overlap').waitFor()
  await focusIsIn(owner, '[role=dialog]')
  await keyboard.press('Escape')
  await owner.getByRole('dialog').waitFor({ state: 'detached' })
  await focusIsIn(owner, 'main')
})
