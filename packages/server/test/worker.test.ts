import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { browsersOfSmall, reapLostAttempts } from '../src/erasure/job-leases.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { requestDeletion } from '../src/erasure/request.ts'
import { startWorker, type Worker, type WorkerOptions } from '../src/erasure/worker.ts'
import { createMetrics } from '../src/metrics.ts'
import { addFactMetrics, readFacts } from '../src/operations/facts.ts'
import { connect, connectOne, type Db } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
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

/** So seldom that it never happens in a test. */
const never = 100_000

function start(erasure: TestErasure, options: Partial<WorkerOptions> = {}): Worker {
  const worker = startWorker({ ...erasure.options, jobsAtOnce: 4, ...options })
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= worker.stop()
    return stopping
  }
  onTestFinished(stop)
  return { stop }
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await sleep(10)
}

const hasEnded = (db: Db, projectId: number, id: string, status = 'completed') =>
  until(async () => (await findDeletionJob(db.sql, projectId, id))!.status === status)

test('the next attempt starts when it is due: a worker that never polls makes all five', async ({
  erasure,
  project,
  db,
  address,
}) => {
  await record(erasure, project.id, 'ada', { browsers: 1 })
  const blobs = {
    ...erasure.blobs,
    deletePrefix: async () => {
      throw new BlobFault('access_denied', '')
    },
  }
  const retryDelaysSeconds = [1, 1, 0, 0] as const
  start(erasure, { blobs, retryDelaysSeconds, connection: address, pollSeconds: never })
  const { id } = await requestErasure(erasure, project.id, 'ada')
  await hasEnded(db, project.id, id, 'failed')
  expect((await findDeletionJobDetails(db.sql, project.id, id))!.attempts).toHaveLength(5)
})

describe('a new job', () => {
  test('is announced at once: a worker that never polls finds it', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    start(erasure, { connection: address, pollSeconds: never })
    for (const one of ['ada', 'bob']) {
      await record(erasure, project.id, one, { browsers: 1 })
      await hasEnded(db, project.id, (await requestErasure(erasure, project.id, one)).id)
    }
  })

  test('is found by polling if nothing is announced', async ({ erasure, project, db }) => {
    start(erasure, { pollSeconds: 0.02 })
    await record(erasure, project.id, 'ada', { browsers: 1 })
    await hasEnded(db, project.id, (await requestErasure(erasure, project.id, 'ada')).id)
  })

  test('is announced again after the listening connection broke', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    start(erasure, { connection: address, pollSeconds: never })
    const listeners = async () =>
      (
        await db.sql<{ pid: number }>`
          select pid from pg_stat_activity
          where datname = current_database() and query like 'listen %'`
      ).map(({ pid }) => pid)
    await until(async () => (await listeners()).length === 1)
    const [first] = await listeners()
    await db.sql`select pg_terminate_backend(${first})`
    // One that is requested while nobody listens is found when somebody does again.
    await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    await hasEnded(db, project.id, id)
    await until(async () => (await listeners()).some((pid) => pid !== first))
    await record(erasure, project.id, 'bob', { browsers: 0 })
    await hasEnded(db, project.id, (await requestErasure(erasure, project.id, 'bob')).id)
  })
})

test('a worker runs no more large jobs at once than configured', async ({
  erasure,
  project,
  db,
}) => {
  const ids = []
  for (let i = 0; i < 7; i++) {
    const browsers = browsersOfSmall + 1
    await record(erasure, project.id, `p${i}`, { browsers, sessions: 0 })
    ids.push((await requestErasure(erasure, project.id, `p${i}`)).id)
  }
  let most = 0
  const blobs = overBlobs(erasure.blobs, async (run, what) => {
    if (what === 'deletePrefix') {
      const [held] = await db.sql<{ n: number }>`
        select count(*)::int as n from deletion_jobs where lease_token is not null`
      most = Math.max(most, held!.n)
      // Long enough for any other that was started to come here as well.
      await sleep(2)
    }
    return run()
  })
  start(erasure, { blobs, jobsAtOnce: 3, pollSeconds: 0.02 })
  for (const id of ids) await hasEnded(db, project.id, id)
  expect(most).toBe(3)
})

test('three workers and a hundred jobs: each is done once, none is lost', async ({
  erasure,
  project,
  db,
  address,
}) => {
  const persons = []
  for (let i = 0; i < 100; i++) {
    persons.push(
      await record(erasure, project.id, `p${i}`, { browsers: 1, sessions: 1, chunks: 1 }),
    )
  }
  for (let w = 0; w < 3; w++) start(erasure, { connection: address, pollSeconds: 0.1 })
  await Promise.all(persons.map((_, i) => requestErasure(erasure, project.id, `p${i}`)))
  await until(async () => (await db.sql`select from receipts`).length === 100)
  expect(
    await db.sql`select status, attempts, count(*)::int as n from deletion_jobs group by 1, 2`,
  ).toEqual([{ status: 'completed', attempts: 1, n: 100 }])
  for (const one of persons) expect(await remains(erasure, project.id, one)).toEqual(nothing)
})

describe('a graceful stop', () => {
  test('hands the attempt back: it does not count, and is due at once', async ({
    erasure,
    project,
    db,
  }) => {
    const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const inside = Promise.withResolvers<void>()
    const blobs = {
      ...erasure.blobs,
      async deletePrefix(_: string, options?: { signal?: AbortSignal }) {
        inside.resolve()
        await sleep(never, undefined, { signal: options!.signal! })
        return { blobs: 0, bytes: 0 }
      },
    }
    const worker = start(erasure, { blobs, pollSeconds: 0.02 })
    await inside.promise
    await worker.stop()
    expect(
      await db.sql`
      select status, attempts, lease_token as lease, next_attempt_at <= app_now() as due
      from deletion_jobs where id = ${id}`,
    ).toEqual([{ status: 'running', attempts: 0, lease: null, due: true }])
    expect((await findDeletionJobDetails(db.sql, project.id, id))!.attempts).toEqual([])
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect((await findDeletionJobDetails(db.sql, project.id, id))!.attempts).toHaveLength(1)
  })

  test('works even before the worker listens', async ({ erasure, address }) => {
    for (let milliseconds = 0; milliseconds < 10; milliseconds++) {
      const worker = start(erasure, { connection: address })
      await sleep(milliseconds)
      await worker.stop()
    }
  })

  test('takes no new job, and ends even if the database is down', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const proxy = await startCuttingProxy(address)
    const through = connect({ connection: proxy.address })
    const worker = start(erasure, {
      db: through,
      keySql: through.sql,
      connection: proxy.address,
      pollSeconds: 0.02,
    })
    await until(async () => {
      const [row] = await db.sql<{ n: number }>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and query like 'listen %'`
      return row!.n > 0
    })
    await proxy.close()
    await worker.stop()
    await through.end()
    await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({ status: 'pending' })
  })
})

test('a worker is seen as soon as it has started', async ({ erasure, db }) => {
  await db.sql`update worker_seen set at = app_now() - interval '1 hour'`
  start(erasure, { pollSeconds: never, reapSeconds: never })
  await until(async () => (await readFacts(db.sql)).workerSeenSeconds < 60)
})

test('a worker reaps the jobs of dead workers, and shows that in its metrics', async ({
  erasure,
  project,
  db,
  address,
}) => {
  const clock = await openClock(address)
  const { registry } = createMetrics()
  addFactMetrics(registry, db)
  const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
  const { id } = await requestErasure(erasure, project.id, 'ada')
  await db.sql`
    update deletion_jobs set status = 'running', attempts = 4, started_at = app_now(),
      lease_token = gen_random_uuid(), lease_until = app_now()`
  await db.sql`
    insert into deletion_attempts (project_id, job_id, number) values (${project.id}, ${id}, 4)`
  await clock.forward(1)
  const down = overBlobs(erasure.blobs, (run, what) =>
    what === 'deletePrefix' ? Promise.reject(new BlobFault('access_denied', '')) : run(),
  )
  start(erasure, {
    blobs: down,
    metrics: createErasureMetrics(registry),
    pollSeconds: 0.02,
    reapSeconds: 0.02,
  })
  await until(async () => {
    const [row] = await db.sql<{ outcome: string }>`
      select outcome from deletion_attempts where number = 4`
    return row!.outcome === 'lost'
  })
  await until(async () => /^lethe_deletion_jobs_running 1$/m.test(await registry.metrics()))
  await clock.forward(240)
  await hasEnded(db, project.id, id, 'failed')
  await until(async () => /^lethe_deletion_jobs_running 0$/m.test(await registry.metrics()))
  const metrics = await registry.metrics()
  expect(metrics).toContain('lethe_erasure_attempts_reaped_total 1')
  expect(metrics).toContain('lethe_deletion_jobs_failed_total 1')
  expect(metrics).toContain('lethe_erasure_attempt_seconds_count{outcome="failed"} 1')
  expect(metrics).not.toMatch(/\bada\b/)
  expect(await remains(erasure, project.id, ada)).toMatchObject({ persons: 1, keys: 0 })
  await clock.close()
})

describe('the database', () => {
  for (const keepRecordings of [false, true]) {
    test(`commits any one transaction but loses the response: the erasure completes, once (recordings ${keepRecordings ? 'kept' : 'deleted'})`, async ({
      erasure,
      project,
      db,
      address,
    }) => {
      const clock = await openClock(address)
      const proxy = await startCuttingProxy(address)
      const through = connect({ connection: proxy.address })
      const options = { ...erasure.options, db: through, keySql: through.sql }
      const cutSteps: string[] = []
      for (let n = 1; ; n++) {
        const externalId = `p${n}`
        const ada = await record(erasure, project.id, externalId, { browsers: 1 })
        const { id } = await requestErasure(erasure, project.id, externalId, keepRecordings)
        proxy.cutCommit(n)
        const outcome = await runNextAttempt(options)
        if (!proxy.hasCut) {
          expect(outcome).toBe('completed')
          break
        }
        const [attempt] = (await findDeletionJobDetails(db.sql, project.id, id))!.attempts
        cutSteps.push(attempt!.step ?? 'the last')
        const job = (await findDeletionJob(db.sql, project.id, id))!
        // Either it was the last one, then all is done, or the attempt failed and is made again.
        expect(outcome).toBe(job.status === 'completed' ? 'lost' : 'failed')
        if (job.status !== 'completed') {
          await clock.forward(30)
          expect(await runNextAttempt(options)).toBe('completed')
        }
        expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({ status: 'completed' })
        const left = await remains(erasure, project.id, ada)
        expect(left).toMatchObject({ persons: 0, links: 0, sessions: keepRecordings ? 2 : 0 })
        const receipts = await db.sql`select from receipts where job_id = ${id}`
        expect(receipts).toHaveLength(1)
      }
      // Each transaction of an attempt; those that find nothing to do are not begun.
      const removal = keepRecordings ? [] : ['delete_blobs', 'delete_rows']
      expect(cutSteps).toEqual(['retire_browsers', ...removal, 'write_ledger', 'the last'])
      await through.end()
      await proxy.close()
      await clock.close()
    })
  }

  test('that goes down and comes back loses no job and stops no worker', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const proxy = await startCuttingProxy(address)
    const through = connect({ connection: proxy.address })
    const persons = []
    for (let i = 0; i < 12; i++) {
      persons.push(await record(erasure, project.id, `p${i}`, { browsers: 1 }))
      await requestErasure(erasure, project.id, `p${i}`)
    }
    start(erasure, {
      db: through,
      keySql: through.sql,
      connection: proxy.address,
      pollSeconds: 0.05,
      reapSeconds: 0.05,
      retryDelaysSeconds: [0, 0, 0, 0],
    })
    const clock = await openClock(address)
    for (let i = 0; i < 4; i++) {
      await sleep(30)
      proxy.cutAll()
    }
    // Attempts whose failure could not be noted either are lost when their lease ends.
    await until(async () => {
      await clock.forward(1)
      const rows = await db.sql`select from deletion_jobs where status in ('pending', 'running')`
      return rows.length === 0
    })
    // A job may have lost five attempts by all that; then a new DELETE ends it, by the same worker.
    await clock.close()
    for (const { externalId } of await db.sql<{ externalId: string }>`
      select external_id as "externalId" from persons`) {
      const { id } = await requestErasure(erasure, project.id, externalId)
      await hasEnded(db, project.id, id)
    }
    for (const one of persons) expect(await remains(erasure, project.id, one)).toEqual(nothing)
    await proxy.close()
  })

  test('is asked for jobs by an index, however many finished ones there are', async ({
    erasure,
    project,
    db,
    address,
  }) => {
    await db.sql`
      insert into deletion_jobs (project_id, external_id, keep_recordings, status, attempts,
        started_at, completed_at)
      select ${project.id}, 'p' || n, false, 'completed', 1, app_now(), app_now()
      from generate_series(1, 3000) n`
    await db.sql`analyze deletion_jobs`
    const { client, end } = await connectOne(address)
    const reads = async () => {
      const { rows } = await client.query(`
        select (pg_stat_force_next_flush() is null)::text as flushed,
          (select sum(seq_tup_read + idx_tup_fetch)::int from pg_stat_user_tables
           where relname = 'deletion_jobs') as rows`)
      return rows[0].rows as number
    }
    // The counters of a connection are told when it is idle or ends: so each look is a new one.
    const look = async () => {
      await record(erasure, project.id, 'ada', { browsers: 0 })
      const own = connect({ connection: address, poolSize: 1 })
      await requestDeletion(own, {
        projectId: project.id,
        externalId: 'ada',
        keepRecordings: false,
        requestedBy: 'command',
      })
      await reapLostAttempts(own.sql, [30, 60, 120, 240])
      expect(await runNextAttempt({ ...erasure.options, db: own, keySql: own.sql })).toBe(
        'completed',
      )
      await own.end()
    }
    // A connection of an earlier test may report its own reads late, but only once.
    let least = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < 3 && least >= 100; tries++) {
      const before = await reads()
      await look()
      let after = before
      await until(async () => {
        after = await reads()
        return after > before
      })
      least = Math.min(least, after - before)
    }
    await end()
    expect(least).toBeLessThan(100)
  })
})
