import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { look, openWindow, type Screen } from './axe.ts'
import { visit } from './forged.ts'
import { test } from './lethe.ts'

async function openAda(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Ada Lovelace' }).click()
  await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
}

const screens: Screen[] = [
  { name: 'home', path: '', ready: 'Latest recording' },
  { name: 'persons', path: '/persons', ready: 'Ada Lovelace' },
  { name: 'nobody found', path: '/persons?search=zzz', ready: 'No people match' },
  { name: 'sessions', path: '/sessions', ready: 'Ada Lovelace' },
  { name: 'no session', path: '/sessions?length=300', ready: 'No sessions match' },
  { name: 'deletions', path: '/deletions', ready: 'erased' },
  { name: 'install', path: '/install', ready: 'Recordings are coming in.' },
  { name: 'install by npm', path: '/install?way=npm', ready: 'npm install' },
  { name: 'install in a backend', path: '/install?way=backend', ready: 'Delete a person' },
  { name: 'keys', path: '/settings/keys', ready: 'Active' },
  { name: 'members', path: '/settings/members', ready: 'margaret@example.com' },
  { name: 'privacy', path: '/settings/privacy', ready: 'Balanced' },
  { name: 'webhooks', path: '/settings/webhooks', ready: 'No webhooks' },
  { name: 'audit log', path: '/settings/audit', ready: 'Set up Lethe' },
  { name: 'system', path: '/settings/system', ready: 'Folder on this machine' },
  { name: 'account', path: '/account', ready: 'Your account' },
  { name: 'nowhere', path: '/nowhere', ready: 'Page not found' },
  { name: 'nobody', path: '/persons/1', ready: 'Person not found' },
  {
    name: 'person',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
    },
  },
  {
    name: 'properties',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('link', { name: /Properties/ }).click()
      await page.getByRole('table', { name: 'Properties' }).waitFor()
    },
  },
  {
    name: 'a property',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('link', { name: /Properties/ }).click()
      await page.getByRole('button', { name: 'Add property' }).click()
      await page.getByRole('dialog').getByLabel('Key').waitFor()
    },
  },
  {
    name: 'browsers',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('link', { name: /Browsers/ }).click()
      await page.getByRole('table', { name: /Browsers/ }).waitFor()
    },
  },
  {
    name: 'activity',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('link', { name: 'Activity' }).click()
      await page.getByText('Session started').waitFor()
    },
  },
  {
    name: 'the question before a deletion',
    path: '/persons?search=ada',
    ready: async (page) => {
      await openAda(page)
      await page.getByRole('button', { name: 'Delete…' }).click()
      await page.getByText('1 recording from 1 browser').waitFor()
    },
  },
  {
    name: 'a person that was deleted',
    path: '/deletions',
    ready: async (page) => {
      await page.getByRole('link', { name: 'erased' }).click()
      await page.getByRole('button', { name: 'Verify', exact: true }).click()
      await page.getByText('Genuine and unchanged').waitFor()
    },
  },
  {
    name: 'the player',
    path: '/sessions',
    ready: async (page) => {
      await page.getByRole('table').locator('tbody tr').first().getByRole('link').first().click()
      await page.getByText('Clicked').first().waitFor()
    },
  },
  {
    name: 'an invitation',
    path: '/settings/members',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Invite member' }).click()
      await page.getByRole('dialog').getByLabel('Email', { exact: true }).waitFor()
    },
  },
  {
    name: 'the menu of a key',
    path: '/settings/keys',
    ready: async (page) => {
      await page
        .getByRole('button', { name: /^Actions for/ })
        .first()
        .click()
      await page.getByRole('menuitem', { name: 'Rotate…' }).waitFor()
    },
  },
]

test('axe finds nothing on any screen', {
  timeout: 600_000,
}, async ({ lethe, browser, owner }) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'ada',
    properties: { name: 'Ada Lovelace', email: 'ada@example.com', address: { city: 'Linz' } },
  })
  await visit(lethe, 'ada')
  await lethe.api('POST', '/v1/persons', { externalId: 'erased' })
  await lethe.api('DELETE', '/v1/persons/erased')
  const page = await openWindow(browser, lethe, owner)
  const found = await look(
    page,
    screens.map((screen) => ({ ...screen, path: `/projects/1${screen.path}` })),
  )
  await page.context().close()
  expect(found).toEqual({})
})

test('axe finds nothing on the pages before sign-in', { timeout: 300_000 }, async ({
  lethe,
  browser,
  owner,
}) => {
  void owner
  const page = await openWindow(browser, lethe)
  const headed = (name: string | RegExp) => (page: Page) =>
    page.getByRole('heading', { name }).waitFor()
  const found = await look(page, [
    { name: 'sign-in', path: '/sign-in', ready: headed('Sign in') },
    { name: 'set-up', path: '/setup', ready: headed('Lethe is set up') },
    { name: 'join', path: '/join', ready: headed('Join') },
    { name: 'reset', path: '/reset', ready: headed('Set a new password') },
  ])
  await page.context().close()
  expect(found).toEqual({})
})
