import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { codeOf } from '../packages/server/test/authenticator.ts'
import { look } from './axe.ts'
import { ageProofs, newWindow, ownerEmail, password, setUp, test } from './lethe.ts'

/** The browser gets an authenticator that approves everything. */
async function withAuthenticator(page: Page): Promise<void> {
  const client = await page.context().newCDPSession(page)
  await client.send('WebAuthn.enable')
  await client.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

async function addAuthenticator(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Set up two-factor authentication…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  const secret = (await dialog.getByText(/^[A-Z2-7]{16,}=*$/).textContent()) as string
  await dialog.getByLabel('Authenticator code').fill(codeOf(secret))
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  await page.getByText('Two-factor authentication is on').first().waitFor()
}

async function signOutAndGivePassword(page: Page): Promise<void> {
  await page.getByRole('button', { name: /Margaret Hamilton/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('Email', { exact: true }).fill(ownerEmail)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

test('a passkey is added, signs in and confirms instead of a code, and is removed', async ({
  lethe,
  browser,
}) => {
  // Browsers have passkeys for names, not for addresses.
  const named = { ...lethe, url: lethe.url.replace('127.0.0.1', 'localhost') }
  named.setUpLink = lethe.setUpLink.replace('127.0.0.1', 'localhost')
  const page = await (await newWindow(browser, named)).newPage()
  await withAuthenticator(page)
  await setUp(page, named)
  await page.goto('/projects/1/account')
  await addAuthenticator(page)

  await page.getByRole('button', { name: 'Add passkey…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Laptop')
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('The passkey was added').first().waitFor()
  await page.getByText('Never used').waitFor()
  const account = { name: 'account', path: '/projects/1/account', ready: 'Never used' }
  expect(await look(page, [account])).toEqual({})
  await page.setViewportSize({ width: 1280, height: 800 })

  await signOutAndGivePassword(page)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByRole('button', { name: /Margaret Hamilton/ }).waitFor()

  await page.goto('/projects/1/account')
  await page.getByText(/^Last used/).waitFor()
  await ageProofs(lethe)
  await page.getByRole('button', { name: 'Remove passkey Laptop…' }).click()
  await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
  const again = page.getByRole('dialog', { name: 'Confirm it’s you' })
  await again.getByLabel('Password').fill(password)
  await again.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByText('The passkey was removed').first().waitFor()
  await signOutAndGivePassword(page)
  await page.getByLabel('Code').waitFor()
  expect(await page.getByRole('button', { name: 'Use a passkey' }).count()).toBe(0)
}, 120_000)
