import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { migrate } from '../src/migrate.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { newProject, sendRaw, type TestProject } from './fixtures.ts'
import {
  eventually,
  greeting,
  newEnvironment,
  resultOf,
  runLethe,
  spawnLethe,
  startLethe,
  workerGreeting,
} from './lethe-process.ts'
import { byDepth, chanceOf } from './proof/deep.ts'
import { type Canaries, newCanaries, plant } from './residue-fixtures.ts'

interface TestDatabase {
  address: DbAddress
  open(): Db
  /** A dump, of a database nobody is connected to. */
  dump(): Promise<void>
  /** Puts the dump in the place of what is there, also while others are connected. */
  restore(): Promise<void>
}

async function newDatabase(): Promise<TestDatabase> {
  const template = inject('postgres')
  const { client, end } = await connectOne({ ...template, database: 'postgres' })
  const name = `lethe_restore_${randomUUID().replaceAll('-', '')}`
  const drop = (database: string) =>
    client.query(`drop database if exists ${database} with (force)`)
  await client.query(`create database ${name} template ${template.database}`)
  onTestFinished(async () => {
    for (const database of [name, `${name}_dump`]) await drop(database)
    await end()
  })
  const address = { ...template, database: name }
  return {
    address,
    open: () => connect({ connection: address }),
    dump: async () => {
      await client.query(`create database ${name}_dump template ${name}`)
    },
    async restore() {
      await drop(name)
      await client.query(`create database ${name} template ${name}_dump`)
    },
  }
}

async function freePort(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return String(port)
}

interface Planted extends Canaries {
  browserId: string
}

/** Asks for these persons and all they recorded, without a pause, whether anybody listens or not. */
function askAllTheTime(url: string, { secretKey }: TestProject, paths: readonly string[]) {
  const answers = new Map<number, number>()
  let isOver = false
  const ask = async () => {
    for (let n = 0; !isOver; n++) {
      const path = paths[n % paths.length] as string
      const status = await sendRaw(url, path, secretKey, {}).then(
        ({ status, json }) => (json?.persons?.length === 0 ? 404 : status),
        () => 0,
      )
      answers.set(status, (answers.get(status) ?? 0) + 1)
      if (status === 0) await sleep(2)
    }
  }
  const asking = Promise.all([ask(), ask(), ask()])
  return {
    answers,
    async end() {
      isOver = true
      await asking
    },
  }
}

const erasedPersons = byDepth(4, 12)

test('a restored dump with its old recordings: no erased person is ever served, however often the start is killed', async () => {
  const chance = chanceOf('restore drill')
  const database = await newDatabase()
  const db = database.open()
  await migrate(database.address, 'keys')
  const project = await newProject(db)
  await db.end()
  const env = await newEnvironment(database.address, { PORT: await freePort() })
  const blobs = join(env.DATA_DIR, 'blobs', 'blobs')
  const copy = join(env.DATA_DIR, '..', 'copy')
  const url = `http://127.0.0.1:${env.PORT}`
  const keys = { ...project, url }

  const first = await startLethe(['serve'], env, greeting)
  const people: Planted[] = []
  for (let n = 0; n < erasedPersons + 2; n++) {
    const canaries = newCanaries()
    people.push({ ...canaries, browserId: await plant(keys, canaries) })
  }
  const [kept, bystander, ...erased] = people as [Planted, Planted, ...Planted[]]
  const sessionsOf = async ({ externalId }: Planted): Promise<string[]> => {
    const { json } = await sendRaw(url, `/v1/persons/${externalId}/sessions`, keys.secretKey, {})
    return json.sessions.map(({ id }: { id: string }) => id)
  }
  const sessions = (await Promise.all(erased.map(sessionsOf))).flat()
  const keptSessions = await sessionsOf(kept)
  expect([sessions.length, keptSessions.length]).toEqual([2 * erasedPersons, 2])
  expect(await first.stop()).toBe(0)
  await database.dump()
  await cp(blobs, copy, { recursive: true })

  const second = await startLethe(['serve'], env, greeting)
  const jobIds: string[] = []
  for (const { externalId } of [kept, ...erased]) {
    const keep = externalId === kept.externalId ? '?keepRecordings=true' : ''
    const path = `/v1/persons/${externalId}${keep}`
    const { json } = await sendRaw(url, path, keys.secretKey, { method: 'DELETE' })
    jobIds.push(json.job.id)
  }
  const completed = async (id: string) => {
    const { json } = await sendRaw(url, `/v1/deletion-jobs/${id}`, keys.secretKey, {})
    return json.job?.status === 'completed'
  }
  for (const id of jobIds) await eventually(() => completed(id))
  expect(await second.stop()).toBe(0)

  await database.restore()
  await rm(blobs, { recursive: true })
  await cp(copy, blobs, { recursive: true })
  const asking = askAllTheTime(url, project, [
    ...[kept, ...erased].map(({ externalId }) => `/v1/persons/${externalId}`),
    ...[kept, ...erased].map(({ externalId }) => `/v1/persons?search=${externalId}`),
    ...erased.map(({ externalId }) => `/v1/persons/${externalId}/sessions`),
    ...sessions.flatMap((id) => [`/v1/sessions/${id}`, `/v1/sessions/${id}/events`]),
  ])
  onTestFinished(asking.end)
  for (let kill = 0; kill < byDepth(1, 20); kill++) {
    const service = spawnLethe(['serve', '--no-worker'], env)
    await sleep(chance.below(2_500))
    await service.signal('SIGKILL')
  }
  // At last one that is let alone, with a worker that starts at the same moment.
  const [service, worker] = await Promise.all([
    startLethe(['serve', '--no-worker'], env, greeting),
    startLethe(['worker'], env, workerGreeting),
  ])
  const asked = () => [...asking.answers.values()].reduce((a, b) => a + b, 0)
  const atGreeting = asked()
  await eventually(async () => asked() > atGreeting + 200)
  await asking.end()
  expect([...asking.answers.keys()].filter((status) => status !== 0)).toEqual([404])

  // The ledger has done it: under the jobs the customer knows, and to the last blob.
  for (const id of jobIds) expect(await completed(id)).toBe(true)
  for (const { browserId } of erased) {
    expect(existsSync(join(blobs, String(project.id), browserId))).toBe(false)
    const again = await sendRaw(url, `/ingest/v1/start?key=${project.publicKey}`, null, {
      method: 'POST',
      rawBody: JSON.stringify({ browserId }),
      headers: { 'content-type': 'text/plain' },
    })
    expect(again.status).toBe(410)
  }
  expect((await readdir(join(blobs, String(project.id)))).sort()).toEqual(
    [kept.browserId, bystander.browserId].sort(),
  )
  const after = database.open()
  const left = await after.sql<{ table: string; count: number }>`
    select 'persons' as "table", count(*)::integer as count from persons
    union all select 'links', count(*)::integer from person_browsers
    union all select 'browsers', count(*)::integer from browsers
    union all select 'keys', count(*)::integer from browser_keys
    union all select 'sessions', count(*)::integer from sessions
    union all select 'chunks', count(*)::integer from chunks`
  await after.end()
  expect(Object.fromEntries(left.map(({ table, count }) => [table, count]))).toEqual({
    persons: 1,
    links: 1,
    browsers: 2,
    keys: 2,
    sessions: 4,
    chunks: 6,
  })
  // Who was not erased is whole, and what was to stay can be played.
  const stayed = await sendRaw(url, `/v1/persons/${bystander.externalId}`, keys.secretKey, {})
  expect(stayed.text).toContain(bystander.property)
  for (const [id, canary] of [
    [keptSessions[0], kept],
    [(await sessionsOf(bystander))[0], bystander],
  ] as const) {
    const events = await sendRaw(url, `/v1/sessions/${id}/events`, keys.secretKey, {})
    expect(events.text).toContain(canary.pageText)
  }
  expect([await service.stop(), await worker.stop()]).toEqual([0, 0])
  // All is compared by now; of that the newest entry alone is read again.
  const again = await runLethe(['reapply', '--json'], env)
  expect(resultOf(again)).toEqual({
    entries: 1,
    persons: 0,
    browsers: 0,
    refused: 0,
    missing: 0,
  })
})
