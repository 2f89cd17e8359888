import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPerson } from '@lethe/contract/person.ts'
import { expect } from 'vitest'
import {
  test as base,
  newProject,
  type Service,
  startService,
  type TestProject,
} from './fixtures.ts'

// More than the buffers between the database and a client that does not read can hold.
const count = 80
const properties = { text: 'é👧"'.repeat(30_000) }
const idOf = (n: number) => `large-${n}`

/** `page`: a project with a page of large persons, the same for all tests of this file. */
const test = base.extend<{ page: TestProject }>({
  page: [
    async ({ db, address }, use) => {
      const project = await newProject(db)
      const service = await startService(db, address, project)
      for (let n = 0; n < count; n++) {
        await service.call(createPerson, { body: { externalId: idOf(n), properties } })
      }
      await service.close()
      await use(project)
    },
    { scope: 'file' },
  ],
})

/** The head of a page of large persons, and its body, of which nothing is read yet. */
async function openPage(service: Service, page: TestProject) {
  const headers = { authorization: `Bearer ${page.secretKey}` }
  const answer = await fetch(`${service.url}/v1/persons?limit=100`, { headers })
  expect(answer.status).toBe(200)
  return answer
}

test('HEAD of a page with large persons returns only the headers', async ({ service }) => {
  for (const externalId of ['one', 'two']) {
    await service.call(createPerson, { body: { externalId, properties } })
  }
  const head = await service.send('/v1/persons', { method: 'HEAD' })
  expect([head.status, head.text]).toEqual([200, ''])
  expect((await service.send('/v1/persons')).json.persons).toHaveLength(2)
  const found = (await service.send('/v1/persons?search=tw')).json.persons
  expect(found).toMatchObject([{ externalId: 'two', properties }])
})

test('a page that cannot be completed breaks off, so that no client takes it for a whole one', async ({
  service,
  db,
  page,
}) => {
  const answer = await openPage(service, page)
  await db.sql`alter table persons rename to persons_away`
  try {
    await expect(answer.text()).rejects.toThrow(/terminated/)
  } finally {
    await db.sql`alter table persons_away rename to persons`
  }
  expect((await service.send('/v1/persons?limit=1', { key: page.secretKey })).status).toBe(200)
}, 60_000)

/** What came of a page after two seconds in which next to nothing of it was read. */
async function readAfterSips(service: Service, page: TestProject): Promise<string> {
  const client = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
  const authorization = `Authorization: Bearer ${page.secretKey}`
  client.write(
    `GET /v1/persons?limit=100 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${authorization}\r\n\r\n`,
  )
  for (let sips = 0; sips < 100; sips++) {
    client.read(16)
    await sleep(20)
  }
  let end = ''
  for await (const part of client.setEncoding('latin1')) end = (end + part).slice(-7)
  return end
}

test('a client that reads a page too slowly is cut off, and one that is slow for a moment is not', async ({
  service,
  db,
  address,
  page,
}) => {
  expect(await readAfterSips(service, page)).toBe('\r\n0\r\n\r\n')
  const strict = await startService(db, address, page, {
    departureLimits: { graceSeconds: 0.5, leastBytesPerSecond: 20_000_000 },
  })
  expect(await readAfterSips(strict, page)).not.toContain('\r\n0\r\n')
  await strict.close()
}, 60_000)

test('a page of large persons is streamed as the client reads, without persons erased meanwhile', async ({
  service,
  db,
  page,
}) => {
  const answer = await openPage(service, page)
  // The oldest ones come last.
  await db.sql`
    delete from persons where project_id = ${page.id} and external_id in (${idOf(0)}, ${idOf(2)})`
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
