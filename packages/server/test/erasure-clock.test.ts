import { describe, expect } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { claimJobs, reapLostAttempts } from '../src/erasure/job-leases.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { writePerson } from '../src/persons/store.ts'
import { overBlobs } from './erasure-faults.ts'
import {
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'

/** A blob store that is down, as far as deletions go. */
function downBlobs({ blobs }: TestErasure) {
  return overBlobs(blobs, (run, what) =>
    what === 'deletePrefix' ? Promise.reject(new BlobFault('unreachable', 'down')) : run(),
  )
}

describe('after a failed attempt', () => {
  test('the next ones start 30 s, 1, 2 and 4 minutes later, to the millisecond; the fifth failure is the end', async ({
    erasure,
    db,
    project,
    address,
  }) => {
    const clock = await openClock(address)
    const broken = { ...erasure.options, blobs: downBlobs(erasure) }
    const ada = await record(erasure, project.id, 'ada')
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const startedAt = clock.now().toISOString()
    expect(await runNextAttempt(broken)).toBe('failed')
    for (const delay of [30, 60, 120, 240]) {
      expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({
        status: 'running',
        startedAt,
        completedAt: null,
      })
      await clock.forward(delay - 0.001)
      expect(await runNextAttempt(broken)).toBeUndefined()
      await clock.forward(0.001)
      expect(await runNextAttempt(broken)).toBe('failed')
    }

    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({
      status: 'failed',
      startedAt,
      completedAt: null,
    })
    await clock.forward(100_000)
    expect(await runNextAttempt(broken)).toBeUndefined()
    const { attempts } = (await findDeletionJobDetails(db.sql, project.id, id))!
    expect(attempts.map(({ number, step, errorCode }) => [number, step, errorCode])).toEqual(
      [1, 2, 3, 4, 5].map((number) => [number, 'delete_blobs', 'blobs_unreachable']),
    )

    // The person is in use again; what was destroyed stays destroyed.
    const written = await writePerson(db.sql, project.id, 'ada', { plan: 'pro' }, false)
    expect(written.outcome).toBe('updated')
    expect(await remains(erasure, project.id, ada)).toMatchObject({ persons: 1, keys: 0, blobs: 8 })

    // A new DELETE makes a new job, with the other keepRecordings too, and it ends the rest.
    const again = await requestErasure(erasure, project.id, 'ada')
    expect(again.id).not.toBe(id)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({ status: 'failed' })
    await clock.close()
  })

  test('a restart and other settings neither lose nor move the time of the next one', async ({
    erasure,
    project,
    address,
  }) => {
    const clock = await openClock(address)
    await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    await runNextAttempt({
      ...erasure.options,
      blobs: downBlobs(erasure),
      retryDelaysSeconds: [7, 60, 120, 240],
    })
    // A worker that comes now has other settings; the time is in the database.
    await clock.forward(6.999)
    expect(await runNextAttempt(erasure.options)).toBeUndefined()
    await clock.forward(0.001)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    await clock.close()
  })

  test('a DELETE meanwhile returns the job as it is, running', async ({
    erasure,
    project,
    address,
  }) => {
    const clock = await openClock(address)
    await record(erasure, project.id, 'ada')
    const { id } = await requestErasure(erasure, project.id, 'ada')
    await runNextAttempt({ ...erasure.options, blobs: downBlobs(erasure) })
    expect(await requestErasure(erasure, project.id, 'ada')).toMatchObject({
      id,
      status: 'running',
    })
    await expect(requestErasure(erasure, project.id, 'ada', true)).rejects.toMatchObject({
      code: 'deletion_in_progress',
    })
    await clock.close()
  })
})

describe('after a crash', () => {
  test('the attempt is lost when its 30 s lease ends, and the delay counts from there', async ({
    erasure,
    db,
    project,
    address,
  }) => {
    const { retryDelaysSeconds } = erasure.options
    const clock = await openClock(address)
    await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    for (const [index, delay] of [30, 60, 120, 240].entries()) {
      const claimed = await claimJobs(db.sql, 10)
      expect(claimed).toMatchObject([{ id, attempt: index + 1 }])
      await clock.forward(29.999)
      expect(await reapLostAttempts(db.sql, retryDelaysSeconds)).toEqual({ lost: 0, failed: 0 })
      // Noticed late: the lease's own end is what counts.
      await clock.forward(0.001 + 17)
      expect(await reapLostAttempts(db.sql, retryDelaysSeconds)).toEqual({ lost: 1, failed: 0 })
      await clock.forward(delay - 17 - 0.001)
      expect(await claimJobs(db.sql, 10)).toEqual([])
      await clock.forward(0.001)
    }
    expect(await claimJobs(db.sql, 10)).toMatchObject([{ id, attempt: 5 }])
    await clock.forward(30)
    expect(await reapLostAttempts(db.sql, retryDelaysSeconds)).toEqual({ lost: 1, failed: 1 })
    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({
      status: 'failed',
      completedAt: null,
    })
    expect((await writePerson(db.sql, project.id, 'ada', { a: 1 }, true)).outcome).toBe('updated')
    await clock.close()
  })

  test('more lost attempts than are noted at one go are all noticed', async ({
    erasure,
    db,
    project,
    address,
  }) => {
    const clock = await openClock(address)
    for (const { id } of await db.sql<{ id: string }>`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (extract(epoch from now) * 1000)::bigint << 20 | n, 'p' || n,
        '{}', now, now
      from generate_series(1, 230) n, app_now() as now
      returning external_id as id`) {
      await requestErasure(erasure, project.id, id)
    }
    expect(await claimJobs(db.sql, 1_000)).toHaveLength(230)
    await clock.forward(31)
    expect(await reapLostAttempts(db.sql, [30, 60, 120, 240])).toEqual({ lost: 230, failed: 0 })
    await clock.close()
  })
})
