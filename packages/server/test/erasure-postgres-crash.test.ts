import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openFolder } from '../src/blobs/filesystem.ts'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { type EmbeddedDatabase, openEmbedded } from '../src/embedded/embedded.ts'
import { postmasterOf } from '../src/embedded/postmaster.ts'
import { addressesOf } from '../src/embedded/roles.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import { startWorker } from '../src/erasure/worker.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { migrate } from '../src/migrate.ts'
import { suppressionsWith } from '../src/projects/suppressions.ts'
import { connect, type Db } from '../src/sql.ts'
import { newDataFolder } from './data-folder.ts'
import { type Intercept, overBlobs, overDb, overSql } from './erasure-faults.ts'
import {
  fingerprint,
  nothing,
  record,
  remains,
  requestErasure,
  type TestErasure,
} from './erasure-fixtures.ts'
import { newProject, sendRaw } from './fixtures.ts'
import { eventually, newEnvironment, startLethe } from './lethe-process.ts'
import { byDepth, chanceOf, isDeep } from './proof/deep.ts'
import { shiftClock } from './recordings-fixtures.ts'

/** A database server of this file's own, which it can crash. */
let folder: string
let embedded: EmbeddedDatabase
let db: Db
let erasure: TestErasure
let shiftedSeconds = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lethe-crash-'))
  embedded = await openEmbedded({ dataDir: newDataFolder(join(folder, 'data')) })
  await migrate(embedded.address, 'keys')
  // The pools are the same for all crashes, as those of a service are.
  db = connect({ connection: embedded.address })
  const masterKeys = parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)
  const blobFolder = join(folder, 'blobs')
  const blobs = await openFolder(blobFolder)
  const options = {
    db,
    keySql: db.sql,
    blobs,
    log: createLog('silent'),
    metrics: createErasureMetrics(createMetrics().registry),
    signer: await openSigner(db, masterKeys),
    suppressions: suppressionsWith(masterKeys),
    retryDelaysSeconds: [0, 0, 0, 0] as const,
    backupRetentionDays: 30,
  }
  erasure = { options, masterKeys, folder: blobFolder, blobs, logged: () => '' }
})

afterAll(async () => {
  await db.end()
  await embedded.close()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

/**
 * What `pg_ctl stop -m immediate` does: nothing is written, every connection breaks. Answers when
 * the server is gone; another one may be there by then.
 */
async function crash(dataDir: string): Promise<void> {
  const serverOf = () => postmasterOf(join(dataDir, 'postgres'))
  const pid = serverOf()
  if (pid === undefined) return
  process.kill(pid, 'SIGQUIT')
  await eventually(async () => serverOf() !== pid)
}

/** An attempt in whose n-th effect the database crashes; returns whether it came so far. */
async function attemptWithCrash(n: number, when: 'before' | 'during'): Promise<boolean> {
  const dataDir = join(folder, 'data')
  let count = 0
  const intercept: Intercept = async (run) => {
    if (++count !== n) return run()
    if (when === 'during') {
      const running = run()
      await Promise.allSettled([running, crash(dataDir)])
      return running
    }
    await crash(dataDir)
    return run()
  }
  const { options } = erasure
  await runNextAttempt({
    ...options,
    db: overDb(db, intercept),
    keySql: overSql(options.keySql, intercept),
    blobs: overBlobs(options.blobs, intercept),
  }).catch(() => {})
  return count >= n
}

const ways = [
  { keepRecordings: false, when: 'before' },
  { keepRecordings: true, when: 'before' },
  ...(isDeep
    ? ([
        { keepRecordings: false, when: 'during' },
        { keepRecordings: true, when: 'during' },
      ] as const)
    : []),
] as const

for (const { keepRecordings, when } of ways) {
  const kept = keepRecordings ? 'kept' : 'deleted'
  test(`PostgreSQL crashes ${when} any one effect of an erasure: a worker that goes on with the same connections ends it (recordings ${kept})`, async () => {
    const chance = chanceOf(`crashes of PostgreSQL ${when} an effect`)
    const { id: projectId } = await newProject(db)
    const bystander = await record(erasure, projectId, 'bystander', { browsers: 1, sessions: 1 })
    const before = await fingerprint(erasure, projectId, bystander)
    // In a normal run some of the effects, others each time; in a deep one all of them.
    const stride = byDepth(12, 1)
    let crashes = 0
    for (let n = 1 + chance.below(stride); ; n += stride) {
      const person = await record(erasure, projectId, 'ada', { browsers: 1, sessions: 1 })
      const { id } = await requestErasure(erasure, projectId, 'ada', keepRecordings)
      const hasCrashed = await attemptWithCrash(n, when)
      if (hasCrashed) crashes++
      await untilItAnswers()
      // The lease of an attempt whose end could not be noted has to run out.
      shiftedSeconds += 31
      await shiftClock(embedded.address, shiftedSeconds)
      const worker = startWorker({
        ...erasure.options,
        jobsAtOnce: 2,
        pollSeconds: 0.05,
        reapSeconds: 0.05,
        connection: embedded.address,
      })
      await eventually(async () => (await statusOf(projectId, id)) === 'completed')
      await worker.stop()

      const left = await remains(erasure, projectId, person)
      if (keepRecordings)
        expect(left).toMatchObject({ persons: 0, links: 0, sessions: 1, blobs: 2 })
      else expect(left, `effect ${n}`).toEqual(nothing)
      expect(await fingerprint(erasure, projectId, bystander), `effect ${n}`).toBe(before)
      const receipts = await db.sql`select from receipts where job_id = ${id}`
      expect(receipts).toHaveLength(1)
      if (!hasCrashed) break
    }
    // Enumerated by itself: a step that is added is covered.
    expect(crashes * stride).toBeGreaterThan(8)
  }, 600_000)
}

/** Also the pool has noticed by then which of its connections are broken. */
function untilItAnswers(): Promise<unknown> {
  return eventually(() =>
    db.sql`select 1`.then(
      () => true,
      () => false,
    ),
  )
}

async function statusOf(projectId: number, id: string): Promise<string | undefined> {
  const [job] = await db.sql<{ status: string }>`
    select status from deletion_jobs where project_id = ${projectId} and id = ${id}`
  return job?.status
}

test('PostgreSQL crashes again and again under the running service: it goes on by itself, and every erasure ends completed', async () => {
  const chance = chanceOf('crashes of PostgreSQL under the service')
  const env = await newEnvironment(undefined, { ERASURE_RETRY_DELAYS: '0,0,0,0' })
  const service = await startLethe(['serve'], env, /listens on (\S+)[\s\S]*DELETE/)
  const [, key = ''] = /secret key +(sk_\w+)/.exec(service.output()) ?? []
  /** As a client does: again, until the service has a response of its own. */
  const ask = (path: string, method = 'GET', body?: object) =>
    eventually(async () => {
      const answer = await sendRaw(service.found, path, key, { method, ...(body && { body }) })
      expect([200, 201, 202, 404, 500, 503]).toContain(answer.status)
      return answer.status < 500 && answer
    })
  const address = addressesOf(
    join(env.DATA_DIR, 'postgres'),
    join(env.DATA_DIR, 'postgres'),
  ).superuser
  const jobIds: string[] = []
  for (let round = 0; round < byDepth(2, 30); round++) {
    for (let n = 0; n < 5; n++) {
      const externalId = `person-${jobIds.length}`
      await ask('/v1/persons', 'POST', { externalId })
      const deleted = await ask(`/v1/persons/${externalId}`, 'DELETE')
      // 404: the response to the first of two was lost, and the erasure has ended since.
      if (deleted.status === 202) jobIds.push(deleted.json.job.id)
      else jobIds.push(await jobOf(ask, externalId))
    }
    await sleep(chance.below(30))
    await crash(env.DATA_DIR)
    await ask('/v1/persons')
    await eventually(() =>
      shiftClock(address, (round + 1) * 31).then(
        () => true,
        () => false,
      ),
    )
  }
  for (const id of jobIds) {
    await eventually(async () => {
      const { json } = await ask(`/v1/deletion-jobs/${id}`)
      return json.job.status === 'completed'
    })
  }
  expect((await ask('/v1/persons')).json.persons).toEqual([])
  expect(await service.stop()).toBe(0)
}, 600_000)

async function jobOf(
  ask: (path: string) => ReturnType<typeof sendRaw>,
  externalId: string,
): Promise<string> {
  const { json } = await ask(`/v1/deletion-jobs?externalId=${externalId}`)
  return json.jobs[0].id
}
