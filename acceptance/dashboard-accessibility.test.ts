import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { look, openWindow, type Screen, shows } from './axe.ts'
import { recordVisit, test } from './lethe.ts'

async function openAda(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Ada Lovelace' }).click()
  await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
}

const screens: Screen[] = [
  { name: 'persons', path: '/persons', ready: shows('Ada Lovelace') },
  { name: 'nobody found', path: '/persons?search=zzz', ready: shows('Nobody matches') },
  { name: 'sessions', path: '/sessions', ready: shows('Ada Lovelace') },
  { name: 'no session', path: '/sessions?length=300', ready: shows('No session matches') },
  { name: 'deletions', path: '/deletions', ready: shows('erased') },
  { name: 'install', path: '/install', ready: shows('Recordings arrive.') },
  { name: 'install by npm', path: '/install?way=npm', ready: shows('npm install') },
  { name: 'install in a backend', path: '/install?way=backend', ready: shows('Delete a person') },
  { name: 'keys', path: '/settings/keys', ready: shows('Works') },
  { name: 'members', path: '/settings/members', ready: shows('margaret@example.com') },
  { name: 'privacy', path: '/settings/privacy', ready: shows('Balanced') },
  { name: 'webhooks', path: '/settings/webhooks', ready: shows('No webhooks') },
  { name: 'audit log', path: '/settings/audit', ready: shows('Set the installation up') },
  { name: 'system', path: '/settings/system', ready: shows('A folder of this machine') },
  { name: 'account', path: '/account', ready: shows('Your account') },
  { name: 'nowhere', path: '/nowhere', ready: shows('There is no such page') },
  { name: 'nobody', path: '/persons/1', ready: shows('There is no such person') },
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
      await page.getByRole('button', { name: 'Add a property' }).click()
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
      await page.getByRole('button', { name: 'Verify it' }).click()
      await page.getByText('Genuine and unchanged').waitFor()
    },
  },
  {
    name: 'the player',
    path: '/sessions',
    ready: async (page) => {
      await page.getByRole('table').locator('tbody tr').first().getByRole('link').first().click()
      await page.getByText('Click on').first().waitFor()
    },
  },
  {
    name: 'an invitation',
    path: '/settings/members',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Invite somebody' }).click()
      await page.getByRole('dialog').getByLabel('E-mail').waitFor()
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

test('axe finds nothing on any screen, light or dark, at 1440 pixels and at 320', {
  timeout: 600_000,
}, async ({ lethe, browser, owner }) => {
  await lethe.api('POST', '/v1/persons', {
    externalId: 'ada',
    properties: { name: 'Ada Lovelace', email: 'ada@example.com', address: { city: 'Linz' } },
  })
  await recordVisit(browser, lethe, 'ada')
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

test('nor on the pages of who is not signed in', { timeout: 300_000 }, async ({
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
