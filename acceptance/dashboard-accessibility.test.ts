import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Lethe, newWindow, recordVisit, test } from './lethe.ts'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Screen {
  name: string
  path: string
  /** Goes to what is to be looked at, and waits until it is there. */
  ready: (page: Page) => Promise<unknown>
}

const shows = (text: string | RegExp) => (page: Page) =>
  page.getByText(text).filter({ visible: true }).first().waitFor()

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

/** Where the focus is caught at the ends of what is open, and passed on: nobody rests on them. */
const exclude = [['[data-base-ui-focus-guard]']]

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

interface Violation {
  id: string
  nodes: { html: string; failureSummary: string }[]
}

/** What axe finds, and whether the page has to be scrolled sideways. */
async function problemsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  // Motion is reduced in these windows, so that what comes in stands at once.
  await expect
    .poll(() =>
      page.evaluate('document.getAnimations().some((one) => one.playState === "running")'),
    )
    .toBe(false)
  const found = (await page.evaluate(
    `axe.run(${JSON.stringify({ exclude })}, ${JSON.stringify({
      runOnly: rules,
      // A menu hangs beside the page, and closes as soon as the focus leaves it.
      rules: { region: { enabled: (await page.getByRole('menu').count()) === 0 } },
    })}).then((result) => result.violations)`,
  )) as Violation[]
  const problems = found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  )
  const root = 'document.documentElement'
  const overflow = Number(await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`))
  return overflow > 1 ? [...problems, `wider than the window by ${overflow} pixels`] : problems
}

const widths = [1440, 320]
const colorSchemes = ['light', 'dark'] as const

/** Each screen is opened at each width, as what is there differs, and looked at by day and night. */
async function look(page: Page, list: Screen[]): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const { name, path, ready } of list) {
    for (const width of widths) {
      await page.setViewportSize({ width, height: 800 })
      await page.goto(path)
      await ready(page)
      for (const colorScheme of colorSchemes) {
        await page.emulateMedia({ colorScheme })
        const problems = await problemsOf(page)
        if (problems.length > 0) found[`${name}, ${colorScheme}, ${width} pixels`] = problems
      }
    }
  }
  return found
}

async function openWindow(browser: Browser, lethe: Lethe, owner?: Page): Promise<Page> {
  const context = await newWindow(browser, lethe, {
    reducedMotion: 'reduce',
    ...(owner && { storageState: await owner.context().storageState() }),
  })
  return context.newPage()
}

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
