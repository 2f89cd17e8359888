import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import { type DeletionJobDetails, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { giveUpEntries } from '../src/erasure/ledger-store.ts'
import { requestDeletion, requestDeletions } from '../src/erasure/request.ts'
import { migrate } from '../src/migrate.ts'
import { writePerson } from '../src/persons/store.ts'
import { connectOne, type Db } from '../src/sql.ts'
import { type TestProject, test } from './fixtures.ts'
import {
  type Environment,
  eventually,
  newEnvironment,
  startLethe,
  workerGreeting,
} from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'

interface Size {
  browsers: number
  /** Of each browser, with one chunk each. */
  sessions: number
}

/** The same for all tests, as they share a database. */
const masterKey = `k1:${randomBytes(32).toString('base64')}`

/**
 * Hardly more room than the program takes by itself: it collects its garbage, so that what is in
 * memory is what is held, and who held something of every browser would end for want of memory.
 */
const nodeFlags = ['--max-semi-space-size=1', '--max-old-space-size=80']

/**
 * A person with recordings, written as ingestion leaves them but many at a time and without waiting
 * for the disk: keys, browsers, sessions, chunks and blobs.
 */
async function fill(
  db: Db,
  { id: projectId }: TestProject,
  folder: string,
  externalId: string,
  { browsers, sessions }: Size,
): Promise<void> {
  await writePerson(db.sql, projectId, externalId, {}, true)
  // What is more than that may take a statement too long.
  for (let rest = browsers; rest > 0; rest -= 2_000) {
    await fillPart(db, projectId, folder, externalId, { browsers: Math.min(rest, 2_000), sessions })
  }
}

async function fillPart(
  db: Db,
  projectId: number,
  folder: string,
  externalId: string,
  { browsers, sessions }: Size,
): Promise<void> {
  const rows = await db.sql<{ browserId: string; sessionId: string }>`
    with new_browsers as (
      insert into browsers (project_id, id)
      select ${projectId}, gen_random_uuid() from generate_series(1, ${browsers}::integer)
      returning project_id, id
    ), linked as (
      insert into person_browsers (project_id, browser_id, person_id)
      select b.project_id, b.id, p.id
      from new_browsers b
      join persons p on p.project_id = b.project_id and p.external_id = ${externalId}
    ), keyed as (
      insert into browser_keys (project_id, browser_id, master_key_id, wrapped)
      select project_id, id, 'k1', sha256(id::text::bytea) from new_browsers
    )
    insert into sessions (project_id, id, browser_id, chunks, bytes)
    select project_id, gen_random_uuid(), id, 1, 10
    from new_browsers, generate_series(1, ${sessions}::integer)
    returning browser_id as "browserId", id as "sessionId"`
  const keys = rows.map(
    ({ browserId, sessionId }) => `${sessionPrefix(projectId, browserId, sessionId)}t-0-first`,
  )
  if (rows.length === 0) return
  await db.sql`
    insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until,
      stored_at, bytes)
    select ${projectId}, session_id, 't', 0, blob_key, 'stored', app_now(), app_now(), 10
    from unnest(${rows.map(({ sessionId }) => sessionId)}::uuid[], ${keys}::text[])
      as made (session_id, blob_key)`
  const rest = keys.values()
  const lane = async () => {
    for (const key of rest) {
      await mkdir(dirname(join(folder, key)), { recursive: true })
      await writeFile(join(folder, key), 'ten bytes.')
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
}

interface Erased {
  removed: DeletionJobDetails['removed']
  attempts: number
  /** The most memory the worker had while it was at it. */
  megabytes: number
  seconds: number
  /** What the job said was removed, while it was running. */
  seen: number[]
}

/** Erases a person with a worker process of its own. */
async function eraseAlone(
  db: Db,
  { id: projectId }: TestProject,
  env: Environment,
  externalId: string,
): Promise<Erased> {
  const { id } = await requestDeletion(db, {
    projectId,
    externalId,
    keepRecordings: false,
    requestedBy: 'command',
  })
  const begun = performance.now()
  const worker = await startLethe(['worker'], env, workerGreeting, nodeFlags)
  let megabytes = 0
  const seen = new Set<number>()
  await eventually(async () => {
    // Each look starts a process.
    await sleep(200)
    megabytes = Math.max(megabytes, residentMegabytes(worker.child.pid as number))
    const now = await findDeletionJobDetails(db.sql, projectId, id)
    seen.add(now?.removed.blobs ?? 0)
    return now?.attempts.some(({ outcome }) => outcome !== null)
  })
  const seconds = (performance.now() - begun) / 1_000
  expect(await worker.stop()).toBe(0)
  const details = (await findDeletionJobDetails(db.sql, projectId, id)) as DeletionJobDetails
  expect(details.attempts).toMatchObject([{ outcome: 'completed' }])
  return { ...details, attempts: details.attempts.length, megabytes, seconds, seen: [...seen] }
}

function residentMegabytes(pid: number): number {
  const kilobytes = execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })
  return Number(kilobytes) / 1_024
}

async function countRows(db: Db, { id }: TestProject): Promise<number> {
  const [row] = await db.sql<{ count: number }>`
    select (
      (select count(*) from persons where project_id = ${id})
      + (select count(*) from person_browsers where project_id = ${id})
      + (select count(*) from browsers where project_id = ${id})
      + (select count(*) from browser_keys where project_id = ${id})
      + (select count(*) from sessions where project_id = ${id})
      + (select count(*) from chunks where project_id = ${id}))::integer as count`
  return row?.count ?? -1
}

/** Ten times as many browsers or sessions may not take so much more memory. */
const growthMegabytes = 30

const cases: Record<string, [small: Size, large: Size]> = {
  [`${byDepth('1,000', '10,000')} browsers`]: [
    { browsers: byDepth(100, 1_000), sessions: 1 },
    { browsers: byDepth(1_000, 10_000), sessions: 1 },
  ],
  [`${byDepth('1,000', '5,000')} sessions of one browser`]: [
    { browsers: 1, sessions: byDepth(100, 500) },
    { browsers: 1, sessions: byDepth(1_000, 5_000) },
  ],
}

for (const [what, sizes] of Object.entries(cases)) {
  test(`a person with ${what} is erased in one attempt, to the last row and blob, in hardly more memory than one with a tenth of them`, async ({
    db,
    address,
    project,
  }) => {
    await migrate(address, 'keys')
    const env = await newEnvironment(address, { MASTER_KEY: masterKey })
    // Each test has a folder of its own, and so a ledger.
    await giveUpEntries(db.sql)
    const folder = join(env.DATA_DIR, 'blobs')
    const measured: Erased[] = []
    for (const size of sizes) {
      await fill(db, project, folder, 'ada', size)
      const { browsers, sessions } = size
      const blobs = browsers * sessions
      const erased = await eraseAlone(db, project, env, 'ada')
      measured.push(erased)
      expect(erased.removed).toEqual({
        browsers,
        sessions: blobs,
        chunks: blobs,
        blobs,
        bytes: blobs * 10,
      })
      expect(await countRows(db, project)).toBe(0)
      expect(await left(folder, project)).toBe(false)
    }
    console.table(
      measured.map(({ seconds, megabytes, seen }) => ({ seconds, megabytes, seen: seen.length })),
    )
    const [small, large] = measured as [Erased, Erased]
    expect(large.megabytes - small.megabytes).toBeLessThan(growthMegabytes)
    // How far it is can be watched; it is noted every two seconds.
    if (large.seconds > 30) expect(large.seen.length).toBeGreaterThan(2)
  }, 600_000)
}

test(`DELETE of a person with ${byDepth('5,000', '300,000')} browsers returns at once, alone and in a batch, while one of them is held; then the worker erases them all`, async ({
  db,
  address,
  project,
}) => {
  await migrate(address, 'keys')
  const env = await newEnvironment(address, { MASTER_KEY: masterKey })
  const size = { browsers: byDepth(5_000, 300_000), sessions: 0 }
  await fill(db, project, join(env.DATA_DIR, 'blobs'), 'one', { browsers: 1, sessions: 0 })
  await fill(db, project, join(env.DATA_DIR, 'blobs'), 'ada', size)
  await fill(db, project, join(env.DATA_DIR, 'blobs'), 'grace', { browsers: 1_000, sessions: 0 })
  // Each test has a folder of its own, and so a ledger.
  await giveUpEntries(db.sql)
  await db.sql`analyze`
  const terms = { projectId: project.id, keepRecordings: false, requestedBy: 'command' as const }
  const milliseconds: Record<string, number> = {}
  const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const begun = performance.now()
    const result = await work()
    milliseconds[what] = Math.round(performance.now() - begun)
    return result
  }
  // A DELETE that touched its browsers would wait for these until its time is over.
  const held = await connectOne(address)
  await held.client.query('begin')
  await held.sql`select from browsers where project_id = ${project.id} for update`
  await timed('1 browser', () => requestDeletion(db, { ...terms, externalId: 'one' }))
  await timed(`${size.browsers} browsers`, () =>
    requestDeletion(db, { ...terms, externalId: 'ada' }),
  )
  const batch = await timed('a batch', () =>
    requestDeletions(db, { ...terms, externalIds: ['grace', 'ada'] }),
  )
  expect(batch).toMatchObject([{ job: { status: 'pending' } }, { job: { status: 'pending' } }])
  await held.client.query('rollback')
  await held.end()
  console.table(milliseconds)

  const erased = await eraseAlone(db, project, env, 'ada')
  expect(erased.removed).toMatchObject({ browsers: size.browsers, sessions: 0 })
  // The worker has room for 80 MB of its own, which it did not need for so many ids.
  console.table({ megabytes: erased.megabytes, seconds: erased.seconds })
  const [left] = await db.sql`
    select count(*)::integer as count from person_browsers l
    join persons p on p.project_id = l.project_id and p.id = l.person_id
    where l.project_id = ${project.id} and p.external_id = 'ada'`
  expect(left).toEqual({ count: 0 })
}, 1_800_000)

/** Whether any of a project's recordings has a place left. */
async function left(folder: string, { id }: TestProject): Promise<boolean> {
  const place = dirname(browserPrefix(id, 'any'))
  return existsSync(join(folder, place)) && (await readdir(join(folder, place))).length > 0
}
