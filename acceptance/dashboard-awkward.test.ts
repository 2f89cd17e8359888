import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { byDepth } from '../packages/server/test/proof/deep.ts'
import { test as base } from './lethe.ts'

/** Ids as somebody's database may have them, and what has to be typed to have such a person erased. */
interface Awkward {
  what: string
  externalId: string
  name?: string
  typed?: string
}

const awkward: Awkward[] = [
  { what: 'slashes, percent signs and what else an address has', externalId: 'a/b%2F?#;+ c&=' },
  { what: 'two dots', externalId: '..' },
  { what: 'two hundred emoji', externalId: '💧'.repeat(200) },
  { what: 'one space', externalId: ' ', typed: 'delete this person' },
  { what: 'spaces around and within', externalId: '  two  spaces  ', typed: 'delete this person' },
  { what: 'a character of no width', externalId: 'ada\u200b', typed: 'delete this person' },
  { what: 'a line break', externalId: 'line\nbreak', typed: 'delete this person' },
  { what: 'two hundred characters without a space', externalId: 'x'.repeat(200) },
  { what: 'Arabic, and a name of spaces', externalId: 'عمر-١٢٣', name: '   ' },
  {
    what: 'a turn of the direction of writing',
    externalId: '\u202Egnp.exe',
    typed: 'delete this person',
  },
  { what: 'markup', externalId: '<img src=x onerror=alert(1)>', name: '<b>Bold</b>' },
]

/** The page of each, by what is awkward about them; the owner is at the list of them all. */
const test = base.extend<{ pages: Record<string, string> }>({
  pages: [
    async ({ lethe, owner }, use) => {
      for (const { externalId, name } of awkward) {
        const create = { externalId, properties: name === undefined ? {} : { name } }
        expect((await lethe.api('POST', '/v1/persons', create)).status).toBe(201)
      }
      await owner.goto('/projects/1/persons')
      const rows = owner.getByRole('table', { name: 'People' }).locator('tbody tr')
      await expect.poll(() => rows.count()).toBe(awkward.length)
      const links = await rows
        .getByRole('link')
        .evaluateAll((all) =>
          all.map((link) => String((link as unknown as { pathname: string }).pathname)),
        )
      const newestFirst = awkward.map(({ what }) => what).reverse()
      await use(Object.fromEntries(newestFirst.map((what, row) => [what, links[row] as string])))
    },
    { scope: 'file' },
  ],
})

/** Comes to the page of such a person from the list. */
async function openPerson(
  { what, externalId }: Awkward,
  pages: Record<string, string>,
  owner: Page,
): Promise<void> {
  // The page of a person has two: in the menu and above its name.
  await owner.getByRole('link', { name: 'People', exact: true }).first().click()
  await owner.locator(`tbody a[href="${pages[what]}"]`).click()
  // Only the person's page has it; each row of the list has a button to copy an id too.
  await owner.getByRole('link', { name: /Properties/ }).waitFor()
  await owner.getByRole('button', { name: 'Copy external ID' }).click()
  expect(await owner.evaluate('navigator.clipboard.readText()')).toBe(externalId)
}

/** What an address, a line, a name and markup can break; a deep run has all. */
const whole = byDepth(
  awkward.filter(({ what }) => /^(?:slashes|a line break|Arabic|markup)/.test(what)),
  awkward,
)

test.for(whole)(
  'a person whose id is $what is opened, edited and deleted',
  async (one, { lethe, owner, pages }) => {
    const { externalId, typed = externalId } = one
    await openPerson(one, pages, owner)
    const found = async () => {
      const path = `/v1/persons?externalId=${encodeURIComponent(externalId)}`
      return (await lethe.api('GET', path)).json.persons
    }

    await owner.getByRole('link', { name: /Properties/ }).click()
    await owner.getByRole('button', { name: 'Add property' }).click()
    const dialog = owner.getByRole('dialog')
    await dialog.getByLabel('Key').fill(`key of ${externalId.replace('\n', ' ').slice(0, 90)}`)
    await dialog.getByLabel('Value').fill(externalId.replace('\n', ' '))
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    const [person] = await found()
    expect(Object.values(person.properties)).toContain(externalId.replace('\n', ' '))

    await owner.getByRole('button', { name: 'Delete…' }).click()
    await dialog.getByLabel(/to confirm/).fill(typed)
    await dialog.getByRole('button', { name: /^Delete person/ }).click()
    await owner.getByRole('heading', { name: /This person was deleted/ }).waitFor()
    expect(await found()).toEqual([])
    await owner.getByRole('link', { name: 'Show job' }).click()
    await dialog.getByText('Attempt 1').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
  },
)

test('a person whose id is as awkward in another way is opened', async ({ pages, owner }) => {
  for (const one of awkward) if (!whole.includes(one)) await openPerson(one, pages, owner)
})
