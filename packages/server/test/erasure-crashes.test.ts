import { expect } from 'vitest'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { reapLostAttempts } from '../src/erasure/attempts.ts'
import { Crash, crashingAt } from './erasure-faults.ts'
import {
  fingerprint,
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

const delays = [30, 60, 120, 240] as const

/** An attempt that dies at its n-th effect; answers whether it came so far. */
async function crashAt(n: number, when: 'before' | 'after', { options }: TestErasure) {
  const crashing = crashingAt(n, when, options)
  await runNextAttempt({ ...options, ...crashing.effects }).catch((error) => {
    if (!(error instanceof Crash)) throw error
  })
  return crashing.hasCrashed
}

for (const keepRecordings of [false, true]) {
  for (const when of ['before', 'after'] as const) {
    test(`a worker that dies ${when} any one effect: the next attempt ends the erasure (recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
      erasure,
      db,
      address,
    }) => {
      const clock = await openClock(address)
      let points = 0
      for (let n = 1; ; n++) {
        const { id: projectId } = await newProject(db)
        const ada = await record(erasure, projectId, 'ada', { sessions: 1 })
        const bystander = await record(erasure, projectId, 'bystander', { browsers: 1 })
        const before = await fingerprint(erasure, projectId, bystander)
        const job = await requestErasure(erasure, projectId, 'ada', keepRecordings)
        const kept = await keptFingerprint(erasure, projectId, ada)

        const hasCrashed = await crashAt(n, when, erasure)
        if (hasCrashed) {
          points++
          await clock.forward(31)
          await reapLostAttempts(db.sql, delays)
          await clock.forward(31)
          await runNextAttempt(erasure.options)
        }

        const [after] = await db.sql<{ status: string; attempts: number }>`
          select status, attempts from deletion_jobs where id = ${job.id}`
        expect(after, `effect ${n}`).toMatchObject({ status: 'completed' })
        const left = await remains(erasure, projectId, ada)
        if (keepRecordings) {
          expect(left, `effect ${n}`).toMatchObject({ persons: 0, searches: 0, links: 0 })
          expect(await keptFingerprint(erasure, projectId, ada)).toBe(kept)
        } else expect(left, `effect ${n}`).toEqual(nothing)
        expect(await fingerprint(erasure, projectId, bystander)).toBe(before)
        const receipts = await db.sql`select number from receipts where project_id = ${projectId}`
        expect(receipts, `effect ${n}`).toEqual([{ number: '1' }])
        if (!hasCrashed) break
      }
      // Enumerated by itself: a step that is added is covered.
      expect(points).toBe(await countEffects(erasure, keepRecordings))
      await clock.close()
    })
  }
}

/** The effects of an attempt that nothing disturbs. */
async function countEffects(erasure: TestErasure, keepRecordings: boolean): Promise<number> {
  const { id: projectId } = await newProject(erasure.options.db)
  await record(erasure, projectId, 'ada', { sessions: 1 })
  await requestErasure(erasure, projectId, 'ada', keepRecordings)
  const counting = crashingAt(Number.POSITIVE_INFINITY, 'before', erasure.options)
  await runNextAttempt({ ...erasure.options, ...counting.effects })
  expect(counting.count).toBeGreaterThan(10)
  return counting.count
}

/** Browsers, keys, sessions, chunks and blobs; not the person, nor whose they were. */
function keptFingerprint(
  erasure: TestErasure,
  projectId: number,
  recorded: Awaited<ReturnType<typeof record>>,
) {
  return fingerprint(erasure, projectId, { ...recorded, personId: '0' })
}

test('a worker that dies in every attempt, each time elsewhere, leaves a failed job and a person in use; a new DELETE ends it', async ({
  erasure,
  db,
  project,
  address,
}) => {
  const clock = await openClock(address)
  const ada = await record(erasure, project.id, 'ada')
  const { id } = await requestErasure(erasure, project.id, 'ada')
  for (const [index, n] of [2, 5, 8, 11, 14].entries()) {
    expect(await crashAt(n, 'after', erasure)).toBe(true)
    expect(await db.sql`select status, attempts from deletion_jobs where id = ${id}`).toEqual([
      { status: 'running', attempts: index + 1 },
    ])
    await clock.forward(31)
    await reapLostAttempts(db.sql, delays)
    await clock.forward(240)
  }
  expect(await runNextAttempt(erasure.options)).toBeUndefined()
  expect(
    await db.sql`
    select status, attempts, completed_at, person_id from deletion_jobs where id = ${id}`,
  ).toEqual([{ status: 'failed', attempts: 5, completed_at: null, person_id: null }])
  expect(
    await db.sql`
    select number, outcome, error_code as code from deletion_attempts where job_id = ${id}
    order by number`,
  ).toEqual([1, 2, 3, 4, 5].map((number) => ({ number, outcome: 'lost', code: 'worker_lost' })))

  const again = await requestErasure(erasure, project.id, 'ada')
  expect(again.id).not.toBe(id)
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  await clock.close()
})
