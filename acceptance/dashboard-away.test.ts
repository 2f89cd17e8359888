import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Lethe, test } from './lethe.ts'

/** A window of the owner's in which requests may fail: that is what is tried. */
async function windowOf(owner: Page, browser: Browser, lethe: Lethe): Promise<Page> {
  const storageState = await owner.context().storageState()
  const context = await browser.newContext({ baseURL: lethe.url, storageState })
  return context.newPage()
}

test('a screen that cannot be loaded says so inside the dashboard, and is loaded later', async ({
  lethe,
  browser,
  owner,
}) => {
  const page = await windowOf(owner, browser, lethe)
  await page.goto('/projects/1/persons')
  await page.getByRole('heading', { name: 'People', exact: true }).waitFor()
  await page.context().setOffline(true)
  await page.getByRole('link', { name: 'Install', exact: true }).click()
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor()
  await page.getByRole('link', { name: 'People', exact: true }).waitFor()
  // A second try, still offline, does not lose the page either.
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Install', exact: true }).waitFor()
  await page.context().close()
})

test('a deletion that could not be sent is not sent later', async ({ lethe, browser, owner }) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'stays', properties: { name: 'Who Stays' } })
  const page = await windowOf(owner, browser, lethe)
  await page.goto('/projects/1/persons')
  await page.getByRole('link', { name: 'Who Stays' }).click()
  await page.getByRole('button', { name: 'Delete…' }).click()
  await page.getByLabel(/to confirm/).fill('stays')
  await page.context().setOffline(true)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: /^Delete person/ }).click()
  await dialog.getByText('You’re offline. Nothing was changed.').first().waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.context().setOffline(false)
  // What is asked for next has gone through, and so would the deletion have.
  await page.getByRole('link', { name: /Properties/ }).click()
  await page.getByRole('table', { name: 'Properties' }).waitFor()
  const sent = await page.evaluate(`fetch('/health/live').then(({ ok }) => ok)`)
  expect(sent).toBe(true)
  expect((await lethe.api('GET', '/v1/persons/stays')).status).toBe(200)
  const jobs = await lethe.api('GET', '/v1/persons/stays')
  expect(jobs.json.person?.deletionStatus ?? jobs.json.deletionStatus ?? null).toBeNull()
  await page.context().close()
})
