import { createPerson } from '@lethe/contract/person.ts'
import { expect } from 'vitest'
import { type Service, type TestProject, test } from './fixtures.ts'

// More than the buffers between the database and a client that does not read can hold.
const count = 80
const properties = { text: 'é'.repeat(120_000) }
const idOf = (n: number) => `large-${n}`

/** The head of a page of large persons, and its body, of which nothing is read yet. */
async function openPage(service: Service, project: TestProject) {
  for (let n = 0; n < count; n++) {
    await service.call(createPerson, { body: { externalId: idOf(n), properties } })
  }
  const headers = { authorization: `Bearer ${project.secretKey}` }
  const answer = await fetch(`${service.url}/v1/persons?limit=100`, { headers })
  expect(answer.status).toBe(200)
  return answer
}

test('a page of large persons is read as the client takes it, who is erased meanwhile is not in it', async ({
  service,
  db,
  project,
}) => {
  const answer = await openPage(service, project)
  // The oldest ones come last.
  await db.sql`
    delete from persons where project_id = ${project.id} and external_id in (${idOf(0)}, ${idOf(2)})`
  const { persons, nextCursor } = (await answer.json()) as {
    persons: { externalId: string; properties: unknown }[]
    nextCursor: string | null
  }
  const ids = Array.from({ length: count }, (_, n) => idOf(n)).toReversed()
  expect(persons.map(({ externalId }) => externalId)).toEqual(
    ids.filter((id) => id !== idOf(0) && id !== idOf(2)),
  )
  expect(persons.at(-1)?.properties).toEqual(properties)
  expect(nextCursor).toBeNull()
}, 60_000)

test('HEAD of a page with large persons has its head alone', async ({ service }) => {
  for (const externalId of ['one', 'two']) {
    await service.call(createPerson, { body: { externalId, properties } })
  }
  const head = await service.send('/v1/persons', { method: 'HEAD' })
  expect([head.status, head.text]).toEqual([200, ''])
  expect((await service.send('/v1/persons')).json.persons).toHaveLength(2)
})

test('a page that cannot be read to its end breaks off, and is not taken for a whole one', async ({
  service,
  db,
  project,
}) => {
  const answer = await openPage(service, project)
  await db.sql`alter table persons rename to persons_away`
  try {
    await expect(answer.text()).rejects.toThrow(/terminated/)
  } finally {
    await db.sql`alter table persons_away rename to persons`
  }
  expect((await service.send('/v1/persons?limit=1')).status).toBe(200)
}, 60_000)
