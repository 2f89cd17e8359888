import { describe, expect } from 'vitest'
import { reach } from '../src/reach.ts'
import { connectOne } from '../src/sql.ts'
import { sendRaw, test } from './fixtures.ts'
import {
  eventually,
  greeting,
  newEnvironment,
  runLethe,
  startLethe,
  workerGreeting,
} from './lethe-process.ts'
import { hasPgbouncer, startPgbouncer } from './pgbouncer.ts'

const limit = { timeout: 90_000 }

describe.runIf(hasPgbouncer)('behind pgbouncer in transaction mode', () => {
  test(
    'a service and a worker do all they do without it, again and again',
    limit,
    async ({ address, project }) => {
      const pooler = await startPgbouncer(address)
      try {
        const env = await newEnvironment(undefined, { DATABASE_URL: pooler.url })
        // The second start finds nothing that the first one left on a connection of the pooler.
        for (const id of ['ada', 'bob']) {
          const service = await startLethe(['serve', '--no-worker'], env, greeting)
          const worker = await startLethe(['worker'], env, workerGreeting)
          await writeReadAndErase(service.found, project.secretKey, id)
          expect(await service.stop()).toBe(0)
          expect(await worker.stop()).toBe(0)
          expect(`${service.output()}${worker.output()}`).not.toMatch(/"level":50/)
        }
      } finally {
        await pooler.close()
      }
    },
  )

  test('two that migrate at once take turns, and no lock stays', limit, async ({ address }) => {
    const { client, end } = await connectOne({ ...address, database: 'postgres' })
    const database = `${address.database}_fresh`
    await client.query(`create database ${database} template template0 encoding 'UTF8'`)
    const pooler = await startPgbouncer({ ...address, database })
    try {
      const env = await newEnvironment(undefined, { DATABASE_URL: pooler.url })
      const two = [1, 2].map(() => startLethe(['serve'], { ...env }, greeting))
      for (const one of await Promise.all(two)) expect(await one.stop()).toBe(0)
      const { rows } = await client.query(
        `select from pg_locks l join pg_database d on d.oid = l.database
         where locktype = 'advisory' and datname = $1`,
        [database],
      )
      expect(rows).toEqual([])
    } finally {
      await pooler.close()
      await client.query(`drop database ${database} with (force)`)
      await end()
    }
  })

  test('it is recognised, and that it loses prepared statements', limit, async ({ address }) => {
    const pooler = await startPgbouncer(address)
    try {
      expect((await reach(pooler.url)).pooler).toBe('unnamed')
      const env = await newEnvironment(undefined, { DATABASE_URL: pooler.url })
      const { findings } = JSON.parse((await runLethe(['doctor', '--json'], env)).out)
      expect(findings).toContainEqual({
        check: 'pooler',
        state: 'warning',
        words: expect.stringMatching(/prepared statements are not used.*statement_timeout/),
      })
    } finally {
      await pooler.close()
    }
  })
})

test('a database without a pooler is recognised as one', async ({ address }) => {
  const { user, password = '', host, port, database } = address
  const url = `postgres://${user}:${password}@localhost:${port}/${database}?host=${host}`
  expect((await reach(url)).pooler).toBeUndefined()
})

const uncovered = 'skipped: there is no pgbouncer on this machine'
if (!hasPgbouncer) test.skip(uncovered, () => {})

/** What a backend does to a person, in many requests at once, so that connections are shared. */
async function writeReadAndErase(url: string, key: string, id: string): Promise<void> {
  const send = (path: string, method = 'GET', body?: object) =>
    sendRaw(url, path, key, { method, ...(body && { body }) })
  const ids = Array.from({ length: 30 }, (_, n) => `${id}-${n}`)
  const made = await Promise.all(
    ids.map((externalId) =>
      send('/v1/persons', 'POST', { externalId, properties: { name: externalId } }),
    ),
  )
  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]))
  const read = await Promise.all(ids.map((one) => send(`/v1/persons/${one}`)))
  expect(new Set(read.map(({ status }) => status))).toEqual(new Set([200]))
  const found = await send(`/v1/persons?search=${id}-1&limit=50`)
  expect(found.json.persons ?? found.json.data ?? found.json.items).toHaveLength(11)
  const patched = await send(`/v1/persons/${id}-1`, 'PATCH', { properties: { plan: 'pro' } })
  expect(patched.status).toBe(200)
  const deletion = await send(`/v1/persons/${id}-1`, 'DELETE')
  expect(deletion.status).toBe(202)
  const jobId = deletion.json.job?.id ?? deletion.json.id
  await eventually(async () => {
    const job = (await send(`/v1/deletion-jobs/${jobId}`)).json
    return (job.job ?? job).status === 'completed'
  })
  expect((await send(`/v1/persons/${id}-1`)).status).toBe(404)
}
