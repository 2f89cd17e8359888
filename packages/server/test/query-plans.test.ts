import { Sql as Statement } from 'sql-template-tag'
import { expect } from 'vitest'
import { findDeletionJob } from '../src/erasure/jobs.ts'
import {
  findPerson,
  findPersonInPieces,
  listPersons,
  lockPerson,
  writePerson,
} from '../src/persons/store.ts'
import { findWorkingKey } from '../src/projects/store.ts'
import { connectOne, type Sql } from '../src/sql.ts'
import { newProject, test } from './fixtures.ts'

/** The product's functions whose statements are hot. A look at the plan of each, on many rows. */
const hot: Record<string, (sql: Sql) => Promise<unknown>> = {
  'a person by externalId': (sql) => findPerson(sql, 1, 'a'),
  'a person by id': (sql) => findPersonInPieces(sql, 1, '1'),
  'a page of persons': (sql) => listPersons(sql, 1, null, 51),
  'a key by its hash': (sql) => findWorkingKey(sql, '00'),
  'a deletion job': (sql) => findDeletionJob(sql, 1, '1'),
  'the person a DELETE locks': (sql) => lockPerson(sql, 1, { externalId: 'a' }),
}

/** The text of the one statement that a function sends, which here finds nothing. */
async function statementOf(run: (sql: Sql) => Promise<unknown>): Promise<string> {
  const sent: string[] = []
  await run(async (strings, ...values) => {
    sent.push(new Statement(strings, values).text)
    return []
  })
  expect(sent).toHaveLength(1)
  return sent[0] as string
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
    for (const [what, run] of Object.entries(hot)) {
      const statement = await statementOf(run)
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

/** What each index is there for, beside those of keys and unique columns. One that nothing needs is dropped. */
const indexes: Record<string, string> = {
  audit_log_by_member: 'the audit log of a member',
  audit_log_by_person: 'what an erasure makes the log forget; the history on a person’s page',
  audit_log_by_project: 'the audit log of a project',
  audit_log_by_time: 'entries past their time, by the upkeep',
  audit_log_of_persons: 'what an erasure makes the log forget of entries that name the person',
  audit_log_of_sessions: 'whether a recording’s watching is noted already',
  browsers_to_check: 'browsers whose last session may be gone, by the retention',
  chunks_by_blob_key: 'the chunk of a blob: removal, comparison, verification of an erasure',
  chunks_open: 'intents that were never confirmed',
  credentials_by_member: 'the sign-in of a member; foreign key',
  deletion_jobs_by_external_id: 'the jobs of an externalId, newest first',
  deletion_jobs_by_status: 'the jobs in a state, newest first',
  deletion_jobs_by_time: 'all jobs of a project, newest first',
  deletion_jobs_due: 'the claim',
  deletion_jobs_failed: 'persons whose deletion failed, of one project and of all',
  deletion_jobs_leased: 'the reaper',
  deletion_jobs_one_open_a_person: 'the rule it names',
  identified_persons_idle: 'people whom only identify has created, by the retention',
  job_purges_unsigned: 'statements of a purge that are left to sign',
  job_purges_waiting: 'jobs that wait for a purge',
  ledger_entries_completed: 'how many entries have to be there',
  ledger_entries_open: 'up to where the ledger is compared',
  limits_by_end: 'counts that ended, by the upkeep',
  links_by_maker: 'the links of a member; foreign key',
  links_one_invitation_an_email: 'the rule it names',
  links_one_reset_a_member: 'the rule it names',
  passkey_challenges_by_end: 'challenges that ended, by the upkeep',
  passkey_challenges_by_member: 'foreign key',
  passkeys_by_member: 'the passkeys of a member; foreign key',
  person_browsers_of_person: 'the browsers of a person, in parts',
  person_search_grams: 'the search',
  person_search_scanned: 'the search in what is not indexed yet, and the step that indexes it',
  persons_being_deleted: 'the person of a job; the list of those being deleted',
  project_secrets_one_suppression: 'the rule it names',
  projects_one_demo: 'the rule it names',
  purges_one_open: 'the rule it names',
  search_segment_newest: 'the step that indexes, for who is the last of a segment with a gram',
  second_factors_by_member: 'better-auth; foreign key',
  second_factors_by_secret: 'better-auth',
  session_links_by_end: 'links that ended, by the upkeep',
  session_links_by_maker: 'the links of a member who loses the right to them',
  session_links_by_session: 'the links to a recording; foreign key',
  session_notes_by_session: 'the notes of a recording; foreign key',
  sessions_by_browser: 'the sessions of a browser: erasure, limits, the person’s page',
  sessions_by_time: 'the sessions of a project, newest first; the retention',
  sessions_closed: 'sessions that the retention deletes',
  sessions_unpacked: 'finished sessions that may have chunks to pack',
  sign_ins_by_end: 'sign-ins that ended, by the upkeep',
  sign_ins_by_member: 'where a member is signed in; foreign key',
  verifications_by_end: 'what better-auth remembers too long, by the upkeep',
  verifications_by_identifier: 'better-auth',
  webhook_deliveries_by_end: 'deliveries past their time',
  webhook_deliveries_by_webhook: 'the deliveries of a webhook, newest first',
  webhook_deliveries_due: 'the claim of deliveries',
}

test('every index has the query that needs it', async ({ db }) => {
  const found = await db.sql<{ name: string }>`
    select c.relname as name
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    where c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
      and not exists (select from pg_constraint k where k.conindid = c.oid)`
  const names = found.map(({ name }) => name)
  expect(names.sort()).toEqual(Object.keys(indexes).sort())
})
