import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { BlobFault, sessionPrefix } from '../src/blobs/blobs.ts'
import { runAttempts, runNextAttempt, Stopping } from '../src/erasure/attempt.ts'
import {
  browsersOfSmall,
  type ClaimedJobs,
  claimJobs,
  reapLostAttempts,
  rowsOfSmall,
  togetherMaximum,
} from '../src/erasure/job-leases.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { findReceipt, hashOfReceipt } from '../src/erasure/receipts.ts'
import { intendChunk } from '../src/recordings/ingest-store.ts'
import type { Db } from '../src/sql.ts'
import { overBlobs, overDb } from './erasure-faults.ts'
import {
  fingerprint,
  nothing,
  openClock,
  type Recorded,
  type Recording,
  record,
  remains,
  requestErasure,
  runAll,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

interface Requested extends Recorded {
  jobId: string
}

/** A person whose deletion was requested. */
async function requested(
  erasure: TestErasure,
  projectId: number,
  externalId: string,
  { keepRecordings = false, ...recording }: Recording & { keepRecordings?: boolean } = {},
): Promise<Requested> {
  const recorded = await record(erasure, projectId, externalId, recording)
  const { id } = await requestErasure(erasure, projectId, externalId, keepRecordings)
  return { ...recorded, jobId: id }
}

const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id).sort()
const jobIdsOf = (...persons: Requested[]) => persons.map(({ jobId }) => jobId).sort()

const claim = async (db: Db) => (await claimJobs(db.sql, togetherMaximum)) as unknown as ClaimedJobs

const removedOf = async (db: Db, projectId: number, { jobId }: Requested) =>
  (await findDeletionJobDetails(db.sql, projectId, jobId))!.removed

function statementOf(jws: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jws.split('.')[1]!, 'base64url').toString())
}

describe('what is claimed together', () => {
  test('are persons with little recorded, of one project and one kind of deletion, no more than stated', async ({
    erasure,
    project,
    db,
  }) => {
    const other = await newProject(db)
    const small = [
      await requested(erasure, project.id, 'ada'),
      await requested(erasure, project.id, 'grace', { browsers: 0 }),
      await requested(erasure, project.id, 'most browsers', { browsers: browsersOfSmall }),
      await requested(erasure, project.id, 'most rows', {
        browsers: 1,
        sessions: 1,
        chunks: rowsOfSmall - 1,
      }),
    ]
    const elsewhere = await requested(erasure, other.id, 'ada')
    const kept = await requested(erasure, project.id, 'kept', { keepRecordings: true })
    const keptToo = await requested(erasure, project.id, 'kept too', { keepRecordings: true })
    expect(idsOf(await claimJobs(db.sql, 3))).toHaveLength(3)
    await db.sql`
      update deletion_jobs set lease_token = null, lease_until = null, attempts = 0
      where attempts = 1`
    await db.sql`delete from deletion_attempts`
    expect(idsOf(await claim(db))).toEqual(jobIdsOf(...small))
    expect(idsOf(await claim(db))).toEqual([elsewhere.jobId])
    expect(idsOf(await claim(db))).toEqual(jobIdsOf(kept, keptToo))
    expect(await claim(db)).toEqual([])
  })

  test('are never persons with much recorded, first or later', async ({ erasure, project, db }) => {
    const size = { browsers: 1, sessions: 1, chunks: 1 }
    const first = await requested(erasure, project.id, 'many browsers', {
      ...size,
      browsers: browsersOfSmall + 1,
    })
    const ada = await requested(erasure, project.id, 'ada', size)
    const rows = await requested(erasure, project.id, 'many rows', {
      ...size,
      chunks: rowsOfSmall,
    })
    const grace = await requested(erasure, project.id, 'grace', size)
    expect(idsOf(await claim(db))).toEqual([first.jobId])
    expect(idsOf(await claim(db))).toEqual(jobIdsOf(ada, grace))
    expect(idsOf(await claim(db))).toEqual([rows.jobId])
  })

  test('are first attempts only: a job that crashed its worker runs alone the next time', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const [ada, grace] = [
      await requested(erasure, project.id, 'ada'),
      await requested(erasure, project.id, 'grace'),
    ]
    expect(idsOf(await claim(db))).toEqual(jobIdsOf(ada, grace))
    await clock.forward(31)
    expect(await reapLostAttempts(db.sql, [30, 60, 120, 240])).toEqual({ lost: 2, failed: 0 })
    await clock.forward(31)
    expect(await claim(db)).toHaveLength(1)
    expect(await claim(db)).toHaveLength(1)
    await clock.close()
  })
})

for (const keepRecordings of [false, true]) {
  test(`persons erased together leave what one alone leaves, each with a receipt of its own (recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
    erasure,
    project,
    db,
  }) => {
    const persons = []
    for (const [index, browsers] of [2, 0, 1, 3].entries()) {
      persons.push(
        await requested(erasure, project.id, `p${index}`, {
          browsers,
          sessions: index + 1,
          chunks: index,
          keepRecordings,
        }),
      )
    }
    const bystander = await record(erasure, project.id, 'bystander')
    const before = await fingerprint(erasure, project.id, bystander)
    expect(await runNextAttempt(erasure.options, togetherMaximum)).toBe('completed')

    let previous: string | null = null
    for (const [index, one] of persons.entries()) {
      const left = await remains(erasure, project.id, one)
      if (keepRecordings) {
        const { browserIds, sessionIds, blobKeys } = one
        expect(left).toEqual({
          ...nothing,
          browsers: browserIds.length,
          keys: browserIds.length,
          sessions: sessionIds.length,
          chunks: blobKeys.length,
          blobs: blobKeys.length,
        })
      } else expect(left).toEqual(nothing)
      const blobs = keepRecordings ? 0 : one.blobKeys.length
      const removed = {
        browsers: keepRecordings ? 0 : one.browserIds.length,
        sessions: keepRecordings ? 0 : one.sessionIds.length,
        chunks: blobs,
        blobs,
        bytes: 10 * blobs,
      }
      expect(await removedOf(db, project.id, one)).toEqual(removed)
      const jws = (await findReceipt(db.sql, project.id, one.jobId))!
      expect(statementOf(jws)).toMatchObject({
        jobId: one.jobId,
        number: index + 1,
        previousReceiptHash: previous,
        removed,
      })
      previous = hashOfReceipt(jws)
    }
    expect(await fingerprint(erasure, project.id, bystander)).toBe(before)
  })
}

test('twenty persons take no more statements than one', async ({ erasure, project, db }) => {
  const count = async (persons: number) => {
    for (let n = 0; n < persons; n++) {
      await requested(erasure, project.id, `p${n}`, { browsers: 1, sessions: 1, chunks: 1 })
    }
    let statements = 0
    const counting = overDb(db, (run) => {
      statements++
      return run()
    })
    const options = { ...erasure.options, db: counting, keySql: counting.sql }
    expect(await runNextAttempt(options, togetherMaximum)).toBe('completed')
    expect(await db.sql`select from persons`).toEqual([])
    return statements
  }
  const one = await count(1)
  expect(one).toBeGreaterThan(10)
  expect(await count(20)).toBe(one)
})

describe('where one of them cannot be erased', () => {
  test('it fails alone, and the others are completed at once, with all that went counted', async ({
    erasure,
    project,
    db,
  }) => {
    const names = ['ada', 'grace', 'alan', 'edsger', 'barbara']
    const persons = []
    for (const name of names) {
      persons.push(await requested(erasure, project.id, name, { browsers: 1 }))
    }
    const alan = persons[2]!
    const blobs = overBlobs(erasure.blobs, (run) => run())
    const options = {
      ...erasure.options,
      blobs: {
        ...blobs,
        async isEmpty(prefix: string, signal?: AbortSignal) {
          if (prefix.includes(alan.browserIds[0]!))
            throw new BlobFault('failed', 'The store refuses.')
          return blobs.isEmpty(prefix, signal)
        },
      },
    }
    const outcomes = []
    for (;;) {
      const outcome = await runNextAttempt(options, togetherMaximum)
      if (outcome === undefined) break
      outcomes.push(outcome)
    }
    expect(outcomes.sort()).toEqual([
      ...Array.from({ length: 4 }, () => 'completed'),
      'failed',
      'handed_back',
    ])
    for (const one of persons) {
      const isAlan = one === alan
      const { blobKeys, sessionIds } = one
      expect(await findDeletionJob(db.sql, project.id, one.jobId)).toMatchObject({
        status: isAlan ? 'running' : 'completed',
      })
      expect(await findDeletionJobDetails(db.sql, project.id, one.jobId)).toMatchObject({
        attempts: [
          isAlan
            ? { number: 1, outcome: 'failed', errorCode: 'blobs_failed', step: 'verify' }
            : { number: 1, outcome: 'completed' },
        ],
        removed: {
          sessions: sessionIds.length,
          chunks: blobKeys.length,
          blobs: blobKeys.length,
          bytes: 10 * blobKeys.length,
          browsers: isAlan ? 0 : 1,
        },
      })
    }
    for (const one of persons.filter((one) => one !== alan)) {
      expect(await remains(erasure, project.id, one)).toEqual(nothing)
    }
  })

  test('because it has an upload in progress, the others do not wait for it', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const size = { browsers: 1, sessions: 1, chunks: 1 }
    const ada = await requested(erasure, project.id, 'ada', size)
    const recorded = await record(erasure, project.id, 'uploading', size)
    const [browserId, sessionId] = [recorded.browserIds[0]!, recorded.sessionIds[0]!]
    const place = { projectId: project.id, browserId, sessionId, tab: 't', number: 9 }
    await intendChunk(db.sql, place, `${sessionPrefix(project.id, browserId, sessionId)}late`)
    const { id } = await requestErasure(erasure, project.id, 'uploading')
    expect(await runNextAttempt(erasure.options, togetherMaximum)).toBe('handed_back')
    const jobs = [await claim(db), await claim(db)]
    expect(jobs.flatMap(idsOf).sort()).toEqual([ada.jobId, id].sort())
    const forAda = jobs.find(([job]) => job.id === ada.jobId)!
    expect(await runAttempts(erasure.options, forAda, performance.now())).toBe('completed')
    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({ status: 'running' })
    await clock.close()
  })

  test('because its lease was lost, it changes nothing, and the others are completed', async ({
    erasure,
    project,
    db,
  }) => {
    const [ada, grace, alan] = [
      await requested(erasure, project.id, 'ada'),
      await requested(erasure, project.id, 'grace'),
      await requested(erasure, project.id, 'alan', { browsers: 0 }),
    ]
    const sentAt = performance.now()
    const jobs = await claim(db)
    expect(jobs).toHaveLength(3)
    await db.sql`
      update deletion_jobs set lease_token = ${randomUUID()} where id = ${grace.jobId}`
    expect(await runAttempts(erasure.options, jobs, sentAt)).toBe('handed_back')
    expect(await remains(erasure, project.id, grace)).toMatchObject({ persons: 1, sessions: 4 })
    await runAll(erasure.options)
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(await remains(erasure, project.id, alan)).toEqual(nothing)
    expect(
      await db.sql`select attempts, lease_token is not null as held from deletion_jobs
        where id = ${grace.jobId}`,
    ).toEqual([{ attempts: 1, held: true }])
  })
})

test('a graceful stop hands all of them back: none counts, and they are worked on together again', async ({
  erasure,
  project,
  db,
}) => {
  const persons = [
    await requested(erasure, project.id, 'ada'),
    await requested(erasure, project.id, 'grace'),
  ]
  const stopping = new AbortController()
  const blobs = overBlobs(erasure.blobs, async (run, what) => {
    if (what === 'deletePrefix') stopping.abort(new Stopping())
    return run()
  })
  const sentAt = performance.now()
  const jobs = await claim(db)
  expect(await runAttempts({ ...erasure.options, blobs }, jobs, sentAt, stopping.signal)).toBe(
    'handed_back',
  )
  expect(await db.sql`select from deletion_attempts`).toEqual([])
  expect(idsOf(await claim(db))).toEqual(jobIdsOf(...persons))
})
