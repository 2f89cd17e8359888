import { randomUUID } from 'node:crypto'
import { listPersons } from '@lethe/contract/dashboard-persons.ts'
import { describe, expect, inject } from 'vitest'
import { checkDatabase, migrate } from '../src/migrate.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { test as base, eraseAll, erasureOptions } from './dashboard-fixtures.ts'

/** `address`: a database of this file's own, reached by a role with the rights of the README. */
const test = base.extend<{ address: DbAddress }>({
  address: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const server = { ...inject('postgres'), database: 'postgres' }
      const name = `lethe_least_${randomUUID().replaceAll('-', '')}`
      const admin = await connectOne(server)
      await admin.client.query(`create role ${name} login password 'least'`)
      await admin.client.query(`create database ${name} template template0 encoding 'UTF8'`)
      const inside = await connectOne({ ...server, database: name })
      await inside.client.query(`revoke all on database ${name} from public`)
      await inside.client.query(`grant connect, create, temporary on database ${name} to ${name}`)
      await inside.client.query(`grant usage, create on schema public to ${name}`)
      await inside.end()
      const address = { ...server, user: name, password: 'least', database: name }
      await checkDatabase(address)
      await migrate(address)
      await migrate(address, 'keys')
      await use(address)
      await admin.client.query(`drop database ${name} with (force)`)
      await admin.client.query(`drop role ${name}`)
      await admin.end()
    },
    { scope: 'file' },
  ],
})

describe('a role that may create in its database, and nothing else', () => {
  test('migrates it, records, shows and erases a person in it', async ({
    db,
    dashboard,
    recordings,
  }) => {
    const [role] = await db.sql`
      select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as "canMore",
        pg_has_role(datdba, 'member') as "isOwner"
      from pg_roles, pg_database
      where rolname = current_user and datname = current_database()`
    expect(role).toEqual({ canMore: false, isOwner: false })

    await dashboard.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    const { sessionId } = await dashboard.record('ada')
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const search = await owner.call(listPersons, { params, query: { limit: 10, search: 'ada' } })
    expect(search.body.persons).toHaveLength(1)
    expect((await dashboard.send(`/v1/sessions/${sessionId}`)).status).toBe(200)

    const deleted = await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
    expect(deleted.status).toBe(202)
    expect(await eraseAll(await erasureOptions(recordings))).toEqual(['completed'])
    const job = await dashboard.send(`/v1/deletion-jobs/${deleted.json.job.id}`)
    expect(job.json).toMatchObject({ job: { status: 'completed' } })
    expect((await dashboard.send('/v1/persons/ada')).status).toBe(404)
    const receipt = await dashboard.send(`/v1/deletion-jobs/${deleted.json.job.id}/receipt`)
    expect(receipt.status).toBe(200)
    expect(await db.sql`select from persons`).toHaveLength(0)
  })
})
