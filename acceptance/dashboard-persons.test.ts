import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Lethe, newWindow, test } from './lethe.ts'

/** Each of these numbers, twenty at a time. */
async function together(count: number, act: (number: number) => Promise<void>): Promise<void> {
  const left = Array.from({ length: count }, (_, number) => number)
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await act(next)
  }
  await Promise.all(Array.from({ length: 20 }, worker))
}

const rowsOf = (page: Page) => page.getByRole('table', { name: 'People' }).locator('tbody tr')

test('the search has a shortcut and is in the address, and back and reload keep it', async ({
  lethe,
  owner,
}) => {
  await together(120, async (number) => {
    const name = `Person ${String(number).padStart(3, '0')}`
    await lethe.api('POST', '/v1/persons', { externalId: `p-${number}`, properties: { name } })
  })
  await owner.goto('/projects/1/persons')
  await rowsOf(owner).first().waitFor()
  expect(await rowsOf(owner).count()).toBe(50)
  await owner.keyboard.press('/')
  await owner.keyboard.type('person 11')
  await expect.poll(() => rowsOf(owner).count()).toBe(10)
  expect(new URL(owner.url()).searchParams.get('search')).toBe('person 11')

  await owner.getByRole('link', { name: 'Person 117' }).click()
  await owner.getByRole('heading', { name: 'Person 117' }).waitFor()
  // Persons are addressed by an id of ours: no address or history names anybody.
  expect(owner.url()).toMatch(/\/persons\/\d+$/)
  expect(await owner.title()).not.toContain('Person 117')
  await owner.goBack()
  await expect.poll(() => rowsOf(owner).count()).toBe(10)
  expect(await owner.getByRole('searchbox').inputValue()).toBe('person 11')
  await owner.reload()
  await expect.poll(() => rowsOf(owner).count()).toBe(10)
  await owner.getByRole('searchbox').fill('nobody like this')
  await owner.getByRole('heading', { name: 'No people match' }).waitFor()
  await owner.getByRole('link', { name: 'Show all people' }).click()
  await expect.poll(() => rowsOf(owner).count()).toBe(50)
})

test('more is loaded on demand, and a reload opens as much again', async ({ owner }) => {
  await owner.goto('/projects/1/persons')
  await owner.getByRole('button', { name: 'Load more' }).click()
  await expect.poll(() => rowsOf(owner).count()).toBe(100)
  await owner.getByRole('button', { name: 'Load more' }).click()
  await expect.poll(() => rowsOf(owner).count()).toBe(120)
  await owner.getByRole('link', { name: 'Person 003' }).click()
  await owner.getByRole('heading', { name: 'Person 003' }).waitFor()
  await owner.goBack()
  await expect.poll(() => rowsOf(owner).count()).toBe(120)
  await owner.reload()
  await expect.poll(() => rowsOf(owner).count()).toBe(120)
})

/** A person who came with that many browsers, once with each. */
async function visitOften(lethe: Lethe, userId: string, times: number): Promise<void> {
  const ask = async (what: string, body: object): Promise<{ browserId: string }> => {
    const response = await fetch(`${lethe.url}/ingest/v1/${what}?key=${lethe.publicKey}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    expect(response.status, what).toBe(200)
    return (await response.json()) as { browserId: string }
  }
  await together(times, async () => {
    const { browserId } = await ask('start', {})
    await ask('identify', { browserId, userId })
  })
}

test('the sessions of a person and the audit log are loaded on demand too', async ({
  lethe,
  owner,
}) => {
  await visitOften(lethe, 'often', 60)
  await owner.goto('/projects/1/persons?search=often')
  await owner.getByRole('link', { name: 'often' }).click()
  const sessions = owner.getByRole('table', { name: 'Sessions' }).locator('tbody tr')
  await owner.getByRole('button', { name: 'Load more' }).click()
  await expect.poll(() => sessions.count()).toBe(60)
  await owner.waitForURL('**?pages=2')
  await owner.reload()
  await expect.poll(() => sessions.count()).toBe(60)
  await sessions.nth(55).getByRole('link').first().click()
  await owner.getByRole('heading', { name: 'often' }).waitFor()
  await owner.goBack()
  await expect.poll(() => sessions.count()).toBe(60)

  await owner.evaluate(`Promise.all(Array.from({ length: 60 }, (_, time) =>
    fetch('/dashboard/v1/projects/1', {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Shop ' + time }),
    })))`)
  await owner.goto('/projects/1/settings/audit?action=project.changed')
  const entries = owner.getByRole('table', { name: 'Audit log' }).locator('tbody tr')
  await owner.getByRole('button', { name: 'Load more' }).click()
  await expect.poll(() => entries.count()).toBe(60)
  await owner.waitForURL('**&pages=2')
  await owner.reload()
  await expect.poll(() => entries.count()).toBe(60)
  expect(await owner.getByLabel('Action').inputValue()).toBe('project.changed')
})

test('properties are added, edited and removed by the rules of the API', async ({
  lethe,
  owner,
}) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'grace',
    properties: { name: 'Grace Hopper', plan: 'pro', seats: 3 },
  })
  await owner.goto('/projects/1/persons?search=grace')
  await owner.getByRole('link', { name: 'Grace Hopper' }).click()
  await owner.getByRole('link', { name: /Properties/ }).click()
  const properties = async () =>
    (await lethe.api('GET', '/v1/persons/grace')).json.person.properties
  const dialog = owner.getByRole('dialog')

  await owner.getByRole('button', { name: 'Add property' }).click()
  await dialog.getByLabel('Key').fill('plan')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('A property with this key already exists.').waitFor()
  await dialog.getByLabel('Key').fill('address')
  await dialog.getByLabel('Type').selectOption('json')
  await dialog.getByLabel('Value').fill('null')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('null removes the key.').waitFor()
  await dialog.getByLabel('Value').fill('{ "city": "Linz" }')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await properties()).toMatchObject({ address: { city: 'Linz' } })

  await owner.getByRole('button', { name: 'Edit seats' }).click()
  await dialog.getByLabel('Value').fill('9007199254740993')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await owner.getByRole('cell', { name: '9007199254740993' }).waitFor()
  const stored = await fetch(`${lethe.url}/v1/persons/grace`, {
    headers: { authorization: `Bearer ${lethe.secretKey}` },
  })
  expect(await stored.text()).toMatch(/"seats": ?9007199254740993\b/)
  await owner.getByRole('button', { name: 'Edit seats' }).click()
  await dialog.getByLabel('Value').fill('4')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await properties()).toMatchObject({ seats: 4 })

  await owner.getByRole('button', { name: 'Remove plan' }).click()
  await dialog.getByRole('button', { name: 'Remove property' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await properties()).toEqual({
    name: 'Grace Hopper',
    seats: 4,
    address: { city: 'Linz' },
  })
})

test('two members at once see what the other does', async ({ lethe, browser, owner }) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'both', properties: { name: 'Both See' } })
  const state = await owner.context().storageState()
  const other = await (await newWindow(browser, lethe, { storageState: state })).newPage()
  await other.goto('/projects/1/persons?search=both')
  await other.getByRole('link', { name: 'Both See' }).click()
  await other.getByRole('link', { name: /Properties/ }).click()
  await lethe.api('PATCH', '/v1/persons/both', { properties: { plan: 'team' } })
  await other.getByText('team').waitFor()

  await owner.goto('/projects/1/persons?search=both')
  await owner.getByRole('link', { name: 'Both See' }).click()
  await owner.getByRole('button', { name: 'Delete…' }).click()
  await owner.getByLabel(/to confirm/).fill('both')
  await owner.getByRole('button', { name: /^Delete person/ }).click()
  await other.getByRole('heading', { name: /This person was deleted/ }).waitFor()
  await owner.getByRole('heading', { name: /This person was deleted/ }).waitFor()
  await other.context().close()
})

test('several persons are deleted at once', async ({ lethe, owner }) => {
  await owner.goto('/projects/1/persons?search=p-10')
  await expect.poll(() => rowsOf(owner).count()).toBe(11)
  await owner.getByLabel('Select all people in the list').check()
  await owner.getByLabel('Select Person 100').uncheck()
  await owner.getByText('10 selected').waitFor()
  await owner.getByRole('button', { name: 'Delete…' }).click()
  await owner.getByLabel(/to confirm/).fill('delete 10 people')
  await owner.getByRole('button', { name: /^Delete 10 people/ }).click()
  await owner.getByText('10 deletions started').waitFor()
  await expect.poll(() => rowsOf(owner).count(), { timeout: 30_000 }).toBe(1)
  expect((await lethe.api('GET', '/v1/persons/p-100')).status).toBe(200)
  expect((await lethe.api('GET', '/v1/persons/p-101')).status).toBe(404)
})
