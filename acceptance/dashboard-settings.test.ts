import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Lethe, newWindow, password, test } from './lethe.ts'

async function statusWith(lethe: Lethe, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  return (await fetch(`${lethe.url}/v1/persons`, { headers })).status
}

async function chooseFor(page: Page, key: string, what: string): Promise<void> {
  await page
    .getByRole('button', { name: `Actions for the key ${key}` })
    .first()
    .click()
  await page.getByRole('menuitem', { name: what }).click()
}

test('keys are made, rotated with an overlap, and revoked', async ({ lethe, owner }) => {
  await owner.goto('/projects/1/settings/keys')
  await owner.getByRole('button', { name: 'New key' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Billing')
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const first = (await dialog.getByText(/^sk_\w+$/).textContent()) ?? ''
  await dialog.getByRole('button', { name: 'Done' }).click()
  expect(await statusWith(lethe, first)).toBe(200)

  await chooseFor(owner, 'Billing', 'Rotate…')
  await dialog.getByLabel('Overlap').selectOption('3600')
  await dialog.getByRole('button', { name: 'Rotate key' }).click()
  const second = (await dialog.getByText(/^sk_\w+$/).textContent()) ?? ''
  await dialog.getByRole('button', { name: 'Done' }).click()
  await owner.getByRole('table').getByText('Expiring').waitFor()
  expect([await statusWith(lethe, first), await statusWith(lethe, second)]).toEqual([200, 200])

  const row = owner.getByRole('row').filter({ hasText: 'Expiring' })
  await row.getByRole('button', { name: 'Actions for the key Billing' }).click()
  await owner.getByRole('menuitem', { name: 'Revoke…' }).click()
  await dialog.getByRole('button', { name: 'Revoke key' }).click()
  await owner.getByRole('table').getByText('Revoked').waitFor()
  await expect.poll(() => statusWith(lethe, first), { timeout: 10_000 }).toBe(401)
  expect(await statusWith(lethe, second)).toBe(200)
})

test('a webhook gets an event for a deletion, and a delivery can be resent', async ({
  lethe,
  owner,
}) => {
  const received: string[] = []
  const receiver = createServer((request, response) => {
    received.push(String(request.headers['webhook-id']))
    request.resume().on('end', () => response.writeHead(204).end())
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  await owner.goto('/projects/1/settings/webhooks')
  await owner.getByRole('button', { name: 'New webhook' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel('URL').fill(address)
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  await dialog.getByText(/^whsec_/).waitFor()
  await dialog.getByRole('button', { name: 'Done' }).click()

  await lethe.api('POST', '/v1/persons', { externalId: 'told' })
  await lethe.api('DELETE', '/v1/persons/told')
  await owner.getByRole('link', { name: address }).click()
  await owner.getByRole('table', { name: 'Deliveries' }).getByText('Delivered').waitFor()
  expect(received).toHaveLength(1)
  await owner.getByRole('button', { name: /^Resend/ }).click()
  await expect.poll(() => received.length, { timeout: 30_000 }).toBe(2)
  expect(received[1]).toBe(received[0])
  receiver.close()
})

/** Comes in by an invitation of the owner's, in a window of their own, as the screens for it do. */
async function invite(
  lethe: Lethe,
  browser: Browser,
  owner: Page,
  invitation: { email: string; role: string; mayDeletePersons: boolean },
): Promise<Page> {
  const headers = { origin: lethe.url }
  const invited = await owner
    .context()
    .request.post('/dashboard/v1/invitations', { data: invitation, headers })
  const token = new URL((await invited.json()).link).hash.slice(1)
  const context = await newWindow(browser, lethe)
  const data = { token, name: `The ${invitation.role}`, password }
  const joined = await context.request.post('/dashboard/v1/invitations/accept', { data, headers })
  expect(joined.status()).toBe(201)
  return context.newPage()
}

/** That the server refuses the rest, whatever a page shows, is in roles.test.ts. */
test('a role sees what it may do', async ({ lethe, browser, owner }) => {
  await lethe.api('POST', '/v1/persons', { externalId: 'roles', properties: { name: 'Some Body' } })
  const roles = [
    { role: 'viewer', edits: false, deletes: false },
    { role: 'member', edits: true, deletes: true },
  ]
  for (const { role, edits, deletes } of roles) {
    const email = `${role}@example.com`
    const page = await invite(lethe, browser, owner, { email, role, mayDeletePersons: deletes })
    await page.goto('/projects/1/persons?search=roles')
    await page.getByRole('link', { name: 'Some Body' }).click()
    const isOff = async (name: string) =>
      (await page.getByRole('button', { name }).getAttribute('aria-disabled')) === 'true'
    expect(await isOff('Delete…'), `${role} deletes`).toBe(!deletes)
    await page.getByRole('link', { name: /Properties/ }).click()
    await page.getByRole('table', { name: 'Properties' }).waitFor()
    expect(await isOff('Add property'), `${role} edits`).toBe(!edits)
    await page.context().close()
  }
})

test('a member who is invited comes in, and one who is removed is out at once', async ({
  lethe,
  browser,
  owner,
}) => {
  await owner.goto('/projects/1/settings/members')
  await owner.getByRole('button', { name: 'Invite member' }).click()
  const dialog = owner.getByRole('dialog')
  await dialog.getByLabel('Email', { exact: true }).fill('gone@example.com')
  await dialog.getByText('Member', { exact: true }).click()
  await dialog.getByLabel('Can delete people').check()
  await dialog.getByRole('button', { name: 'Create invitation' }).click()
  const link = (await dialog.getByText(/\/join#/).textContent()) ?? ''
  await dialog.getByRole('button', { name: 'Done' }).click()
  const page = await (await newWindow(browser, lethe)).newPage()
  await page.goto(link)
  await page.getByLabel('Your name').fill('The Member')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Join' }).click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  const row = owner.getByRole('row').filter({ hasText: 'gone@example.com' })
  await row.getByRole('button', { name: /^Actions for/ }).click()
  await owner.getByRole('menuitem', { name: 'Remove…' }).click()
  await owner.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click()
  // What was shown is covered, and there is no way back into it.
  const out = page.getByRole('dialog', { name: 'You’ve been signed out' })
  await out.getByLabel('Password').fill(password)
  await out.getByRole('button', { name: 'Sign in' }).click()
  await out.getByRole('alert').waitFor()
  await out.getByRole('button', { name: 'Leave this page' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.context().close()
})

test('the audit log says who did what, and leads to it', async ({ owner }) => {
  await owner.goto('/projects/1/settings/audit')
  const log = owner.getByRole('table', { name: 'Audit log' })
  await log.getByText('Removed a member').first().waitFor()
  await log.getByText('email: gone@example.com').first().waitFor()
  await owner.getByLabel('Action').selectOption('key.rotated')
  await expect.poll(() => log.locator('tbody tr').count()).toBe(1)
  await log.getByText(/^name: Billing .* overlap seconds: 3600$/).waitFor()
  await owner.reload()
  await expect.poll(() => log.locator('tbody tr').count()).toBe(1)
})

test('masking and retention are set for the project', async ({ owner }) => {
  await owner.goto('/projects/1/settings/privacy')
  await owner.getByText('Strict', { exact: true }).click()
  await owner.getByLabel('Retention (days)').fill('14')
  await owner.getByRole('button', { name: 'Save' }).click()
  // Keeping them for less deletes some: that is asked for twice.
  const dialog = owner.getByRole('dialog', { name: 'Delete older recordings?' })
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await owner.getByRole('button', { name: 'Save' }).click()
  await dialog.getByRole('button', { name: 'Save and delete' }).click()
  await owner.getByText('Settings saved').waitFor()
  await owner.reload()
  await expect.poll(() => owner.getByRole('radio', { name: 'Strict' }).isChecked()).toBe(true)
  expect(await owner.getByLabel('Retention (days)').inputValue()).toBe('14')
})

test('the state of the installation is on one page', async ({ owner }) => {
  await owner.goto('/projects/1/settings/system')
  await owner.getByText(/PostgreSQL \d+/).waitFor()
  await owner.getByText('Folder on this machine').waitFor()
  await expect.poll(() => owner.getByText('Healthy', { exact: true }).count()).toBe(2)
})
