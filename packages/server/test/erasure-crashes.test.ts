import { expect } from 'vitest'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { reapLostAttempts, togetherMaximum } from '../src/erasure/job-leases.ts'
import { Crash, crashingAt } from './erasure-faults.ts'
import {
  fingerprint,
  nothing,
  openClock,
  type Recorded,
  record,
  remains,
  requestErasure,
  runAll,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'
import { byDepth, chanceOf } from './proof/deep.ts'

const delays = [30, 60, 120, 240] as const

/** An attempt that dies at its n-th effect; returns whether it came so far. */
async function crashAt(n: number, when: 'before' | 'after', { options }: TestErasure) {
  const crashing = crashingAt(n, when, options)
  await runNextAttempt({ ...options, ...crashing.effects }, togetherMaximum).catch((error) => {
    if (!(error instanceof Crash)) throw error
  })
  return crashing.hasCrashed
}

const alone = ['ada']
const together = ['ada', 'grace', 'alan']

/** In a normal run at some of the places, others each time: most of them for one person whose recordings go. */
const strideOf = (names: string[], keepRecordings: boolean) =>
  byDepth(names === alone && !keepRecordings ? 5 : 12, 1)

for (const names of [alone, together]) {
  for (const keepRecordings of [false, true]) {
    for (const when of ['before', 'after'] as const) {
      const stride = strideOf(names, keepRecordings)
      const what = `${names.length === 1 ? 'one person' : 'persons together'}, recordings ${keepRecordings ? 'kept' : 'deleted'}`
      test(`a worker that dies ${when} any one effect: the next attempts end the erasure (${what})`, async ({
        erasure,
        db,
        address,
      }) => {
        const clock = await openClock(address)
        const first =
          stride > 1 ? 1 + chanceOf(`deaths ${when} an effect, ${what}`).below(stride) : 1
        // Enumerated by itself: a step that is added is covered. And first, as the first attempt of all
        // creates what the others find, such as the signing key.
        await countEffects(erasure, names, keepRecordings)
        const effects = await countEffects(erasure, names, keepRecordings)
        const crashed: Planted[] = []
        let hasCrashed = true
        for (let n = first; hasCrashed; n += stride) {
          const planted = await plantAll(erasure, names, keepRecordings)
          hasCrashed = await crashAt(n, when, erasure)
          // One that died before it had claimed anything leaves it to the next.
          await runAll(erasure.options)
          if (hasCrashed) crashed.push({ ...planted, effect: n })
          else await expectErased(erasure, planted, names, keepRecordings)
        }
        // Each in a project of its own, and no attempt is about two projects.
        await clock.forward(31)
        await reapLostAttempts(db.sql, delays)
        await clock.forward(31)
        await runAll(erasure.options)
        for (const one of crashed) await expectErased(erasure, one, names, keepRecordings)
        expect(crashed).toHaveLength(Math.ceil((effects - first + 1) / stride))
        await clock.close()
      })
    }
  }
}

interface Planted {
  projectId: number
  persons: Recorded[]
  bystander: Recorded
  /** Fingerprints of the bystander and of what stays of the persons. */
  before: string
  kept: string[]
  /** Where the worker died. */
  effect?: number
}

async function plantAll(
  erasure: TestErasure,
  names: string[],
  keepRecordings: boolean,
): Promise<Planted> {
  const { id: projectId } = await newProject(erasure.options.db)
  const persons = await plant(erasure, projectId, names, keepRecordings)
  const bystander = await record(erasure, projectId, 'bystander', { browsers: 1 })
  return {
    projectId,
    persons,
    bystander,
    before: await fingerprint(erasure, projectId, bystander),
    kept: await keptFingerprints(erasure, projectId, persons),
  }
}

async function expectErased(
  erasure: TestErasure,
  { projectId, persons, bystander, before, kept, effect }: Planted,
  names: string[],
  keepRecordings: boolean,
): Promise<void> {
  const { sql } = erasure.options.db
  const jobs = await sql`
    select status, count(*)::int as jobs from deletion_jobs
    where project_id = ${projectId} group by status`
  expect(jobs, `effect ${effect}`).toEqual([{ status: 'completed', jobs: names.length }])
  for (const one of persons) {
    const left = await remains(erasure, projectId, one)
    if (keepRecordings) {
      expect(left, `effect ${effect}`).toMatchObject({ persons: 0, searches: 0, links: 0 })
    } else expect(left, `effect ${effect}`).toEqual(nothing)
  }
  if (keepRecordings) expect(await keptFingerprints(erasure, projectId, persons)).toEqual(kept)
  expect(await fingerprint(erasure, projectId, bystander)).toBe(before)
  const receipts = await sql<{ number: string }>`
    select number from receipts where project_id = ${projectId} order by number`
  expect(receipts.map(({ number }) => Number(number))).toEqual(names.map((_, i) => i + 1))
}

async function plant(
  erasure: TestErasure,
  projectId: number,
  names: string[],
  keepRecordings: boolean,
): Promise<Recorded[]> {
  const persons = []
  for (const name of names) {
    persons.push(await record(erasure, projectId, name, { sessions: 1 }))
    await requestErasure(erasure, projectId, name, keepRecordings)
  }
  return persons
}

/** The effects of an attempt that nothing disturbs. */
async function countEffects(
  erasure: TestErasure,
  names: string[],
  keepRecordings: boolean,
): Promise<number> {
  const { id: projectId } = await newProject(erasure.options.db)
  await plant(erasure, projectId, names, keepRecordings)
  const counting = crashingAt(Number.POSITIVE_INFINITY, 'before', erasure.options)
  await runNextAttempt({ ...erasure.options, ...counting.effects }, togetherMaximum)
  expect(counting.count).toBeGreaterThan(10)
  return counting.count
}

const keptFingerprints = (erasure: TestErasure, projectId: number, persons: Recorded[]) =>
  Promise.all(persons.map((one) => keptFingerprint(erasure, projectId, one)))

/** Browsers, keys, sessions, chunks and blobs; not the person, whose they were, nor `retired`. */
function keptFingerprint(erasure: TestErasure, projectId: number, recorded: Recorded) {
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
