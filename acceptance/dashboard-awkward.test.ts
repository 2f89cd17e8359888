import { expect } from 'vitest'
import { test } from './lethe.ts'

/** Ids as somebody's database may have them, and what has to be typed to have such a person erased. */
const awkward: { what: string; externalId: string; name?: string; typed?: string }[] = [
  { what: 'slashes, percent signs and what else an address has', externalId: 'a/b%2F?#;+ c&=' },
  { what: 'two dots', externalId: '..' },
  { what: 'two hundred emoji', externalId: '💧'.repeat(200) },
  { what: 'one space', externalId: ' ', typed: 'delete this person' },
  { what: 'spaces around and within', externalId: '  two  spaces  ' },
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

test.for(awkward)(
  'a person whose id is $what is opened, edited and deleted',
  async (one, { lethe, owner }) => {
    const { externalId, name, typed = externalId } = one
    const create = { externalId, properties: name === undefined ? {} : { name } }
    expect((await lethe.api('POST', '/v1/persons', create)).status).toBe(201)
    const found = async () => {
      const path = `/v1/persons?externalId=${encodeURIComponent(externalId)}`
      return (await lethe.api('GET', path)).json.persons
    }
    await owner.goto('/projects/1/persons')
    const row = owner.getByRole('table', { name: 'People' }).locator('tbody tr').first()
    await row.getByRole('link').click()
    await owner.waitForURL(/\/persons\/\d+$/)
    await owner.getByRole('button', { name: 'Copy external ID' }).click()
    expect(await owner.evaluate('navigator.clipboard.readText()')).toBe(externalId)

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
  },
)
