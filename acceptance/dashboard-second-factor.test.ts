import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { codeOf, wrongCodeOf } from '../packages/server/test/authenticator.ts'
import { ownerEmail, password, test } from './lethe.ts'

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: /Margaret Hamilton/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
}

async function givePassword(page: Page): Promise<void> {
  await page.getByLabel('E-mail').fill(ownerEmail)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function giveCode(page: Page, code: string): Promise<void> {
  await page.getByLabel('Code').fill(code)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

const isIn = (page: Page) => page.getByRole('button', { name: /Margaret Hamilton/ }).waitFor()

test('a second factor is added, asked for, stood in for by a recovery code, and taken off', async ({
  owner,
}) => {
  await owner.goto('/projects/1/account')
  await owner.getByRole('button', { name: 'Add a second factor…' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByRole('button', { name: 'Go on' }).click()
  const secret = (await dialog.getByText(/^[A-Z2-7]{16,}=*$/).textContent()) as string
  const recoveryCodes = await dialog.getByRole('listitem').allTextContents()
  expect(recoveryCodes).toHaveLength(10)

  // One that the authenticator does not show: nothing is switched on.
  await dialog.getByLabel('Code of the authenticator').fill(wrongCodeOf(secret))
  await dialog.getByRole('button', { name: 'Switch it on' }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Code of the authenticator').fill(codeOf(secret))
  await dialog.getByRole('button', { name: 'Switch it on' }).click()
  await owner.getByText('The second factor is on').first().waitFor()

  await signOut(owner)
  await givePassword(owner)
  await owner.getByRole('heading', { name: 'Second factor' }).waitFor()
  // The password alone opens no page.
  await owner.goto('/projects/1/persons')
  await owner.getByLabel('E-mail').waitFor()
  await givePassword(owner)
  await giveCode(owner, wrongCodeOf(secret))
  await owner.getByRole('alert').waitFor()
  await giveCode(owner, codeOf(secret))
  await isIn(owner)

  await signOut(owner)
  await givePassword(owner)
  await giveCode(owner, recoveryCodes[0] as string)
  await isIn(owner)

  await owner.goto('/projects/1/account')
  await owner.getByRole('button', { name: 'Take it off…' }).click()
  await dialog.getByLabel('Your password').fill(password)
  await dialog.getByRole('button', { name: 'Take it off', exact: true }).click()
  await owner.getByRole('button', { name: 'Add a second factor…' }).waitFor()
  await signOut(owner)
  await givePassword(owner)
  await isIn(owner)
})
