import { randomBytes } from 'node:crypto'
import { rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { openFolder } from '../src/blobs/filesystem.ts'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { reapLostAttempts } from '../src/erasure/job-leases.ts'
import { giveUpEntries } from '../src/erasure/ledger-store.ts'
import { migrate } from '../src/migrate.ts'
import type { Db, DbAddress } from '../src/sql.ts'
import {
  fingerprint,
  nothing,
  type Recorded,
  record,
  remains,
  type TestErasure,
} from './erasure-fixtures.ts'
import { sendRaw, type TestProject, test } from './fixtures.ts'
import {
  type Environment,
  eventually,
  greeting,
  type LetheProcess,
  newEnvironment,
  spawnLethe,
  startLethe,
  workerGreeting,
} from './lethe-process.ts'
import { byDepth, type Chance, chanceOf, isDeep } from './proof/deep.ts'
import { shiftClock } from './recordings-fixtures.ts'
import { databaseZones, fileZones } from './residue-fixtures.ts'

const delays = [0, 0, 0, 0] as const

/** The same for all tests, as they share a database. */
const masterKey = `k1:${randomBytes(32).toString('base64')}`

interface Stage {
  db: Db
  project: TestProject
  env: Environment & { DATA_DIR: string }
  /** The address of the API; no erasures run there. */
  url: string
  /** What the fixtures of erasures work with, over the same database and folder. */
  erasure: Pick<TestErasure, 'blobs' | 'masterKeys'> & TestErasure
  /** Moves the only clock of the server ahead; it goes on from there. */
  forward(seconds: number): Promise<void>
}

async function setStage(db: Db, address: DbAddress, project: TestProject): Promise<Stage> {
  // Each stage has a folder of its own, and so a ledger.
  await giveUpEntries(db.sql)
  await migrate(address, 'keys')
  const env = await newEnvironment(address, {
    MASTER_KEY: masterKey,
    ERASURE_RETRY_DELAYS: delays.join(),
  })
  const folder = join(env.DATA_DIR, 'blobs')
  const blobs = await openFolder(folder)
  const masterKeys = parseMasterKeys(masterKey)
  const options = { db, blobs } as TestErasure['options']
  const service = await startLethe(['serve', '--no-worker'], env, greeting)
  let shift = 0
  await shiftClock(address, 0)
  return {
    db,
    project,
    env,
    url: service.found,
    erasure: { options, blobs, masterKeys, folder, logged: () => '' },
    async forward(seconds) {
      shift += seconds
      await shiftClock(address, shift)
    },
  }
}

interface Erased extends Recorded {
  jobId: string
}

async function requestErasure(
  { erasure, project, url }: Stage,
  externalId: string,
): Promise<Erased> {
  const recorded = await record(erasure, project.id, externalId, {
    browsers: 3,
    sessions: 2,
    chunks: 3,
  })
  const deleted = await sendRaw(url, `/v1/persons/${externalId}`, project.secretKey, {
    method: 'DELETE',
  })
  return { ...recorded, jobId: deleted.json.job.id }
}

interface JobRow {
  id: string
  status: string
  attempts: number
  isHeld: boolean
}

function jobRows({ db, project }: Pick<Stage, 'db' | 'project'>): Promise<JobRow[]> {
  return db.sql<JobRow>`
    select id, status, attempts, lease_token is not null as "isHeld"
    from deletion_jobs
    where project_id = ${project.id}
    order by created_at, id`
}

const isOpen = ({ status }: JobRow) => status === 'pending' || status === 'running'

function untilNoneIsOpen(stage: Pick<Stage, 'db' | 'project'>): Promise<unknown> {
  return eventually(async () => !(await jobRows(stage)).some(isOpen))
}

/** Or all have been done between two looks. */
function untilOneIsHeld(stage: Stage): Promise<unknown> {
  return eventually(async () => {
    const rows = await jobRows(stage)
    return rows.some(({ isHeld }) => isHeld) || !rows.some(isOpen)
  })
}

/** A worker as operators run it: beside a service, or in it. */
function startVictim(env: Environment, chance: Chance): LetheProcess {
  return spawnLethe(chance.below(2) === 0 ? ['worker'] : ['serve'], env)
}

const jobsAKill = 3

test(
  'a worker that is killed at any moment, again and again: every erasure ends completed, with nothing left',
  async ({ db, address, project }) => {
    const chance = chanceOf('kills of workers')
    const stage = await setStage(db, address, project)
    const { env, erasure } = stage
    const bystander = await record(erasure, project.id, 'bystander')
    const before = await fingerprint(erasure, project.id, bystander)
    const all: Erased[] = []
    let interrupted = 0
    const interruptedMinimum = byDepth(3, 101)
    for (let kill = 0; kill < byDepth(3, 200) || interrupted < interruptedMinimum; kill++) {
      for (let n = 0; n < jobsAKill; n++) {
        all.push(await requestErasure(stage, `person-${all.length}`))
      }
      const victim = startVictim(env, chance)
      await untilOneIsHeld(stage)
      await sleep(chance.below(150))
      await victim.signal('SIGKILL')
      // The locks of a killed process go when PostgreSQL has noticed.
      await untilNobodyWorks(db)
      interrupted += (await jobRows(stage)).filter(({ isHeld }) => isHeld).length
      await stage.forward(31)
      await reapLostAttempts(db.sql, delays)
      // Five attempts there are: who has lost three of them is left to a worker that lives.
      if ((await jobRows(stage)).some((row) => isOpen(row) && row.attempts >= 3)) {
        const worker = await startLethe(['worker'], env, workerGreeting)
        await untilNoneIsOpen(stage)
        await worker.signal('SIGKILL')
      }
    }
    const last = await startLethe(['worker'], env, workerGreeting)
    await untilNoneIsOpen(stage)
    expect(await last.stop()).toBe(0)
    console.log(`${interrupted} attempts were interrupted, of ${all.length} erasures`)

    for (const { jobId, ...recorded } of all) {
      expect(await remains(erasure, project.id, recorded)).toEqual(nothing)
      await expectHonestAttempts(stage, jobId)
    }
    expect(await fingerprint(erasure, project.id, bystander)).toBe(before)
    const receipts = await db.sql<{ number: string }>`
    select number from receipts where project_id = ${project.id} order by number`
    expect(receipts.map(({ number }) => Number(number))).toEqual(all.map((_, index) => index + 1))
  },
  byDepth(300_000, 3_600_000),
)

async function untilNobodyWorks(db: Db): Promise<void> {
  await eventually(async () => {
    const rows = await db.sql`
      select from pg_stat_activity
      where datname = current_database() and state like 'idle in transaction%'
        or datname = current_database() and state = 'active' and pid <> pg_backend_pid()`
    return rows.length === 0
  })
}

/** Completed, each attempt before the last one lost to a dead worker, and no more than there may be. */
async function expectHonestAttempts({ db, project }: Stage, jobId: string): Promise<void> {
  const attempts = await db.sql<{ number: number; outcome: string; code: string | null }>`
    select number, outcome, error_code as code
    from deletion_attempts
    where project_id = ${project.id} and job_id = ${jobId}
    order by number`
  const lost = { outcome: 'lost', code: 'worker_lost' }
  const completed = { outcome: 'completed', code: null }
  expect(attempts).toEqual(
    attempts.map((_, index) => ({
      number: index + 1,
      ...(index === attempts.length - 1 ? completed : lost),
    })),
  )
  const [job] = await db.sql<{ status: string; attempts: number }>`
    select status, attempts from deletion_jobs
    where project_id = ${project.id} and id = ${jobId}`
  expect(job).toEqual({ status: 'completed', attempts: attempts.length })
}

for (const way of isDeep ? (['moved', 'real'] as const) : (['moved'] as const)) {
  const clock = way === 'moved' ? 'by the clock of the database' : 'in real time'
  test(
    `a worker that is stopped for longer than its lease, ${clock}: another one ends the erasure, and the woken one changes nothing`,
    async ({ db, address, project }) => {
      const chance = chanceOf(`stopped workers, ${way}`)
      const stage = await setStage(db, address, project)
      for (let round = 0; round < byDepth(1, 5); round++) {
        const { person, sleeper } = await stopInTheMidst(stage, chance, round)
        const stoppedAt = performance.now()
        if (way === 'moved') await stage.forward(31)
        const other = await startLethe(['worker'], stage.env, workerGreeting)
        await untilNoneIsOpen(stage)
        if (way === 'real') await sleep(Math.max(0, 41_000 - (performance.now() - stoppedAt)))
        expect(await other.stop()).toBe(0)
        expect(await remains(stage.erasure, project.id, person)).toEqual(nothing)
        await expectHonestAttempts(stage, person.jobId)

        const before = await everything(stage)
        await sleeper.signal('SIGCONT')
        await eventually(async () => attemptEnded.test(sleeper.output()))
        expect(await sleeper.stop()).toBe(0)
        expect(sleeper.output()).not.toContain('erasure.completed')
        expect(await everything(stage)).toEqual(before)
      }
    },
    byDepth(300_000, 1_200_000),
  )
}

/** Its lease was lost, or first of all the connection of a transaction it stood in. */
const attemptEnded = /erasure\.(?:lease_lost|failed)/

/** A worker that stands still in the midst of an attempt, wherever chance will have it. */
async function stopInTheMidst(stage: Stage, chance: Chance, round: number) {
  for (let tries = 0; ; tries++) {
    const person = await requestErasure(stage, `sleeper-${round}-${tries}`)
    const sleeper = spawnLethe(['worker'], stage.env)
    const row = async () => (await jobRows(stage)).find(({ id }) => id === person.jobId)
    await untilOneIsHeld(stage)
    await sleep(chance.below(40))
    await sleeper.signal('SIGSTOP')
    // What it had sent by then takes place yet.
    await sleep(100)
    if ((await row())?.isHeld) return { person, sleeper }
    await sleeper.signal('SIGKILL')
  }
}

/** All rows and all blobs, but for what says that somebody was there. */
async function everything({ db, env }: Stage): Promise<Record<string, string>> {
  const zones = [
    ...(await databaseZones('table', db.sql)),
    ...(await fileZones('blob', join(env.DATA_DIR, 'blobs'))),
  ]
  return Object.fromEntries(
    zones
      .filter(({ name }) => !/\.(?:worker_seen|keys)$/.test(name))
      .map(({ name, bytes }) => [name, bytes.toString('latin1')]),
  )
}

if (isDeep) {
  test('in real time: attempts start 30 s, 1, 2 and 4 minutes after a failure; after the fifth the person is in use again, and a new DELETE ends the rest', async ({
    db,
    address,
    project,
  }) => {
    const { ERASURE_RETRY_DELAYS: _, ...env } = (await setStage(db, address, project)).env
    const service = await startLethe(['serve'], env, greeting)
    const send = (path: string, method = 'GET', body?: object) =>
      sendRaw(service.found, path, project.secretKey, { method, ...(body && { body }) })
    const folder = join(env.DATA_DIR as string, 'blobs')
    const blobs = await openFolder(folder)
    const erasure = {
      options: { db, blobs },
      blobs,
      folder,
      masterKeys: parseMasterKeys(masterKey),
    } as TestErasure
    const ada = await record(erasure, project.id, 'ada')
    // No deletion follows a symbolic link.
    const place = join(folder, 'blobs', String(project.id))
    await rename(place, `${place}-away`)
    await symlink(`${place}-away`, place)
    const { id } = (await send('/v1/persons/ada', 'DELETE')).json.job
    const status = async () => (await send(`/v1/deletion-jobs/${id}`)).json.job.status
    await eventually(async () => (await status()) === 'failed')

    const attempts = await db.sql<{ number: number; code: string; pause: number | null }>`
      select number, error_code as code, extract(epoch from
        started_at - lag(ended_at) over (order by number))::float8 as pause
      from deletion_attempts
      where project_id = ${project.id} and job_id = ${id}
      order by number`
    console.table(attempts)
    expect(attempts.map(({ code }) => code)).toEqual(Array(5).fill('blobs_symbolic_link'))
    for (const [index, delay] of [30, 60, 120, 240].entries()) {
      const pause = attempts[index + 1]?.pause
      expect(pause).toBeGreaterThanOrEqual(delay)
      // As late as a machine under load may be.
      expect(pause).toBeLessThan(delay + 20)
    }
    const metrics = await sendRaw(service.found, '/metrics', null, {})
    expect(metrics.text).toMatch(/lethe_deletion_jobs_failed_total 1\b/)
    expect((await send('/v1/persons/ada', 'PATCH', { properties: { a: 1 } })).status).toBe(200)

    await unlink(place)
    await rename(`${place}-away`, place)
    const again = (await send('/v1/persons/ada', 'DELETE')).json.job
    expect(again.id).not.toBe(id)
    await untilNoneIsOpen({ db, project })
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(await status()).toBe('failed')
  }, 900_000)
}
