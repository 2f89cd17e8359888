import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished } from 'vitest'
import { runAttempts, runNextAttempt } from '../src/erasure/attempt.ts'
import { claimJobs, reapLostAttempts, togetherMaximum } from '../src/erasure/job-leases.ts'
import type { Db } from '../src/sql.ts'
import { type Intercept, overBlobs, overDb, overSql } from './erasure-faults.ts'
import {
  nothing,
  openClock,
  record,
  remains,
  requestErasure,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'
import { byDepth, chanceOf } from './proof/deep.ts'

const delays = [30, 60, 120, 240] as const

/** A worker that stands still before its n-th effect, like a process that was stopped. */
function frozenAt(n: number, { options }: TestErasure) {
  let count = 0
  const reached = Promise.withResolvers<void>()
  const thaw = Promise.withResolvers<void>()
  const intercept: Intercept = async (run) => {
    if (++count === n) {
      reached.resolve()
      await thaw.promise
    }
    return run()
  }
  return {
    options: {
      ...options,
      db: overDb(options.db, intercept),
      keySql: overSql(options.keySql, intercept),
      blobs: overBlobs(options.blobs, intercept),
    },
    reached: reached.promise,
    thaw: () => thaw.resolve(),
  }
}

/** What idle_in_transaction_session_timeout does after its time. */
async function endIdleTransactions(db: Db): Promise<void> {
  await db.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'`
}

/** Everything in the database, row by row. */
async function wholeDatabase(db: Db): Promise<string> {
  const [row] = await db.sql<{ all: string }>`
    select string_agg(row, E'\n' order by row) as all from (
      select 'person ' || row_to_json(t)::text as row from persons t
      union all select 'browser ' || row_to_json(t)::text from browsers t
      union all select 'link ' || row_to_json(t)::text from person_browsers t
      union all select 'session ' || row_to_json(t)::text from sessions t
      union all select 'chunk ' || row_to_json(t)::text from chunks t
      union all select 'job ' || row_to_json(t)::text from deletion_jobs t
      union all select 'attempt ' || row_to_json(t)::text from deletion_attempts t
      union all select 'receipt ' || row_to_json(t)::text from receipts t) rows`
  return row!.all
}

/** The effects that are the claim, a look for projects and the claim itself: there is nothing to lose. */
const claiming = 2

/** In a normal run some effects, others each time: most of them for one person whose recordings go. */
const strideOf = (names: string[], keepRecordings: boolean) =>
  byDepth(names.length === 1 && !keepRecordings ? 4 : 10, 1)

for (const names of [['ada'], ['ada', 'grace']]) {
  for (const keepRecordings of [false, true]) {
    test(`a worker that was frozen before any one effect and lost its lease changes nothing when it wakes (${names.length === 1 ? 'one person' : 'persons together'}, recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
      erasure,
      db,
      address,
    }) => {
      const clock = await openClock(address)
      const stride = strideOf(names, keepRecordings)
      const first = 1 + (stride > 1 ? chanceOf('frozen workers').below(stride) : 0)
      for (let n = first; ; n += stride) {
        const { id: projectId } = await newProject(db)
        for (const name of names) {
          await record(erasure, projectId, name, { browsers: 1, sessions: 1 })
          await requestErasure(erasure, projectId, name, keepRecordings)
        }
        const frozen = frozenAt(n, erasure)
        onTestFinished(frozen.thaw)
        const zombie = runNextAttempt(frozen.options, togetherMaximum)
        const wasFrozen = await Promise.race([
          frozen.reached.then(() => true),
          zombie.then(() => false),
        ])
        if (!wasFrozen) {
          expect(n).toBeGreaterThan(10)
          break
        }
        await clock.forward(30)
        // Frozen inside a transaction it holds its jobs until the server ends the idle session.
        for (let lost = n <= claiming ? names.length : 0; lost < names.length; ) {
          lost += (await reapLostAttempts(db.sql, delays)).lost
          if (lost < names.length) await endIdleTransactions(db)
        }
        await clock.forward(30)
        for (const _ of names) expect(await runNextAttempt(erasure.options)).toBe('completed')
        const before = await wholeDatabase(db)

        frozen.thaw()
        const outcome = names.length === 1 ? 'lost' : 'handed_back'
        expect(await zombie, `effect ${n}`).toBe(n <= claiming ? undefined : outcome)
        expect(await wholeDatabase(db), `effect ${n}`).toBe(before)
        const jobs = await db.sql`
          select status from deletion_jobs where project_id = ${projectId}`
        expect(jobs).toEqual(names.map(() => ({ status: 'completed' })))
      }
      await clock.close()
    })
  }
}

describe('the lease', () => {
  test('ends on the clock of the process too: an attempt whose claim was sent 30 s ago does nothing', async ({
    erasure,
    db,
    project,
  }) => {
    const ada = await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    const before = await remains(erasure, project.id, ada)
    const [job] = await claimJobs(db.sql, 1)
    expect(await runAttempts(erasure.options, [job!], performance.now() - 30_000)).toBe('lost')
    expect(await remains(erasure, project.id, ada)).toEqual(before)
  })

  test('aborts what is in flight when it ends', async ({ erasure, db, project }) => {
    await record(erasure, project.id, 'ada')
    await requestErasure(erasure, project.id, 'ada')
    let aborted = 0
    const blobs = {
      ...erasure.blobs,
      async deletePrefix(_prefix: string, options?: { signal?: AbortSignal }) {
        await sleep(60_000, undefined, { signal: options!.signal! }).finally(() => aborted++)
        return { blobs: 0, bytes: 0 }
      },
    }
    const [job] = await claimJobs(db.sql, 1)
    const sentAt = performance.now() - 29_000
    expect(await runAttempts({ ...erasure.options, blobs }, [job!], sentAt)).toBe('lost')
    expect(aborted).toBe(2)
  })

  test('is renewed as long as the attempt moves on, and what went so far can be watched', async ({
    erasure,
    db,
    project,
  }) => {
    await record(erasure, project.id, 'ada', { browsers: 1 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const watched: { lease: string; blobs: string; step: string | null }[] = []
    const look = async () => {
      const [row] = await db.sql<{ lease: string; blobs: string; step: string | null }>`
        select lease_until as lease, j.removed_blobs as blobs, step
        from deletion_jobs j join deletion_attempts a on a.job_id = j.id where j.id = ${id}`
      watched.push(row!)
      return row!
    }
    const blobs = {
      ...erasure.blobs,
      async deletePrefix(
        prefix: string,
        options?: Parameters<typeof erasure.blobs.deletePrefix>[1],
      ) {
        // A store that is slow, and says so: part after part, until both were seen.
        const first = await look()
        for (let part = 1; ; part++) {
          options?.onProgress?.({ blobs: part, bytes: part * 10 })
          const now = await look()
          if (now.lease > first.lease && Number(now.blobs) > 3) break
          await sleep(20)
        }
        return erasure.blobs.deletePrefix(prefix, options)
      },
    }
    const leasePace = { renewSeconds: 0.1, noteSeconds: 0.05, hungSeconds: 60 }
    expect(await runNextAttempt({ ...erasure.options, blobs, leasePace })).toBe('completed')
    expect(watched.at(-1)!.step).toBe('delete_blobs')
  })

  test('is not renewed for an attempt that hangs', async ({ erasure, db, project }) => {
    await record(erasure, project.id, 'ada', { browsers: 1 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const hanging = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const blobs = overBlobs(erasure.blobs, async (run, what) => {
      if (what === 'deletePrefix') {
        hanging.resolve()
        await goOn.promise
      }
      return run()
    })
    const leasePace = { renewSeconds: 0.05, noteSeconds: 0.05, hungSeconds: 0.2 }
    const attempt = runNextAttempt({ ...erasure.options, blobs, leasePace })
    await hanging.promise
    const leaseOf = async () => {
      const [row] = await db.sql<{ lease: string }>`
        select lease_until as lease from deletion_jobs where id = ${id}`
      return row!.lease
    }
    // It is renewed for a moment yet; from then on it stands, over many rounds.
    let steady = 0
    for (let last = await leaseOf(); steady < 10; await sleep(60)) {
      const now = await leaseOf()
      steady = now === last ? steady + 1 : 0
      last = now
    }
    goOn.resolve()
    expect(await attempt).toBe('completed')
  })
})

test('of eight connections that claim at once, each job is claimed by one', async ({
  erasure,
  db,
  project,
}) => {
  for (let round = 0; round < byDepth(5, 20); round++) {
    const ids = await Promise.all(
      Array.from({ length: 5 }, async (_, i) => {
        await record(erasure, project.id, `${round}-${i}`, { browsers: 0 })
        return (await requestErasure(erasure, project.id, `${round}-${i}`)).id
      }),
    )
    const claimed = (
      await Promise.all(Array.from({ length: 8 }, () => claimJobs(db.sql, 2)))
    ).flat()
    expect(claimed.map((job) => job.id).sort()).toEqual(ids.sort())
    expect(new Set(claimed.map((job) => job.leaseToken)).size).toBe(5)
  }
})

test('the reaper leaves a job alone whose last transaction is under way, and one that was reaped is not completed', async ({
  erasure,
  db,
  project,
  address,
}) => {
  const clock = await openClock(address)
  for (const first of ['completion', 'reaper'] as const) {
    const { id: projectId } = await newProject(db)
    const ada = await record(erasure, projectId, 'ada', { browsers: 1 })
    await requestErasure(erasure, projectId, 'ada')
    const inside = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    // Stands still in the last transaction: before its fence, or with the person gone already.
    const pauseAt = first === 'completion' ? /delete from persons/ : /for no key update/
    let transactions = 0
    const paused = overDb(db, async (run, what) => {
      if (what === 'commit') transactions++
      // Rows are deleted in the first transaction, the person in the second.
      if (transactions < 2 || !pauseAt.test(what)) return run()
      if (first === 'reaper') {
        inside.resolve()
        await goOn.promise
        return run()
      }
      const result = await run()
      inside.resolve()
      await goOn.promise
      return result
    })
    const attempt = runNextAttempt({ ...erasure.options, db: paused })
    await inside.promise
    await clock.forward(31)
    const reaped = await reapLostAttempts(db.sql, delays)
    goOn.resolve()
    if (first === 'completion') {
      expect(reaped).toEqual({ lost: 0, failed: 0 })
    } else {
      expect(reaped).toEqual({ lost: 1, failed: 0 })
      expect(await attempt).toBe('lost')
      expect(await remains(erasure, projectId, ada)).toMatchObject({ persons: 1, links: 1 })
      await clock.forward(31)
      expect(await runNextAttempt(erasure.options)).toBe('completed')
    }
    await attempt
    // Completed or, where the lease ended under way, not: the next attempt sees to it.
    await clock.forward(61)
    await reapLostAttempts(db.sql, delays)
    await clock.forward(61)
    await runNextAttempt(erasure.options)
    expect(await remains(erasure, projectId, ada)).toEqual(nothing)
    const receipts = await db.sql`select number from receipts where project_id = ${projectId}`
    expect(receipts).toHaveLength(1)
  }
  await clock.close()
  expect(project.id).toBeGreaterThan(0)
})
