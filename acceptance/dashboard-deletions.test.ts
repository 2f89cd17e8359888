import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, inject } from 'vitest'
import { visit } from './forged.ts'
import { breakBlobs, newWindow, test, tryForTheLastTime } from './lethe.ts'

async function openPerson(page: Page, name: string): Promise<void> {
  await page.goto(`/projects/1/persons?search=${encodeURIComponent(name)}`)
  await page.getByRole('link', { name }).first().click()
  await page.getByRole('heading', { name }).waitFor()
}

function command(...words: string[]): string {
  return execFileSync(process.execPath, [inject('command'), ...words], {
    encoding: 'utf8',
    stdio: 'pipe',
  })
}

test('a deletion that fails shows its attempts, ends as failed, and can be requested again', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'ada',
    properties: { name: 'Ada Lovelace' },
  })
  await visit(lethe, 'ada')
  const heal = await breakBlobs(lethe)
  await openPerson(owner, 'Ada Lovelace')
  await owner.getByRole('button', { name: 'Delete…' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByText('1 recording from 1 browser').waitFor()
  await dialog.getByLabel(/to confirm/).fill('ada')
  await dialog.getByRole('button', { name: 'Delete person and 1 recording' }).click()

  await owner.getByText(/Attempt 1 of 5 failed\. The next one starts in 0:0\d/).waitFor()
  await owner.getByText('blobs_symbolic_link').waitFor()
  await owner.getByText('Being deleted').first().waitFor()
  await owner.getByRole('link', { name: /Properties/ }).click()
  await owner.getByText('can no longer be changed').first().waitFor({ state: 'attached' })
  expect(
    await owner.getByRole('button', { name: 'Add property' }).getAttribute('aria-disabled'),
  ).toBe('true')

  await tryForTheLastTime(lethe)
  await owner.getByText('Deleting this person failed').waitFor({ timeout: 60_000 })
  await owner.getByText(/All 5 attempts failed/).waitFor()
  await owner.goto('/projects/1/persons')
  await owner.getByText('1 deletion failed').waitFor()
  await owner.getByRole('link', { name: 'Deletion failed', exact: true }).click()
  const persons = owner.getByRole('table', { name: 'People' }).locator('tbody tr')
  await owner.waitForURL('**/persons?state=deletion_failed')
  await owner.reload()
  await persons.getByText('Deletion failed').waitFor()
  expect(await persons.count()).toBe(1)
  await owner.getByRole('link', { name: 'Show failed deletions' }).click()
  await owner.getByRole('table', { name: 'Deletions' }).getByRole('link', { name: 'ada' }).click()
  const drawer = owner.getByRole('dialog')
  await drawer.getByText('Attempt 5').waitFor()
  await drawer.getByText('Attempt 1', { exact: true }).waitFor()

  await heal()
  await drawer.getByRole('button', { name: 'Request deletion again…' }).click()
  const again = owner.getByRole('dialog').last()
  await again.getByLabel(/to confirm/).fill('ada')
  await again.getByRole('button', { name: /^Delete person/ }).click()
  await expect
    .poll(async () => (await lethe.api('GET', '/v1/persons/ada')).status, { timeout: 30_000 })
    .toBe(404)
})

test('the page of an erased person says so and has a receipt that can be verified', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'grace',
    properties: { name: 'Grace Hopper' },
  })
  const recorded = await visit(lethe, null)
  // The whole of the visit was before this.
  const linked = await fetch(`${lethe.url}/ingest/v1/identify?key=${lethe.publicKey}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ browserId: recorded.browserId, userId: 'grace' }),
  })
  expect(linked.status).toBe(200)
  await openPerson(owner, 'Grace Hopper')
  await owner.getByRole('table', { name: 'Sessions' }).getByText('before sign-in').waitFor()
  await owner.getByRole('button', { name: 'Delete…' }).click()
  await owner.getByLabel(/to confirm/).fill('grace')
  await owner.getByRole('button', { name: 'Delete person and 1 recording' }).click()
  await owner.getByRole('heading', { name: /This person was deleted on/ }).waitFor()
  await owner.reload()
  await owner.getByRole('heading', { name: /This person was deleted on/ }).waitFor()
  expect((await lethe.api('GET', '/v1/persons/grace')).status).toBe(404)

  await owner.getByRole('button', { name: 'Verify', exact: true }).click()
  await owner.getByText('Genuine and unchanged').waitFor()
  await owner.getByText('for this external ID').waitFor()
  const download = owner.waitForEvent('download')
  await owner.getByRole('button', { name: 'Download receipt' }).click()
  const file = await (await download).path()
  const receipt = await readFile(file, 'utf8')
  expect(receipt.split('.')).toHaveLength(3)
  // The file and the published keys are enough to check it without this installation.
  const jwks = join(lethe.dataDir, 'jwks.json')
  await writeFile(jwks, await (await fetch(`${lethe.url}/.well-known/jwks.json`)).text())
  const words = ['receipt', 'verify', file, '--jwks', jwks, '--external-id']
  expect(command(...words, 'grace')).toContain('The receipt is genuine')
  expect(() => command(...words, 'ada')).toThrow()

  // The file is worth what it says wherever it is looked at, and nothing once it was touched.
  await owner.getByRole('link', { name: 'Show job' }).click()
  await owner.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  await owner.getByRole('button', { name: 'Verify a receipt' }).click()
  const dialog = owner.getByRole('dialog')
  const verdictOn = async (text: string, externalId: string) => {
    await dialog.getByLabel('Receipt', { exact: true }).fill(text)
    await dialog.getByLabel(/External ID/).fill(externalId)
    await dialog.getByRole('button', { name: 'Verify', exact: true }).click()
  }
  await verdictOn(receipt, 'grace')
  await dialog.getByText('Genuine and unchanged').waitFor()
  await verdictOn(JSON.stringify({ receipt, purge: null }, null, 2), 'ada')
  await dialog.getByText('Genuine, but for a different person').waitFor()
  const [head = '', payload = '', signature = ''] = receipt.split('.')
  const forged = Buffer.from(payload, 'base64url')
    .toString()
    .replace('"attempts":1', '"attempts":2')
  await verdictOn([head, Buffer.from(forged).toString('base64url'), signature].join('.'), '')
  await dialog.getByText('The signature doesn’t match').waitFor()
})

test('kept recordings stay playable and are linked to nobody', async ({ lethe, owner }) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'alan',
    properties: { name: 'Alan Turing' },
  })
  await visit(lethe, 'alan')
  await openPerson(owner, 'Alan Turing')
  await owner.getByRole('button', { name: 'Delete…' }).click()
  await owner.getByText('They may still show personal data').waitFor()
  await owner.getByText('Person only, keep recordings anonymous').click()
  await owner.getByLabel(/to confirm/).fill('alan')
  await owner.getByRole('button', { name: 'Delete person, keep 1 recording' }).click()
  await owner.getByText('The recordings were kept and are anonymous.').waitFor()
  await owner.goto('/projects/1/sessions?who=anonymous')
  await owner.getByRole('table', { name: 'Sessions' }).getByRole('link').first().click()
  await owner.getByRole('heading', { name: 'Anonymous visitor' }).waitFor()
  await owner
    .frameLocator('iframe[title="Replay of the session"]')
    .frameLocator('iframe')
    .getByText('Fennel & Fig')
    .first()
    .waitFor({ state: 'attached', timeout: 30_000 })
})

test('a recording leaves the screen when its person is erased', async ({ lethe, owner }) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'edsger' })
  await visit(lethe, 'edsger')
  await owner.goto('/projects/1/sessions?who=identified')
  await owner.getByRole('table', { name: 'Sessions' }).getByRole('link').first().click()
  await owner.getByRole('button', { name: 'Play', exact: true }).waitFor()
  await lethe.api('DELETE', '/v1/persons/edsger')
  await owner.getByText('This recording was just deleted').waitFor({ timeout: 30_000 })
  expect(await owner.locator('iframe').count()).toBe(0)
})

test('the page of an erased person stops polling, and no page polls while it is hidden', async ({
  lethe,
  browser,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'tony', properties: { name: 'Tony Hoare' } })
  await openPerson(owner, 'Tony Hoare')
  const { pathname } = new URL(owner.url())
  await lethe.api('DELETE', '/v1/persons/tony')
  await owner.getByRole('heading', { name: /This person was deleted on/ }).waitFor()
  const asked = (page: Page, end: string) => {
    const counted = { count: 0 }
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.endsWith(end)) counted.count++
    })
    return counted
  }
  // The figures at the side are asked for all the while, and are the clock here.
  const ofPerson = asked(owner, `/dashboard/v1${pathname}`)
  const beside = asked(owner, '/summary')
  await expect.poll(() => beside.count).toBeGreaterThan(1)
  expect(ofPerson.count).toBe(0)

  const state = await owner.context().storageState()
  const away = await (await newWindow(browser, lethe, { storageState: state })).newPage()
  await away.goto('/projects/1/persons')
  await away.getByRole('heading', { name: 'No people yet' }).waitFor()
  await away.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
  const whileAway = asked(away, '')
  beside.count = 0
  await expect.poll(() => beside.count).toBeGreaterThan(2)
  // What was under way may still have begun. A page that is seen asks for three or four things each time.
  expect(whileAway.count).toBeLessThan(3)
  await away.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true })
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
  await expect.poll(() => whileAway.count).toBeGreaterThan(3)
  await away.context().close()
})

test('the list of deletions can be filtered, linked to and exported as CSV', async ({ owner }) => {
  await owner.goto('/projects/1/deletions')
  const rows = owner.getByRole('table', { name: 'Deletions' }).locator('tbody tr')
  await rows.first().waitFor()
  const all = await rows.count()
  await owner.getByLabel('State').selectOption('failed')
  await expect.poll(() => rows.count()).toBe(1)
  await owner.getByLabel('State').selectOption('completed')
  await expect.poll(() => rows.count()).toBe(all - 1)
  await owner.getByLabel('Recordings').selectOption('yes')
  await expect.poll(() => rows.count()).toBe(1)
  await owner.goBack()
  await expect.poll(() => rows.count()).toBe(all - 1)
  const download = owner.waitForEvent('download')
  await owner.getByRole('link', { name: 'CSV' }).click()
  const csv = await readFile(await (await download).path(), 'utf8')
  expect(csv.trim().split('\n')).toHaveLength(all)
  expect(csv).toContain('alan')
})
