import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { visit } from './forged.ts'
import { test as base, newWindow, recordVisit, setUp } from './lethe.ts'

/** The owner comes in as everybody's first one does. */
const test = base.extend<{ owner: Page }>({
  owner: [
    async ({ lethe, browser }, use) => {
      const page = await (await newWindow(browser, lethe)).newPage()
      await setUp(page, lethe)
      await use(page)
    },
    { scope: 'file' },
  ],
})

test('from the set-up link to the first recording watched', async ({ lethe, browser, owner }) => {
  await owner.getByText('Waiting for the first recording…').waitFor()
  // The page has this project's own key and host in what is to be pasted.
  const snippet = (await owner.locator('pre').first().textContent()) ?? ''
  expect(snippet).toContain(lethe.url)
  const key = /pk_\w+/.exec(snippet)?.[0] ?? ''
  const started = await fetch(`${lethe.url}/ingest/v1/start?key=${key}`, { method: 'POST' })
  expect(started.status).toBe(200)

  // Long enough for a link to its third second.
  await recordVisit(browser, lethe, 'ada', 3_000)
  // Nobody reloads the page: it notices.
  await owner.getByText('Recordings are coming in.').waitFor({ timeout: 30_000 })
  await owner.getByRole('link', { name: 'Watch recording' }).click()
  await owner.waitForURL('**/sessions/*')

  const recorded = owner
    .frameLocator('iframe[title="Replay of the session"]')
    .frameLocator('iframe')
  await recorded.getByText('Fennel & Fig').first().waitFor({ state: 'attached', timeout: 30_000 })
  await owner.getByRole('list').getByText('Clicked').first().waitFor()
  await owner.getByRole('button', { name: 'Play', exact: true }).click()
  await owner.getByRole('button', { name: 'Watch again' }).waitFor({ timeout: 60_000 })
  expect(await recorded.getByText('Basket (4)').count()).toBe(1)
})

test('the set-up link works once, and then leads to the sign-in', async ({
  lethe,
  browser,
  owner,
}) => {
  void owner
  const page = await (await newWindow(browser, lethe)).newPage()
  await page.goto(lethe.setUpLink)
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
  await page.getByRole('link', { name: 'Go to sign-in' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(new URL(page.url()).hash).toBe('')
  await page.context().close()
})

test('a secret key is shown once, in the tab about the backend, and works', async ({
  lethe,
  owner,
}) => {
  await owner.goto('/projects/1/install?way=backend')
  await owner.getByRole('button', { name: 'Create a secret key' }).click()
  const key = (await owner.getByText(/^sk_\w+$/).textContent()) ?? ''
  const answer = await fetch(`${lethe.url}/v1/persons`, {
    headers: { authorization: `Bearer ${key}` },
  })
  expect(answer.status).toBe(200)
  await owner.reload()
  await owner.getByRole('button', { name: 'Create a secret key' }).waitFor()
  expect(await owner.content()).not.toContain(key)
})

test('a link to a moment opens the recording there', async ({ owner }) => {
  await owner.goto('/projects/1/sessions')
  await owner.getByRole('table').getByRole('link').first().click()
  await owner.getByRole('button', { name: 'Play', exact: true }).waitFor()
  const address = owner.url().split('?')[0] ?? ''
  await owner.goto(`${address}?t=2`)
  await expect.poll(() => owner.getByLabel('Time').inputValue(), { timeout: 30_000 }).toBe('2000')
  await owner.keyboard.press('ArrowLeft')
  await expect.poll(() => owner.getByLabel('Time').inputValue()).toBe('0')
  await owner.keyboard.press('ArrowRight')
  // Five seconds on, or the end of a recording that is shorter.
  const length = Number(await owner.getByLabel('Time').getAttribute('max'))
  const seconds = Math.min(5, Math.floor(length / 1_000))
  await expect
    .poll(() => new URL(owner.url()).searchParams.get('t'), { timeout: 10_000 })
    .toBe(String(seconds))
  await owner.reload()
  await expect
    .poll(() => owner.getByLabel('Time').inputValue(), { timeout: 30_000 })
    .toBe(String(seconds * 1_000))
})

test('a filter of the sessions is in the address, and back and reload keep it', async ({
  lethe,
  owner,
}) => {
  await visit(lethe, null)
  await owner.goto('/projects/1/sessions')
  const rows = owner.getByRole('table', { name: 'Sessions' }).locator('tbody tr')
  await expect.poll(() => rows.count()).toBe(3)
  await owner.getByLabel('Who').selectOption('anonymous')
  await expect.poll(() => rows.count()).toBe(2)
  // A row leads on wherever it is clicked.
  await rows.getByText('shop.example').click()
  await owner.getByRole('heading', { name: 'Anonymous visitor' }).waitFor()
  await owner.goBack()
  await expect.poll(() => rows.count()).toBe(2)
  await owner.reload()
  await expect.poll(() => rows.count()).toBe(2)
  expect(await owner.getByLabel('Who').inputValue()).toBe('anonymous')
  await owner.goBack()
  await expect.poll(() => rows.count()).toBe(3)
})

test('a day that is typed is one filter, and one step back', async ({ owner }) => {
  await owner.goto('/projects/1/sessions')
  await owner.getByRole('heading', { name: 'Sessions' }).waitFor()
  const from = () => new URL(owner.url()).searchParams.get('from')
  await owner.getByLabel('From').focus()
  // The same day in whatever order a browser asks for its parts.
  await owner.keyboard.type('01012020', { delay: 30 })
  await expect.poll(from).toBe('2020-01-01')
  expect(await owner.getByLabel('From').inputValue()).toBe('2020-01-01')
  await owner.goBack()
  await expect.poll(from).toBe(null)
  expect(await owner.getByLabel('From').inputValue()).toBe('')
  expect(new URL(owner.url()).pathname).toBe('/projects/1/sessions')
})

test('the first load stays below 200 KB without the player', async ({ lethe, owner }) => {
  const page = await owner.context().newPage()
  const client = await page.context().newCDPSession(page)
  await client.send('Network.enable')
  const bytes: Record<string, number> = {}
  const urls = new Map<string, string>()
  client.on('Network.responseReceived', ({ requestId, response }) =>
    urls.set(requestId, response.url),
  )
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    bytes[urls.get(requestId) ?? requestId] = encodedDataLength
  })
  await client.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.goto('/projects/1/persons')
  await page.getByRole('table', { name: 'People' }).waitFor()
  await page.waitForLoadState('networkidle').catch(() => {})
  const files = Object.entries(bytes).filter(([url]) => !url.includes('/dashboard/v1/'))
  const total = files.reduce((sum, [, size]) => sum + size, 0)
  expect(files.length).toBeGreaterThan(5)
  expect(files.some(([url]) => url.startsWith(lethe.url))).toBe(true)
  console.log(`first load: ${total} bytes in ${files.length} files`)
  expect(total).toBeLessThanOrEqual(200_000)
  await page.close()
})
