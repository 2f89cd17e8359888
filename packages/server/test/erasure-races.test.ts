import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { browserPrefix } from '../src/blobs/blobs.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { claimJobs, failAttempt } from '../src/erasure/job-leases.ts'
import { findDeletionJob } from '../src/erasure/jobs.ts'
import { findPerson, writePerson } from '../src/persons/store.ts'
import { identify } from '../src/recordings/identify.ts'
import { insertSession } from '../src/recordings/ingest-store.ts'
import { storeChunk } from '../src/recordings/upload.ts'
import { overDb } from './erasure-faults.ts'
import {
  newBrowser,
  nothing,
  record,
  remains,
  requestErasure,
  runAll,
  test,
} from './erasure-fixtures.ts'
import { byDepth } from './proof/deep.ts'

const rounds = byDepth(8, 25)

/** Whether a race is run once more: until every outcome was met, or it shows nothing. */
function goesOn(round: number, met: Set<string>, outcomes: number): boolean {
  return round < rounds || (met.size < outcomes && round < 500)
}

/** A pause that is another one each time, so that many orders of events are met. */
const jitter = () => sleep(Math.random() * 6)

test('POST during the last transaction: refused before it, a new person after it, nothing in between', async ({
  erasure,
  project,
  db,
}) => {
  for (let round = 0; round < rounds; round++) {
    const ada = await record(erasure, project.id, `p${round}`, { browsers: 1, sessions: 1 })
    await requestErasure(erasure, project.id, `p${round}`)
    let isOver = false
    const attempt = runNextAttempt(erasure.options).finally(() => {
      isOver = true
    })
    const outcomes: string[] = []
    const lane = async () => {
      while (!isOver) {
        const { outcome } = await writePerson(db.sql, project.id, `p${round}`, { again: 1 }, true)
        outcomes.push(outcome)
      }
    }
    await Promise.all([attempt, lane(), lane(), lane()])
    const last = await writePerson(db.sql, project.id, `p${round}`, { again: 1 }, true)
    expect(new Set([...outcomes, last.outcome])).not.toContain('updated')
    expect(outcomes.filter((one) => one === 'created').length).toBeLessThan(2)
    expect(outcomes.concat(last.outcome)).toContain('created')
    const person = (await findPerson(db.sql, project.id, `p${round}`))!
    expect(person.id).not.toBe(ada.personId)
    expect(JSON.parse(String(person.properties))).toEqual({ again: 1 })
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(
      await db.sql`
      select from person_browsers where project_id = ${project.id} and person_id = ${person.id}`,
    ).toEqual([])
  }
})

test('the last transaction, held open: a POST is refused, a DELETE waits and then finds nobody', async ({
  erasure,
  project,
  db,
}) => {
  const ada = await record(erasure, project.id, 'ada', { browsers: 0 })
  await requestErasure(erasure, project.id, 'ada')
  const inside = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const held = overDb(db, async (run, what) => {
    const result = await run()
    if (what.includes('into receipts')) {
      inside.resolve()
      await goOn.promise
    }
    return result
  })
  const attempt = runNextAttempt({ ...erasure.options, db: held })
  await inside.promise
  // Reads first, and sees the flag: nothing of the transaction under way can be seen.
  expect((await writePerson(db.sql, project.id, 'ada', {}, true)).outcome).toBe('deleting')
  expect(await findPerson(db.sql, project.id, 'ada')).toMatchObject({ id: ada.personId })
  const repeated = requestErasure(erasure, project.id, 'ada').catch((error) => error.code)
  await isWaitingForLock(db)
  goOn.resolve()
  expect(await attempt).toBe('completed')
  expect(await repeated).toBe('person_not_found')
  expect((await writePerson(db.sql, project.id, 'ada', {}, true)).outcome).toBe('created')
})

test('identify during DELETE: linked and then erased, or ignored; never a person that comes back', async ({
  erasure,
  project,
  db,
}) => {
  const outcomes = new Set<string>()
  for (let round = 0; goesOn(round, outcomes, 2); round++) {
    const externalId = `p${round}`
    await record(erasure, project.id, externalId, { browsers: 1, sessions: 0 })
    const browser = await newBrowser(erasure, project.id, { sessions: 1 })
    const browserId = browser.browserIds[0]!
    const [outcome] = await Promise.all([
      jitter().then(() => identify(db, project.id, browserId, externalId)),
      jitter().then(() => requestErasure(erasure, project.id, externalId)),
    ])
    outcomes.add(outcome)
    await runAll(erasure.options)
    if (outcome === 'linked') expect(await remains(erasure, project.id, browser)).toEqual(nothing)
    else {
      expect(outcome).toBe('ignored')
      const [kept] = await db.sql`select retired from browsers where id = ${browserId}`
      expect(kept).toEqual({ retired: false })
    }
    expect(await findPerson(db.sql, project.id, externalId)).toBeUndefined()
  }
  expect([...outcomes].sort()).toEqual(['ignored', 'linked'])
})

test('a chunk and a session during DELETE: in the set that is erased, or refused', async ({
  erasure,
  project,
  db,
}) => {
  const browserKeys = { sql: db.sql, masterKeys: erasure.masterKeys }
  const outcomes = new Set<string>()
  for (let round = 0; goesOn(round, outcomes, 3); round++) {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 0 })
    const [browserId, sessionId] = [ada.browserIds[0]!, ada.sessionIds[0]!]
    const upload = async (number: number) => {
      await jitter()
      return storeChunk(
        { db, blobs: erasure.blobs, browserKeys },
        { projectId: project.id, browserId, sessionId, tab: 'a', number },
        { gzip: Buffer.from('events'), pages: 0 },
      )
    }
    const startSession = async () => {
      await jitter()
      const session = { projectId: project.id, browserId, sessionId: crypto.randomUUID() }
      const rest = { url: null, userAgent: null, sdkVersion: null }
      return (await insertSession(db.sql, { ...session, ...rest })) ? 'started' : 'refused'
    }
    const [, ...answers] = await Promise.all([
      jitter().then(async () => {
        await requestErasure(erasure, project.id, 'ada')
        return runNextAttempt(erasure.options)
      }),
      ...[1, 2, 3, 4].map(upload),
      startSession(),
    ])
    for (const one of answers) outcomes.add(one)
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(await db.sql`select from sessions where project_id = ${project.id}`).toEqual([])
    expect(await db.sql`select from chunks where project_id = ${project.id}`).toEqual([])
    expect(await erasure.blobs.isEmpty(browserPrefix(project.id, browserId))).toBe(true)
  }
  expect([...outcomes].sort()).toEqual(['refused', 'started', 'stored'])
})

test('DELETE and PATCH at the same time as everything else: merged and then erased, or refused', async ({
  erasure,
  project,
  db,
}) => {
  for (let round = 0; round < rounds; round++) {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 1 })
    const [patched] = await Promise.all([
      jitter().then(() => writePerson(db.sql, project.id, 'ada', { plan: round }, false)),
      jitter().then(() => requestErasure(erasure, project.id, 'ada')),
    ])
    expect(['updated', 'deleting']).toContain(patched.outcome)
    await runAll(erasure.options)
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect((await writePerson(db.sql, project.id, 'ada', {}, false)).outcome).toBe('missing')
  }
})

test('the fifth failure and a new DELETE at once: the job that is about to fail, or a new one that ends', async ({
  erasure,
  project,
  db,
}) => {
  const answers = new Set<string>()
  for (let round = 0; goesOn(round, answers, 2); round++) {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1, chunks: 1 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    await db.sql`update deletion_jobs set attempts = 4, status = 'running',
      started_at = app_now() where id = ${id}`
    const [job] = await claimJobs(db.sql, 1)
    const [, requested] = await Promise.all([
      jitter().then(() =>
        failAttempt(db.sql, job!, { step: 'verify', code: 'fault' }, [30, 60, 120, 240]),
      ),
      jitter().then(() => requestErasure(erasure, project.id, 'ada')),
    ])
    answers.add(requested.id === id ? 'same' : 'new')
    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({ status: 'failed' })
    if (requested.id === id) await requestErasure(erasure, project.id, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  }
  expect([...answers].sort()).toEqual(['new', 'same'])
})

describe('the schema itself refuses', () => {
  test('a person that is flagged with no open job, and an open job whose person is not flagged', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 0 })
    const bob = await record(erasure, project.id, 'bob', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const refused = { code: '23000' }
    const statements = [
      () => db.sql`update persons set deletion_job_id = null where id = ${ada.personId}`,
      () => db.sql`update persons set deletion_job_id = ${id} where id = ${bob.personId}`,
      () => db.sql`delete from persons where id = ${ada.personId}`,
      () => db.sql`
        update deletion_jobs set status = 'failed', person_id = null, started_at = app_now()
        where id = ${id}`,
      () => db.sql`
        insert into deletion_jobs (project_id, external_id, person_id, keep_recordings)
        values (${project.id}, 'bob', ${bob.personId}, false)`,
    ]
    for (const statement of statements) await expect(statement()).rejects.toMatchObject(refused)
  })

  test('a second open job of a person, a sixth attempt, and an end without its time', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    await expect(db.sql`
      insert into deletion_jobs (project_id, external_id, person_id, keep_recordings)
      values (${project.id}, 'ada', ${ada.personId}, false)`).rejects.toMatchObject({
      code: '23505',
    })
    await expect(
      db.sql`update deletion_jobs set attempts = 6 where id = ${id}`,
    ).rejects.toMatchObject({ code: '23514' })
    await expect(db.sql`
      update deletion_jobs set status = 'completed', started_at = app_now(), person_id = null
      where id = ${id}`).rejects.toMatchObject({ code: '23514' })
    await expect(db.sql`
      insert into deletion_attempts (project_id, job_id, number, outcome, ended_at)
      values (${project.id}, ${id}, 1, 'failed', app_now())`).rejects.toMatchObject({
      code: '23514',
    })
  })
})

test('a session of a browser locks it against retirement until it is there', async ({
  erasure,
  project,
  db,
}) => {
  const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 0 })
  const sessionId = crypto.randomUUID()
  const inside = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const starting = db.begin(async (tx) => {
    await insertSession(tx, {
      projectId: project.id,
      browserId: ada.browserIds[0]!,
      sessionId,
      url: null,
      userAgent: null,
      sdkVersion: null,
    })
    inside.resolve()
    await goOn.promise
  })
  await inside.promise
  await requestErasure(erasure, project.id, 'ada')
  const attempt = runNextAttempt(erasure.options)
  await isWaitingForLock(db)
  goOn.resolve()
  await starting
  expect(await attempt).toBe('completed')
  expect(await db.sql`select from sessions where id = ${sessionId}`).toEqual([])
})

/** Until some statement waits for a lock that another one holds. */
async function isWaitingForLock(db: Parameters<typeof overDb>[0]): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; ) {
    const [row] = await db.short<{ n: number }>`
      select count(*)::int as n from pg_stat_activity
      where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`
    if (row!.n > 0) return
    await sleep(5)
  }
  throw new Error('No statement waits for a lock.')
}
