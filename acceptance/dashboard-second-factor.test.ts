import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { codeOf, wrongCodeOf } from '../packages/server/test/authenticator.ts'
import { look } from './axe.ts'
import { ageProofs, newWindow, ownerEmail, password, test } from './lethe.ts'

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: /Margaret Hamilton/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
}

async function givePassword(page: Page): Promise<void> {
  await page.getByLabel('Email', { exact: true }).fill(ownerEmail)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function giveCode(page: Page, code: string): Promise<void> {
  await page.getByLabel('Code').fill(code)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

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

const isIn = (page: Page) => page.getByRole('button', { name: /Margaret Hamilton/ }).waitFor()

test('a second factor is added, required, replaced by a recovery code once, and removed', async ({
  owner,
}) => {
  await owner.goto('/projects/1/account')
  await owner.getByRole('button', { name: 'Set up two-factor authentication…' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  const secret = (await dialog.getByText(/^[A-Z2-7]{16,}=*$/).textContent()) as string
  const recoveryCodes = await dialog.getByRole('listitem').allTextContents()
  expect(recoveryCodes).toHaveLength(10)

  // One that the authenticator does not show: nothing is switched on.
  await dialog.getByLabel('Authenticator code').fill(wrongCodeOf(secret))
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Authenticator code').fill(codeOf(secret))
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  await owner.getByText('Two-factor authentication is on').first().waitFor()

  await signOut(owner)
  await givePassword(owner)
  await owner.getByRole('heading', { name: 'Two-factor authentication' }).waitFor()
  // The password alone opens no page.
  await owner.goto('/projects/1/persons')
  await owner.getByLabel('Email', { exact: true }).waitFor()
  await givePassword(owner)
  await giveCode(owner, wrongCodeOf(secret))
  await owner.getByRole('alert').waitFor()
  // The code of the step above was used: each is good once.
  await giveCode(owner, codeOf(secret, 1))
  await isIn(owner)

  await signOut(owner)
  await givePassword(owner)
  await giveCode(owner, recoveryCodes[0] as string)
  await isIn(owner)

  await owner.goto('/projects/1/account')
  await owner.getByRole('button', { name: 'Turn off…' }).click()
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByLabel('Two-factor code').fill(recoveryCodes[1] as string)
  await dialog.getByRole('button', { name: 'Turn off', exact: true }).click()
  await owner.getByRole('button', { name: 'Set up two-factor authentication…' }).waitFor()
  await signOut(owner)
  await givePassword(owner)
  await isIn(owner)
})

test('a passkey is added, signs in and confirms instead of a code, and is removed', async ({
  lethe,
  browser,
  owner,
}) => {
  void owner
  // Browsers have passkeys for names, not for addresses.
  const named = { ...lethe, url: lethe.url.replace('127.0.0.1', 'localhost') }
  const page = await (await newWindow(browser, named)).newPage()
  await withAuthenticator(page)
  await page.goto('/sign-in')
  await givePassword(page)
  await isIn(page)
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

  await signOut(page)
  await givePassword(page)
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
  await signOut(page)
  await givePassword(page)
  await page.getByLabel('Code').waitFor()
  expect(await page.getByRole('button', { name: 'Use a passkey' }).count()).toBe(0)
})
