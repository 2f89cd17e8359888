import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { look, openWindow, type Screen, shows } from './axe.ts'
import { visit } from './forged.ts'
import {
  test as base,
  breakBlobs,
  type Lethe,
  password,
  startLethe,
  tryForTheLastTime,
} from './lethe.ts'

/** A deletion that failed once waits for as long as it is looked at. */
const test = base.extend<{ lethe: Lethe }>({
  lethe: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const { lethe, stop } = await startLethe({ ERASURE_RETRY_DELAYS: '3600,3600,3600,3600' })
      await use(lethe)
      await stop()
    },
    { scope: 'file' },
  ],
})

async function openAda(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Ada Lovelace' }).click()
  await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
}

/** The navigation is at the side, or behind a button where it is narrow. */
async function openSide(page: Page): Promise<void> {
  const menu = page.getByRole('button', { name: 'Menu', exact: true })
  await page
    .getByRole('link', { name: 'Install' })
    .or(menu)
    .filter({ visible: true })
    .first()
    .waitFor()
  if (await menu.isVisible()) await menu.click()
}

async function chooseTwo(page: Page): Promise<void> {
  for (const name of ['Select Grace Hopper', 'Select Ada Lovelace']) {
    await page.getByRole('checkbox', { name }).check()
  }
  await page.getByRole('region', { name: 'Selected people' }).waitFor()
}

async function openKeyMenu(page: Page, item: string): Promise<void> {
  await page
    .getByRole('button', { name: /^Actions for/ })
    .first()
    .click()
  await page.getByRole('menuitem', { name: item }).click()
}

const failed: Screen[] = [
  { name: 'persons chosen, one of them failed', path: '/projects/1/persons', ready: chooseTwo },
  {
    name: 'several to be deleted',
    path: '/projects/1/persons',
    ready: async (page) => {
      await chooseTwo(page)
      await page.getByRole('button', { name: 'Delete…' }).click()
      await page.getByRole('dialog').getByText('delete 2 people', { exact: true }).waitFor()
      await page
        .getByText(/will be permanently deleted with their records and properties/)
        .waitFor()
    },
  },
  {
    name: 'a person whose deletion failed',
    path: '/projects/1/persons?state=deletion_failed',
    ready: async (page) => {
      await openAda(page)
      await page.getByText('Deleting this person failed').waitFor()
    },
  },
  {
    name: 'a job that failed',
    path: '/projects/1/deletions?status=failed',
    ready: async (page) => {
      await page.getByRole('link', { name: 'ada' }).click()
      await page.getByRole('dialog').getByText('Attempt 5').waitFor()
    },
  },
  {
    name: 'a receipt that is none',
    path: '/projects/1/deletions',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Verify a receipt' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Receipt', { exact: true }).fill('a.b.c')
      await dialog.getByRole('button', { name: 'Verify', exact: true }).click()
      await dialog.getByText('Not valid').waitFor()
    },
  },
  {
    name: 'a recording whose key is destroyed',
    path: '/projects/1/sessions',
    ready: async (page) => {
      await page.getByRole('table').locator('tbody tr').first().getByRole('link').first().click()
      await page.getByText('This recording can no longer be read').waitFor()
    },
  },
]

const dialogs: Screen[] = [
  {
    name: 'a key, shown once',
    path: '/projects/1/settings/keys',
    ready: async (page) => {
      await page.getByRole('button', { name: 'New key' }).click()
      await page.getByRole('dialog').getByLabel('Name').fill('Billing')
      await page.getByRole('button', { name: 'Create key' }).click()
      await page
        .getByRole('dialog')
        .getByText(/^sk_\w+$/)
        .waitFor()
    },
  },
  {
    name: 'a key to be rotated',
    path: '/projects/1/settings/keys',
    ready: async (page) => {
      await openKeyMenu(page, 'Rotate…')
      await page.getByRole('dialog').getByLabel('Overlap').waitFor()
    },
  },
  {
    name: 'a webhook and its deliveries',
    path: '/projects/1/settings/webhooks',
    ready: async (page) => {
      await page.getByRole('link', { name: 'http://127.0.0.1:9/hook' }).click()
      await page.getByRole('table', { name: 'Deliveries' }).waitFor()
    },
  },
  {
    name: 'a new webhook',
    path: '/projects/1/settings/webhooks',
    ready: async (page) => {
      await page.getByRole('button', { name: 'New webhook' }).click()
      await page.getByRole('dialog').getByLabel('URL').waitFor()
    },
  },
  {
    name: 'a second factor to be added',
    path: '/projects/1/account',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Set up two-factor authentication…' }).click()
      await page.getByLabel('Your password').fill(password)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByLabel('Authenticator code').waitFor()
    },
  },
  {
    name: 'the navigation',
    path: '/projects/1/persons',
    ready: openSide,
  },
  {
    name: 'a new project',
    path: '/projects/1/persons',
    ready: async (page) => {
      await openSide(page)
      await page.getByRole('button', { name: /^Project:/ }).click()
      await page.getByRole('menuitem', { name: 'New project…' }).click()
      await page.getByRole('dialog', { name: 'New project' }).getByLabel('Name').waitFor()
    },
  },
  {
    name: 'the menu of the member',
    path: '/projects/1/persons',
    ready: async (page) => {
      await openSide(page)
      await page.getByRole('button', { name: /Margaret Hamilton/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).waitFor()
    },
  },
  { name: 'no persons yet', path: '/projects/2/persons', ready: 'No people yet' },
  { name: 'no sessions yet', path: '/projects/2/sessions', ready: 'No sessions yet' },
  {
    name: 'no deletions yet',
    path: '/projects/2/deletions',
    ready: 'No deletions yet',
  },
  {
    name: 'nothing arrived yet',
    path: '/projects/2/install',
    ready: /Waiting for the first/,
  },
]

const isFailing = shows(/Attempt 1 of 5 failed\. The next one starts/)

const waiting: Screen[] = [
  {
    name: 'persons of whom one is being deleted',
    path: '/projects/1/persons',
    ready: '1 deletion in progress',
  },
  {
    name: 'a person that is being deleted',
    path: '/projects/1/persons?state=deleting',
    ready: async (page) => {
      await openAda(page)
      await isFailing(page)
    },
  },
  {
    name: 'a job that goes on',
    path: '/projects/1/deletions?status=open',
    ready: async (page) => {
      await page.getByRole('link', { name: 'ada' }).click()
      await isFailing(page)
    },
  },
]

/** Asks the dashboard's own interface from within the page. */
async function ask(page: Page, path: string, body: unknown): Promise<void> {
  const status = await page.evaluate(
    `fetch(${JSON.stringify(`/dashboard/v1${path}`)}, { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify(body))} }).then((answer) => answer.status)`,
  )
  expect(status, path).toBe(201)
}

test('axe finds nothing while a deletion waits for its next attempt', { timeout: 600_000 }, async ({
  lethe,
  browser,
  owner,
}) => {
  for (const [externalId, name] of [
    ['ada', 'Ada Lovelace'],
    ['grace', 'Grace Hopper'],
  ]) {
    await lethe.api('POST', '/v1/persons', { externalId, properties: { name } })
  }
  await visit(lethe, 'ada')
  await breakBlobs(lethe)
  await lethe.api('DELETE', '/v1/persons/ada')
  const page = await openWindow(browser, lethe, owner)
  expect(await look(page, waiting)).toEqual({})
  await page.context().close()
})

test('axe finds nothing where a deletion failed', { timeout: 600_000 }, async ({
  lethe,
  browser,
  owner,
}) => {
  await tryForTheLastTime(lethe)
  await owner.goto('/projects/1/persons?state=deletion_failed')
  await owner.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
  const page = await openWindow(browser, lethe, owner)
  expect(await look(page, failed)).toEqual({})
  await page.context().close()
})

test('axe finds nothing in the dialogs, the menus and an empty project', {
  timeout: 900_000,
}, async ({ lethe, browser, owner }) => {
  const url = 'http://127.0.0.1:9/hook'
  await ask(owner, '/projects/1/webhooks', { url, events: ['person.deletion.completed'] })
  await ask(owner, '/projects', { name: 'Empty' })
  await lethe.api('DELETE', '/v1/persons/grace')
  const page = await openWindow(browser, lethe, owner)
  expect(await look(page, dialogs)).toEqual({})
  await page.context().close()
})
