import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { codeOf, wrongCodeOf } from '../packages/server/test/authenticator.ts'
import { ownerEmail, password, test } from './lethe.ts'

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
