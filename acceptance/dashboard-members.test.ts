import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { ageProofs, newWindow, ownerEmail, password, test } from './lethe.ts'

const again = (page: Page) => page.getByRole('dialog', { name: 'Confirm it’s you' })

test('a deletion that is cancelled while offline is never carried out', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'ada', properties: { name: 'Ada' } })
  await owner.goto('/projects/1/persons?search=ada')
  await owner.getByRole('link', { name: 'Ada' }).first().click()
  await owner.getByRole('button', { name: 'Delete…' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel(/to confirm/).fill('ada')
  await dialog.getByRole('button', { name: /^Delete person/ }).waitFor()

  await owner.context().setOffline(true)
  await owner.getByText('You’re offline.').first().waitFor()
  await dialog.getByRole('button', { name: /^Delete person/ }).click()
  await dialog.getByRole('alert').getByText('Nothing was changed').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  const answered = owner.waitForResponse((response) => response.url().includes('/persons/'))
  await owner.context().setOffline(false)
  await answered
  await owner.getByText('You’re offline.').first().waitFor({ state: 'detached' })
  // What would be carried out later would have been by now: the page has asked again for everything.
  await owner.waitForResponse((response) => response.url().includes('/persons/'))
  expect((await lethe.api('GET', '/v1/persons/ada')).status).toBe(200)
  expect((await lethe.api('GET', '/v1/deletion-jobs')).json.jobs).toEqual([])
})

test('the dialog no longer waits for a deletion that is cancelled while it is sent', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'bob', properties: { name: 'Bob' } })
  await owner.goto('/projects/1/persons?search=bob')
  await owner.getByRole('link', { name: 'Bob' }).first().click()
  await owner.getByRole('button', { name: 'Delete…' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel(/to confirm/).fill('bob')
  let held = 0
  await owner.route('**/deletions', async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    // On its way for as long as the page waits for it.
    held++
  })
  await dialog.getByRole('button', { name: /^Delete person/ }).click()
  const ended = owner.waitForEvent('requestfailed', (request) => request.method() === 'POST')
  await expect.poll(() => held).toBe(1)
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await ended
  await owner.unroute('**/deletions')
  expect((await lethe.api('GET', '/v1/persons/bob')).status).toBe(200)
})

test('offline, a list that is not there yet says so at once', async ({ owner }) => {
  await owner.goto('/projects/1/deletions')
  await owner.getByRole('heading', { name: 'Deletions', exact: true }).waitFor()
  await owner.context().setOffline(true)
  await owner.getByLabel('State').selectOption('failed')
  await owner.getByText('Deletions could not be loaded').waitFor()
  await owner.getByRole('alert').getByText('You’re offline').waitFor()
  await owner.context().setOffline(false)
  await owner.getByRole('button', { name: 'Try again' }).click()
  await owner.getByText('Deletions could not be loaded').waitFor({ state: 'detached' })
})

test('a screen that cannot be loaded says so inside the dashboard, and is loaded later', async ({
  lethe,
  browser,
  owner,
}) => {
  // A window in which requests may fail: that is what is tried.
  const storageState = await owner.context().storageState()
  const context = await browser.newContext({ baseURL: lethe.url, storageState })
  const page = await context.newPage()
  await page.goto('/projects/1/persons')
  await page.getByRole('heading', { name: 'People', exact: true }).waitFor()
  await context.setOffline(true)
  await page.getByRole('link', { name: 'Install', exact: true }).click()
  const failed = page.getByRole('heading', { name: 'This page could not be loaded' })
  await failed.evaluate((heading) => heading.setAttribute('data-first', ''))
  await page.getByRole('link', { name: 'People', exact: true }).waitFor()
  // A second try, still offline, does not lose the page either.
  await page.getByRole('button', { name: 'Try again' }).click()
  // When this try has failed too: it would succeed if the browser came online before.
  await failed.and(page.locator(':not([data-first])')).waitFor()
  await context.setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Install', exact: true }).waitFor()
  await context.close()
})

test('an action that needs a proof asks for the password over the dialog, and continues with what was typed', async ({
  lethe,
  owner,
}) => {
  await owner.goto('/projects/1/settings/members')
  await owner.getByRole('button', { name: 'Invite member' }).click()
  const dialog = owner.getByRole('dialog', { name: 'Invite member' })
  await dialog.getByLabel('Email', { exact: true }).fill('eve@example.com')
  await ageProofs(lethe)
  await dialog.getByRole('button', { name: 'Create invitation' }).click()
  await again(owner).getByLabel('Password').fill('wrong horse battery staple')
  await again(owner).getByRole('button', { name: 'Confirm' }).click()
  await again(owner).getByRole('alert').waitFor()
  await owner.keyboard.press('Escape')
  await again(owner).waitFor({ state: 'detached' })
  await dialog.getByRole('alert').getByText('password is needed again').waitFor()
  expect(await dialog.getByLabel('Email', { exact: true }).inputValue()).toBe('eve@example.com')

  await dialog.getByRole('button', { name: 'Create invitation' }).click()
  await again(owner).getByLabel('Password').fill(password)
  await again(owner).getByRole('button', { name: 'Confirm' }).click()
  await dialog.getByText(/\/join#/).waitFor()
  await dialog.getByRole('button', { name: 'Done' }).click()

  // A file that the browser fetches by itself.
  await ageProofs(lethe)
  await owner.goto('/projects/1/deletions')
  const download = owner.waitForEvent('download')
  await owner.getByRole('link', { name: 'CSV' }).click()
  await again(owner).getByLabel('Password').fill(password)
  await again(owner).getByRole('button', { name: 'Confirm' }).click()
  expect((await download).suggestedFilename()).toMatch(/^deletions-.*\.csv$/)
})

/** Behind the back of the page. */
const endSignIn = (page: Page) =>
  page.evaluate(() =>
    fetch('/dashboard/v1/sign-out', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    }),
  )

test('a sign-in that ends asks for the password over the page, and what was typed stays', async ({
  owner,
}) => {
  await owner.goto('/projects/1/settings/members')
  await owner.getByRole('button', { name: 'Invite member' }).click()
  const dialog = owner.getByRole('dialog', { name: 'Invite member' })
  await dialog.getByLabel('Email', { exact: true }).fill('typed@example.com')
  await endSignIn(owner)
  const ended = owner.getByRole('dialog', { name: 'You’ve been signed out' })
  await ended.getByLabel('Password').fill(password)
  await ended.getByRole('button', { name: 'Sign in' }).click()
  await ended.waitFor({ state: 'detached' })
  expect(await dialog.getByLabel('Email', { exact: true }).inputValue()).toBe('typed@example.com')
  await dialog.getByRole('button', { name: 'Create invitation' }).click()
  await dialog.getByText(/\/join#/).waitFor()
})

test('a request that is refused while the cookie is being replaced is repeated, without asking', async ({
  lethe,
  browser,
  owner,
}) => {
  const other = await newWindow(browser, lethe)
  const signedIn = await other.request.post(`${lethe.url}/dashboard/v1/sign-in`, {
    headers: { origin: lethe.url },
    data: { email: ownerEmail, password },
  })
  expect(signedIn.status()).toBe(200)
  await owner.goto('/projects/1/settings/members')
  await owner.getByRole('button', { name: 'Invite member' }).waitFor()
  await endSignIn(owner)
  const refused = owner.waitForResponse((response) => response.status() === 401)
  await owner.getByRole('link', { name: 'Webhooks' }).click()
  await refused
  await owner.context().addCookies(await other.cookies())
  await owner.getByRole('button', { name: 'New webhook' }).waitFor()
  expect(await owner.getByRole('dialog').count()).toBe(0)
})

test('the audit log says who did what to whom and from where, by member, action, person and time', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'cy', properties: { name: 'Cy' } })
  await owner.goto('/projects/1/persons?search=cy')
  await owner.getByRole('link', { name: 'Cy' }).first().click()
  const personId = /persons\/(\d+)/.exec(owner.url())?.[1] as string
  await owner.getByRole('heading', { name: 'Cy' }).waitFor()
  await owner.evaluate(
    (path) =>
      fetch(path, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ properties: { plan: 'pro' } }),
      }),
    `/dashboard/v1/projects/1/persons/${personId}`,
  )

  await owner.goto('/projects/1/settings/audit')
  const table = owner.getByRole('table', { name: 'Audit log' })
  const edited = table.locator('tbody tr', { hasText: 'Edited a person' })
  await edited.getByRole('link', { name: 'Margaret Hamilton' }).waitFor()
  await edited.getByText('127.0.0.0/24').waitFor()
  await edited.getByRole('link', { name: personId }).waitFor()

  await owner.getByLabel('Action').selectOption({ label: 'Edited a person' })
  await owner.waitForURL('**/audit?action=person.edited')
  await expect.poll(() => table.locator('tbody tr').count()).toBe(1)
  await owner.getByLabel('Member').selectOption({ label: 'Margaret Hamilton' })
  await owner.getByLabel('From').fill('2001-01-01')
  await owner.getByLabel('To').fill('2001-01-02')
  await owner.getByText('No entries match').waitFor()
  await owner.goto(`/projects/1/settings/audit?person=${personId}`)
  await expect.poll(() => table.locator('tbody tr').count()).toBe(1)
  const download = owner.waitForEvent('download')
  await owner.getByRole('link', { name: 'CSV' }).click()
  expect((await download).suggestedFilename()).toMatch(/^audit-log-.*\.csv$/)
})
