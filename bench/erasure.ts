/**
 * Measures the erasure of persons against bare deletes of the same data (the floor), a person with
 * very many chunks and its effect on the API, 10,000 DELETEs at once, claiming a job among a million
 * finished ones, and the DELETE of a person with very many browsers: `node bench/erasure.ts
 * [--persons N] [--rounds R] [--chunks N] [--deletes N] [--finished N] [--browsers N]`. Prints tables
 * in Markdown. Needs wrk.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { rmdir, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openFolder } from '../packages/server/src/blobs/filesystem.ts'
import { type MasterKeys, parseMasterKeys } from '../packages/server/src/blobs/master-keys.ts'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { claimJobs } from '../packages/server/src/erasure/job-leases.ts'
import { createErasureMetrics } from '../packages/server/src/erasure/metrics.ts'
import { requestDeletion, requestDeletions } from '../packages/server/src/erasure/request.ts'
import { openSigner } from '../packages/server/src/erasure/signing-keys.ts'
import { startWorker } from '../packages/server/src/erasure/worker.ts'
import { createLog } from '../packages/server/src/log.ts'
import { createMetrics } from '../packages/server/src/metrics.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { writePerson } from '../packages/server/src/persons/store.ts'
import { createKey, createProject } from '../packages/server/src/projects/store.ts'
import { suppressionsWith } from '../packages/server/src/projects/suppressions.ts'
import { connect, type Db, type DbAddress } from '../packages/server/src/sql.ts'
import { letheWords, load, median, residentMegabytes, start, stop, urlOf } from './measure.ts'

const { values: options } = parseArgs({
  options: {
    /** Erased in each round, each with 1 browser, 3 sessions and 30 chunks; 0 skips this part. */
    persons: { type: 'string', default: '300' },
    rounds: { type: 'string', default: '3' },
    /** Of the one large person; 0 skips this part. */
    chunks: { type: 'string', default: '100000' },
    /** Requested at once; 0 skips this part. */
    deletes: { type: 'string', default: '10000' },
    /** Finished jobs among which one is claimed; 0 skips this part. */
    finished: { type: 'string', default: '1000000' },
    /** Of the person whose DELETE is compared with that of a person with one; 0 skips this part. */
    browsers: { type: 'string', default: '300000' },
  },
})
const persons = Number(options.persons)
const blobBytes = 20_000
const jobsAtOnce = 4
const drainMinutesMaximum = 10
const deletesMeasured = 60

interface Place {
  folder: string
  blobsFolder: string
  address: DbAddress
  db: Db
  masterKey: string
  masterKeys: MasterKeys
  projectId: number
}

await main()

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-bench-erasure-'))
  const embedded = await openEmbedded({ dataDir: join(folder, 'database') })
  const { address } = embedded
  await migrate(address)
  await migrate(address, 'keys')
  const db = connect({ connection: address, statementSeconds: 300 })
  const { id: projectId } = await createProject(db.sql, 'bench')
  const masterKey = `k1:${randomBytes(32).toString('base64')}`
  const blobsFolder = join(folder, 'service', 'blobs')
  const masterKeys = parseMasterKeys(masterKey)
  const place = { folder, blobsFolder, address, db, masterKey, masterKeys, projectId }
  try {
    if (persons > 0) await compareWithFloor(place)
    if (Number(options.chunks) > 0) await eraseLarge(place, Number(options.chunks))
    if (Number(options.deletes) > 0) await requestMany(place, Number(options.deletes))
    if (Number(options.browsers) > 0) await deleteBesideBrowsers(place, Number(options.browsers))
    // The last one: its jobs stay claimed.
    if (Number(options.finished) > 0) await claimBeside(place, Number(options.finished))
  } finally {
    await db.end()
    await embedded.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function compareWithFloor(place: Place) {
  const rates: Record<'floor' | 'worker', number[]> = { floor: [], worker: [] }
  for (let round = 0; round < Number(options.rounds); round++) {
    const bare = await seed(place, persons, 3, 10)
    rates.floor.push(persons / (await secondsOf(() => deleteBare(place, bare))))
    const erased = await seed(place, persons, 3, 10)
    rates.worker.push(persons / (await secondsOfWorker(place, erased)))
  }
  const floor = median(rates.floor)
  const worker = median(rates.worker)
  console.log(`| persons of 3 sessions and 30 chunks of ${blobBytes} bytes | a second |`)
  console.log('| --- | --- |')
  console.log(
    `| bare deletes (SQL in parts, 8 unlinks at once, no fsync, no proof) | ${floor.toFixed(0)} |`,
  )
  console.log(`| one worker, ${jobsAtOnce} jobs at once | ${worker.toFixed(0)} |`)
  console.log(`| share of the floor | ${((100 * worker) / floor).toFixed(0)} % |\n`)
}

interface Seeded {
  personIds: string[]
  externalIds: string[]
  browserIds: string[]
  files: string[]
  folders: string[]
}

/** Creates persons with recordings, as rows and files. */
async function seed(
  { db, projectId, blobsFolder }: Place,
  count: number,
  sessions: number,
  chunks: number,
): Promise<Seeded> {
  const prefix = randomUUID().slice(0, 8)
  const made = await db.sql<{ personId: string; externalId: string; browserId: string }>`
    with person as (
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${projectId}, (extract(epoch from now) * 1000)::bigint << 20 | nextval('person_order'),
        ${prefix} || '-' || n, '{"name": "N"}', now, now
      from generate_series(1, ${count}::int) n, app_now() as now
      returning id, external_id
    ), search as (
      insert into person_search (project_id, person_id, text)
      select ${projectId}, id, external_id from person
    ), pair as (
      select id, external_id, gen_random_uuid() as browser_id from person
    ), browser as (
      insert into browsers (project_id, id) select ${projectId}, browser_id from pair
    ), key as (
      insert into browser_keys (project_id, browser_id, master_key_id, wrapped)
      select ${projectId}, browser_id, 'k1', decode(repeat('00', 61), 'hex') from pair
    ), link as (
      insert into person_browsers (project_id, browser_id, person_id)
      select ${projectId}, browser_id, id from pair
    )
    select id as "personId", external_id as "externalId", browser_id as "browserId" from pair`
  const browserIds = made.map(({ browserId }) => browserId)
  const placed = await db.sql<{ browserId: string; sessionId: string }>`
    insert into sessions (project_id, browser_id)
    select ${projectId}, browser_id
    from unnest(${browserIds}::uuid[]) browser_id, generate_series(1, ${sessions}::int)
    returning browser_id as "browserId", id as "sessionId"`
  await db.sql`
    insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until,
      stored_at, bytes)
    select ${projectId}, s.id, 't', n,
      'blobs/' || s.project_id || '/' || s.browser_id || '/' || s.id || '/t-' || n,
      'stored', app_now(), app_now(), ${blobBytes}
    from sessions s, generate_series(1, ${chunks}::int) n
    where s.project_id = ${projectId} and s.browser_id = any(${browserIds}::uuid[])`
  const bytes = randomBytes(blobBytes)
  const files: string[] = []
  const folders: string[] = []
  for (const { browserId, sessionId } of placed) {
    const folder = join(blobsFolder, 'blobs', String(projectId), browserId, sessionId)
    mkdirSync(folder, { recursive: true })
    folders.push(folder)
    for (let n = 1; n <= chunks; n++) {
      files.push(join(folder, `t-${n}`))
      writeFileSync(files.at(-1) as string, bytes)
    }
  }
  folders.push(...browserIds.map((id) => join(blobsFolder, 'blobs', String(projectId), id)))
  await db.sql`analyze sessions`
  await db.sql`analyze chunks`
  const personIds = made.map(({ personId }) => personId)
  return { personIds, externalIds: made.map((one) => one.externalId), browserIds, files, folders }
}

/** Deletes the same rows and files as fast as possible. */
async function deleteBare({ db, projectId }: Place, seeded: Seeded): Promise<void> {
  await inLanes(seeded.files, 8, unlink)
  for (const folder of seeded.folders) await rmdir(folder)
  const { browserIds, personIds } = seeded
  for (let i = 0; i < browserIds.length; i += 100) {
    const part = browserIds.slice(i, i + 100)
    await db.begin(async (tx) => {
      await tx`
        delete from chunks where project_id = ${projectId} and session_id in (
          select id from sessions
          where project_id = ${projectId} and browser_id = any(${part}::uuid[]))`
      await tx`
        delete from sessions
        where project_id = ${projectId} and browser_id = any(${part}::uuid[])`
      await tx`
        delete from browser_keys
        where project_id = ${projectId} and browser_id = any(${part}::uuid[])`
      await tx`
        delete from person_browsers
        where project_id = ${projectId} and browser_id = any(${part}::uuid[])`
      await tx`
        delete from browsers where project_id = ${projectId} and id = any(${part}::uuid[])`
      await tx`
        delete from persons
        where project_id = ${projectId} and id = any(${personIds.slice(i, i + 100)}::bigint[])`
    })
  }
}

async function secondsOfWorker(place: Place, { externalIds }: Seeded): Promise<number> {
  const { db, projectId } = place
  await requestDeletions(db, {
    projectId,
    externalIds,
    keepRecordings: false,
    requestedBy: 'command',
  })
  const workerDb = connect({
    connection: place.address,
    poolSize: jobsAtOnce + 2,
    statementSeconds: 30,
  })
  const blobs = await openFolder(place.blobsFolder)
  const signer = await openSigner(workerDb, place.masterKeys)
  const seconds = await secondsOf(async () => {
    const worker = startWorker({
      db: workerDb,
      keySql: workerDb.sql,
      blobs,
      log: createLog('silent'),
      metrics: createErasureMetrics(createMetrics().registry),
      signer,
      suppressions: suppressionsWith(place.masterKeys),
      retryDelaysSeconds: [30, 60, 120, 240],
      backupRetentionDays: 30,
      jobsAtOnce,
    })
    await untilDrained(place, 5)
    await worker.stop()
  })
  await workerDb.end()
  return seconds
}

async function untilDrained({ db, projectId }: Place, milliseconds: number): Promise<void> {
  const until = performance.now() + drainMinutesMaximum * 60_000
  for (;;) {
    if (performance.now() > until) throw new Error('The jobs did not finish in time.')
    const open = await db.sql`
      select from deletion_jobs
      where project_id = ${projectId} and status in ('pending', 'running') limit 1`
    if (open.length === 0) break
    await sleep(milliseconds)
  }
  const failed = await db.sql`
    select from deletion_jobs
    where project_id = ${projectId} and (status <> 'completed' or attempts > 1)`
  if (failed.length > 0)
    throw new Error(`${failed.length} jobs did not complete in their first attempt.`)
}

/** Erases one person with very many chunks, by the service itself and during requests. */
async function eraseLarge(place: Place, chunks: number) {
  const { db, projectId } = place
  const sessions = Math.ceil(chunks / 1_000)
  const { externalIds } = await seed(place, 1, sessions, Math.min(chunks, 1_000))
  await writePerson(db.sql, projectId, 'bystander', {}, true)
  const { text: key } = await createKey(db.sql, projectId, 'secret', 'bench')
  const { found: url, child } = await start([...letheWords, 'serve'], /Lethe listens on (\S+)/, {
    DATABASE_URL: urlOf(place.address),
    PORT: '0',
    DATA_DIR: join(place.folder, 'service'),
    MASTER_KEY: place.masterKey,
    LOG_LEVEL: 'error',
  })
  try {
    const lua = `wrk.headers["Authorization"] = "Bearer ${key}"`
    const requests = { url: `${url}/v1/persons/bystander`, lua }
    load(requests, 4, 3)
    const idle = [load(requests, 4, 3), load(requests, 4, 3)]
    if (idle.some((one) => one.errors > 0)) throw new Error('Requests failed.')
    const memoryBefore = residentMegabytes(child.pid as number)
    const { id } = await requestDeletion(db, {
      projectId,
      externalId: externalIds[0] as string,
      keepRecordings: false,
      requestedBy: 'command',
    })
    const busy = []
    const counts = new Set<string>()
    let memory = 0
    let seconds = 0
    while (seconds === 0) {
      busy.push(load(requests, 4, 1))
      memory = Math.max(memory, residentMegabytes(child.pid as number))
      const [job] = await db.sql<{ count: string; seconds: number }>`
        select removed_blobs || ' ' || removed_chunks as count,
          coalesce(extract(epoch from completed_at - started_at), 0)::float8 as seconds
        from deletion_jobs where id = ${id}`
      counts.add(job?.count ?? '')
      seconds = job?.seconds ?? 0
    }
    console.log(`| one person with ${chunks} chunks of ${blobBytes} bytes | |`)
    console.log('| --- | --- |')
    console.log(`| seconds, during requests | ${seconds.toFixed(1)} |`)
    console.log(`| different counts of removed data, read once a second | ${counts.size} |`)
    console.log(
      `| MB resident before, maximum | ${memoryBefore.toFixed(0)}, ${memory.toFixed(0)} |`,
    )
    console.log(
      `| p99 of GET person, idle, ms | ${median(idle.map((one) => one.p99)).toFixed(2)} |`,
    )
    console.log(
      `| p99 of GET person, during it, ms | ${median(busy.map((one) => one.p99)).toFixed(2)} |\n`,
    )
  } finally {
    await stop(child)
  }
}

async function requestMany(place: Place, count: number) {
  const { db, projectId } = place
  const all = await seed(place, count, 0, 0)
  const requesting = await secondsOf(async () => {
    for (let i = 0; i < count; i += 1_000) {
      await requestDeletions(db, {
        projectId,
        externalIds: all.externalIds.slice(i, i + 1_000),
        keepRecordings: false,
        requestedBy: 'command',
      })
    }
  })
  const draining = await secondsOfWorker(place, { ...all, externalIds: [] })
  const [left] = await db.sql<{ n: number }>`
    select count(*)::int as n from persons
    where project_id = ${projectId} and id = any(${all.personIds}::bigint[])`
  console.log(`| ${count} persons without recordings | |`)
  console.log('| --- | --- |')
  console.log(`| requested a second, in parts of 1,000 | ${(count / requesting).toFixed(0)} |`)
  console.log(`| erased a second | ${(count / draining).toFixed(0)} |`)
  console.log(`| persons left | ${left?.n} |\n`)
}

async function claimBeside(place: Place, finished: number) {
  const { db, projectId } = place
  const fresh = async () => {
    const { externalIds } = await seed(place, 200, 0, 0)
    await requestDeletions(db, {
      projectId,
      externalIds,
      keepRecordings: false,
      requestedBy: 'command',
    })
    const times: number[] = []
    for (let i = 0; i < 200; i++) {
      const begun = performance.now()
      await claimJobs(db.sql, 1)
      times.push(performance.now() - begun)
    }
    return median(times)
  }
  const before = await fresh()
  await db.sql`
    insert into deletion_jobs (project_id, external_id, keep_recordings, status, attempts,
      started_at, completed_at)
    select ${projectId}, 'finished-' || n, false, 'completed', 1, app_now(), app_now()
    from generate_series(1, ${finished}::int) n`
  const beside = await fresh()
  await db.sql`analyze deletion_jobs`
  const analyzed = await fresh()
  console.log('| a claim, ms | |')
  console.log('| --- | --- |')
  console.log(`| among a few finished jobs | ${before.toFixed(2)} |`)
  console.log(
    `| among ${finished} finished ones, before and after analyze | ${beside.toFixed(2)}, ${analyzed.toFixed(2)} |`,
  )
}

/**
 * DELETEs a person with very many browsers and one with a single browser, in turns. Each deletion is
 * undone, so that the same persons can be deleted again. Then a worker process erases both.
 */
async function deleteBesideBrowsers(place: Place, browsers: number) {
  const { db, projectId } = place
  const { text: key } = await createKey(db.sql, projectId, 'secret', 'bench')
  const [one, many] = (await seed(place, 2, 0, 0)).externalIds as [string, string]
  for (let rest = browsers - 1; rest > 0; rest -= 50_000) {
    await db.sql`
      with browser as (
        insert into browsers (project_id, id)
        select ${projectId}, gen_random_uuid() from generate_series(1, ${Math.min(rest, 50_000)}::int)
        returning id
      ), key as (
        insert into browser_keys (project_id, browser_id, master_key_id, wrapped)
        select ${projectId}, id, 'k1', decode(repeat('00', 61), 'hex') from browser
      )
      insert into person_browsers (project_id, browser_id, person_id)
      select ${projectId}, browser.id, p.id from browser, persons p
      where p.project_id = ${projectId} and p.external_id = ${many}`
  }
  await db.sql`analyze`
  const settings = {
    DATABASE_URL: urlOf(place.address),
    DATA_DIR: join(place.folder, 'service'),
    MASTER_KEY: place.masterKey,
    LOG_LEVEL: 'error',
  }
  const words = [...letheWords, 'serve', '--no-worker']
  const { found, child } = await start(words, /Lethe listens on (\S+)/, { ...settings, PORT: '0' })
  const requested = async (externalId: string) => {
    const begun = performance.now()
    const headers = { authorization: `Bearer ${key}` }
    const url = `${found}/v1/persons/${externalId}`
    const { status } = await fetch(url, { method: 'DELETE', headers })
    if (status !== 202) throw new Error(`DELETE returned ${status}.`)
    return performance.now() - begun
  }
  const undo = (externalId: string) =>
    db.begin(async (tx) => {
      await tx`
        update persons set deletion_job_id = null
        where project_id = ${projectId} and external_id = ${externalId}`
      await tx`
        delete from deletion_jobs
        where project_id = ${projectId} and external_id = ${externalId}`
    })
  const times: Record<string, number[]> = { [one]: [], [many]: [] }
  for (let round = 0; round < deletesMeasured; round++) {
    for (const externalId of [one, many]) {
      times[externalId]?.push(await requested(externalId))
      await undo(externalId)
    }
  }
  await requested(many)
  await stop(child)
  const worker = await start([...letheWords, 'worker'], /\S+/, settings)
  const before = residentMegabytes(worker.child.pid as number)
  let megabytes = before
  const begun = performance.now()
  const drained = untilDrained(place, 200)
  const watching = setInterval(() => {
    megabytes = Math.max(megabytes, residentMegabytes(worker.child.pid as number))
  }, 200)
  await drained
  clearInterval(watching)
  await stop(worker.child)
  const p99 = (all: number[] = []) =>
    all.toSorted((a, b) => a - b)[Math.ceil(all.length * 0.99) - 1]
  const row = (of: string) => `${median(times[of] ?? []).toFixed(1)}, ${p99(times[of])?.toFixed(1)}`
  console.log(`| DELETE, ${deletesMeasured} of each in turns: p50, p99 in ms | |`)
  console.log('| --- | --- |')
  console.log(`| of a person with 1 browser | ${row(one)} |`)
  console.log(`| of a person with ${browsers} browsers | ${row(many)} |`)
  const seconds = (performance.now() - begun) / 1_000
  console.log(`| seconds until a worker has erased them | ${seconds.toFixed(0)} |`)
  console.log(
    `| MB of the worker at its start, maximum | ${before.toFixed(0)}, ${megabytes.toFixed(0)} |`,
  )
}

async function inLanes<T>(items: T[], lanes: number, work: (item: T) => Promise<unknown>) {
  let next = 0
  const lane = async () => {
    while (next < items.length) await work(items[next++] as T)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return (performance.now() - begun) / 1_000
}
