import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { forgetDeleted } from '../src/erasure/withdrawals.ts'
import { updateProjectSettings } from '../src/projects/settings-store.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import { expireRecordings } from '../src/retention/retention.ts'
import type { Sql } from '../src/sql.ts'
import { newProject } from './fixtures.ts'
import { blobKeys, startIngesting, test } from './recordings-fixtures.ts'

describe('a visitor’s withdrawal', () => {
  test('makes what this browser recorded unreadable at once, deletes it, and touches no other browser', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    await updateProjectSettings(db.sql, project.id, { allowsWithdrawal: true })
    const [mine, other] = [await ingesting.start(), await ingesting.start()]
    for (const one of [mine, other]) {
      await ingesting.chunk(one)
      expect((await ingesting.identify(one.browserId, 'ada')).status).toBe(200)
    }
    const withdraw = () => ingesting.ingest('withdraw', { browserId: mine.browserId })
    expect([(await withdraw()).status, (await withdraw()).json]).toEqual([200, { next: 'stop' }])

    expect(await countBrowserKeys(db.sql, project.id, [mine.browserId])).toBe(0)
    expect((await ingesting.chunk({ ...mine, number: 1 })).status).toBe(410)
    expect((await ingesting.ingest('start', { browserId: mine.browserId })).status).toBe(410)
    expect((await ingesting.identify(mine.browserId, 'ada')).status).toBe(410)
    const { sessions } = (await ingesting.send('/v1/persons/ada/sessions')).json
    expect(sessions.map(({ id }: { id: string }) => id)).toEqual([other.sessionId])

    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, browsers: 1 })
    const keys = await blobKeys(recordings)
    expect(keys.filter((key) => key.includes(mine.browserId))).toEqual([])
    expect(keys.filter((key) => key.includes(other.browserId))).toHaveLength(1)
    // Asked again, also of what is there no more or was never there, it says the same.
    expect((await withdraw()).json).toEqual({ next: 'stop' })
    for (const browserId of [randomUUID(), 'x']) {
      expect((await ingesting.ingest('withdraw', { browserId })).json).toEqual({ next: 'stop' })
    }
  })

  test('is a setting of the project, off by default, and never reaches another project', async ({
    ingesting,
    recordings,
    address,
    db,
    project,
  }) => {
    const { browserId } = await ingesting.start()
    const refused = await ingesting.ingest('withdraw', { browserId })
    expect([refused.status, refused.json.error.code]).toEqual([403, 'forbidden'])
    const other = await newProject(db)
    await updateProjectSettings(db.sql, other.id, { allowsWithdrawal: true })
    const elsewhere = await startIngesting(recordings, address, other)
    expect((await elsewhere.ingest('withdraw', { browserId })).status).toBe(200)
    await elsewhere.close()
    expect(await countBrowserKeys(db.sql, project.id, [browserId])).toBe(1)
    expect((await ingesting.identify(browserId, 'ada')).status).toBe(200)
  })

  test('is forgotten once it is in the ledger and its browser is gone, some at a time however many withdrew', async ({
    db,
    project,
  }) => {
    await db.sql`
      insert into withdrawals (project_id, browser_id, entry_id, is_entered)
      select ${project.id}, gen_random_uuid(), gen_random_uuid(), true from generate_series(1, 300)`
    await db.sql`
      with browser as (insert into browsers (project_id) values (${project.id}) returning id)
      insert into withdrawals (project_id, browser_id, entry_id, is_entered)
      select ${project.id}, id, gen_random_uuid(), true from browser`
    const left = async () =>
      (await db.sql`select from withdrawals where project_id = ${project.id}`).length
    const counted: number[] = []
    const sql: Sql = async <Row extends object>(
      strings: TemplateStringsArray,
      ...values: unknown[]
    ) => {
      const rows = await db.sql<Row>(strings, ...values)
      if (/^\s*delete/.test(strings[0] ?? '')) counted.push(rows.length)
      return rows
    }
    await forgetDeleted(sql, 100)
    expect(counted).toEqual([100, 100, 100, 0])
    expect(await left()).toBe(1)
  })
})
