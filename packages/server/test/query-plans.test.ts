import { expect } from 'vitest'
import { writePerson } from '../src/persons/store.ts'
import { connectOne } from '../src/sql.ts'
import { newProject, test } from './fixtures.ts'

/** The hot statements, as their stores send them. A look at the plan of each, on many rows. */
const hot: Record<string, string> = {
  'a person by externalId': `
    select id, external_id, properties::text, created_at, updated_at from persons
    where project_id = $1 and external_id = $2`,
  'a whole person by id': `
    select external_id, properties::text, created_at, updated_at from persons
    where project_id = $1 and id = $2`,
  'a page of persons': `
    select id, external_id, properties::text from persons
    where project_id = $1 and id < coalesce($2::bigint, 9223372036854775807)
    order by id desc limit 51`,
  'a key by its hash': `
    select project_id, id, kind from keys
    where hash = decode($1, 'hex') and revoked_at is null
      and (expires_at is null or expires_at > app_now())`,
  'a deletion job': 'select id, status from deletion_jobs where project_id = $1 and id = $2',
  'the person a DELETE locks': `
    select id, deletion_job_id from persons where project_id = $1 and external_id = $2 for update`,
}

test('no hot statement reads a whole table, whatever the planner knows', async ({
  db,
  address,
}) => {
  const { client, end } = await connectOne(address)
  for (let i = 0; i < 3; i++) {
    const { id } = await newProject(db)
    await client.query(
      `with made as (
         insert into persons (project_id, id, external_id, properties, created_at, updated_at)
         select $1, (1700000000000 + n) << 20, 'p' || n, '{}', to_timestamp(1700000000 + n / 1000.0), now()
         from generate_series(1, 20000) n returning project_id, id, external_id)
       insert into person_search (project_id, person_id, text)
       select project_id, id, external_id || U&'\\FFFF\\FFFF' from made`,
      [id],
    )
    await client.query(
      `insert into keys (project_id, kind, name, hash, last4)
       select $1, 'secret', 'k', sha256(($1::int || ':' || n)::bytea), '0000'
       from generate_series(1, 2000) n`,
      [id],
    )
    await client.query(
      `insert into deletion_jobs (project_id, external_id, keep_recordings, status, started_at, completed_at)
       select $1, 'p' || n, false, 'completed', now(), now() from generate_series(1, 5000) n`,
      [id],
    )
  }
  for (const analyze of [false, true]) {
    if (analyze) await client.query('analyze')
    for (const [what, statement] of Object.entries(hot)) {
      const name = `hot${Object.keys(hot).indexOf(what)}${analyze}`
      const parameters = [...statement.matchAll(/\$(\d)/g)].map(([, n]) => Number(n))
      await client.query(`prepare ${name} as ${statement}`)
      await client.query('set plan_cache_mode = force_generic_plan')
      const values = Array(Math.max(...parameters))
        .fill('null')
        .join()
      const { rows } = await client.query(`explain execute ${name}(${values})`)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan, what).toMatch(/Index/)
      expect(plan, what).not.toMatch(/Seq Scan|Sort/)
    }
  }
  await end()
})

test('person_write and the search function read no whole table', async ({
  db,
  address,
  project,
}) => {
  const { client, end } = await connectOne(address)
  for (let i = 0; i < 50; i++) {
    await writePerson(db.sql, project.id, `w${i}`, { name: 'N' }, true)
  }
  const scans = async () => {
    await client.query('select pg_stat_force_next_flush()')
    const { rows } = await client.query(
      `select relname, seq_scan::int from pg_stat_user_tables
       where relname in ('persons', 'person_search', 'keys', 'deletion_jobs') order by 1`,
    )
    return rows
  }
  const run = async (text: string, values: unknown[]) => {
    for (let i = 0; i < 20; i++) await client.query({ name: text, text, values })
  }
  const before = await scans()
  await run(
    `select outcome from person_write($1, 'w1', jsonb_build_object('n', random()), '{}', 'w1', 'n', null, true)`,
    [project.id],
  )
  await run(`select * from search_persons($1, 'w', null, 51, 8000, 2000)`, [project.id])
  expect(await scans()).toEqual(before)
  await end()
})
