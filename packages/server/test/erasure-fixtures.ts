import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import type { Blobs } from '../src/blobs/blobs.ts'
import { browserPrefix, sessionPrefix } from '../src/blobs/blobs.ts'
import { openFolder } from '../src/blobs/filesystem.ts'
import { type MasterKeys, parseMasterKeys } from '../src/blobs/master-keys.ts'
import { type AttemptOptions, runNextAttempt } from '../src/erasure/attempt.ts'
import { togetherMaximum } from '../src/erasure/job-leases.ts'
import { createErasureMetrics } from '../src/erasure/metrics.ts'
import { requestDeletion } from '../src/erasure/request.ts'
import { openSigner } from '../src/erasure/signing-keys.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { migrate } from '../src/migrate.ts'
import { writePerson } from '../src/persons/store.ts'
import { suppressionsWith } from '../src/projects/suppressions.ts'
import { createBrowserKey } from '../src/recordings/browser-keys.ts'
import { connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { test as base } from './fixtures.ts'

export interface TestErasure {
  options: AttemptOptions
  masterKeys: MasterKeys
  /** The folder of the blobs. */
  folder: string
  blobs: Blobs
  logged(): string
}

/**
 * `erasure`: what attempts need, over this file's database and a folder of blobs, both empty when a
 * test begins. Time is the database's own again.
 */
export const test = base.extend<{ erasure: TestErasure }>({
  erasure: async ({ db, address }, use) => {
    await migrate(address, 'keys')
    await (await openClock(address)).close()
    await emptyDatabase(db)
    await withErasure(db, use)
  },
})

/** Makes attempts until no job is due. */
export async function runAll(options: AttemptOptions): Promise<void> {
  while ((await runNextAttempt(options, togetherMaximum)) !== undefined);
}

export async function withErasure(
  db: Db,
  use: (erasure: TestErasure) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-blobs-'))
  const blobs = await openFolder(folder)
  const masterKeys = parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)
  let logged = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk
      done()
    },
  })
  const options: AttemptOptions = {
    db,
    keySql: db.sql,
    blobs,
    log: createLog('debug', destination),
    metrics: createErasureMetrics(createMetrics().registry),
    signer: await openSigner(db, masterKeys),
    suppressions: suppressionsWith(masterKeys),
    retryDelaysSeconds: [30, 60, 120, 240],
    backupRetentionDays: 30,
  }
  await use({ options, masterKeys, folder, blobs, logged: () => logged })
  await rm(folder, { recursive: true, force: true })
}

async function emptyDatabase(db: Db): Promise<void> {
  await db.sql`
    truncate persons, person_search, browsers, person_browsers, sessions, chunks, browser_keys,
      deletion_jobs, deletion_attempts, ledger_entries, withdrawals, receipts, receipt_chains,
      signing_keys cascade`
  await db.sql`update ledger_state set last_number = 0, compared_to = 0, lost_to = 0`
}

export interface TestClock {
  now(): Date
  /** Moves the only clock of the server ahead. Where it was real before, it stands from then on. */
  forward(seconds: number): Promise<void>
  close(): Promise<void>
}

/** Stops the clock of a database, at first at the present moment; `close` lets it run again. */
export async function openClock(address: DbAddress): Promise<TestClock> {
  const { client, end } = await connectOne(address)
  const set = (body: string) =>
    client.query(
      `create or replace function app_now() returns timestamptz language sql stable return ${body}`,
    )
  let now = new Date()
  const stand = () => set(`timestamptz '${now.toISOString()}'`)
  await stand()
  return {
    now: () => now,
    async forward(seconds) {
      now = new Date(now.getTime() + seconds * 1_000)
      await stand()
    },
    async close() {
      await set(realClock)
      await end()
    },
  }
}

const realClock = "date_trunc('milliseconds', clock_timestamp())"

export interface Recorded {
  personId: string
  browserIds: string[]
  sessionIds: string[]
  blobKeys: string[]
}

export interface Recording {
  browsers?: number
  sessions?: number
  chunks?: number
  properties?: Record<string, unknown>
}

/** A person with recordings as ingestion leaves them: keys, blobs and rows. */
export async function record(
  erasure: TestErasure,
  projectId: number,
  externalId: string,
  { browsers = 2, properties = { name: 'Ada' }, ...recording }: Recording = {},
): Promise<Recorded> {
  const { db } = erasure.options
  await writePerson(db.sql, projectId, externalId, properties, true)
  const [person] = await db.sql<{ id: string }>`
    select id from persons where project_id = ${projectId} and external_id = ${externalId}`
  const personId = person!.id
  const recorded: Recorded = { personId, browserIds: [], sessionIds: [], blobKeys: [] }
  for (let b = 0; b < browsers; b++) {
    const browser = await newBrowser(erasure, projectId, recording)
    recorded.browserIds.push(...browser.browserIds)
    recorded.sessionIds.push(...browser.sessionIds)
    recorded.blobKeys.push(...browser.blobKeys)
    await db.sql`
      insert into person_browsers (project_id, browser_id, person_id)
      values (${projectId}, ${browser.browserIds[0]}, ${personId})`
  }
  return recorded
}

/** A browser that is nobody's yet, with its recordings. */
export async function newBrowser(
  { options: { db, blobs }, masterKeys }: TestErasure,
  projectId: number,
  { sessions = 2, chunks = 2 }: Omit<Recording, 'browsers' | 'properties'> = {},
): Promise<Recorded> {
  const browserId = randomUUID()
  const recorded: Recorded = {
    personId: '0',
    browserIds: [browserId],
    sessionIds: [],
    blobKeys: [],
  }
  await createBrowserKey({ sql: db.sql, masterKeys }, projectId, browserId)
  await db.sql`insert into browsers (project_id, id) values (${projectId}, ${browserId})`
  for (let s = 0; s < sessions; s++) {
    const sessionId = randomUUID()
    recorded.sessionIds.push(sessionId)
    await db.sql`
      insert into sessions (project_id, id, browser_id, chunks, bytes, url)
      values (${projectId}, ${sessionId}, ${browserId}, ${chunks}, ${chunks * 10},
        'https://example.com/')`
    await blobs.open(sessionPrefix(projectId, browserId, sessionId))
    for (let c = 0; c < chunks; c++) {
      const key = `${sessionPrefix(projectId, browserId, sessionId)}t-${c}-${randomUUID()}`
      recorded.blobKeys.push(key)
      await db.sql`
        insert into chunks (project_id, session_id, tab, number, blob_key, state, intent_until,
          stored_at, bytes)
        values (${projectId}, ${sessionId}, 't', ${c}, ${key}, 'stored', app_now(), app_now(), 10)`
      await blobs.put(key, randomBytes(10))
    }
  }
  return recorded
}

export function requestErasure(
  { options }: TestErasure,
  projectId: number,
  externalId: string,
  keepRecordings = false,
): Promise<DeletionJob> {
  return requestDeletion(options.db, {
    projectId,
    externalId,
    keepRecordings,
    requestedBy: 'command',
  })
}

/**
 * Everything that is kept of a person and its recordings, hashed: rows, data keys and blobs. Of nobody
 * (0), the recordings that an erasure keeps, whose browsers it retires.
 */
export async function fingerprint(
  { options: { db, blobs } }: TestErasure,
  projectId: number,
  { personId, browserIds, sessionIds }: Recorded,
): Promise<string> {
  const rows = await db.sql<{ row: string }>`
    select row_to_json(p)::text as row from persons p
    where project_id = ${projectId} and id = ${personId}
    union all select row_to_json(p)::text from person_search p
    where project_id = ${projectId} and person_id = ${personId}
    union all select row_to_json(l)::text from person_browsers l
    where project_id = ${projectId} and person_id = ${personId}
    union all select (to_jsonb(b) - ${personId === '0' ? 'retired' : ''}::text)::text from browsers b
    where project_id = ${projectId} and id = any(${browserIds}::uuid[])
    union all select row_to_json(k)::text from browser_keys k
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])
    union all select row_to_json(s)::text from sessions s
    where project_id = ${projectId} and id = any(${sessionIds}::uuid[])
    union all select row_to_json(c)::text from chunks c
    where project_id = ${projectId} and session_id = any(${sessionIds}::uuid[])
    order by row`
  const hash = createHash('sha256').update(rows.map(({ row }) => row).join('\n'))
  for (const browserId of browserIds) {
    const keys: string[] = []
    for await (const key of blobs.list(browserPrefix(projectId, browserId))) keys.push(key)
    for (const key of keys.sort()) hash.update(key).update(await blobs.get(key))
  }
  return `${rows.length} rows, ${hash.digest('hex')}`
}

/** What is left of a person's recordings. */
export async function remains(
  { options: { db, blobs } }: TestErasure,
  projectId: number,
  { personId, browserIds, sessionIds, blobKeys }: Recorded,
) {
  const [rows] = await db.sql<Record<string, number>>`
    select
      (select count(*)::int from persons where project_id = ${projectId} and id = ${personId}) as persons,
      (select count(*)::int from person_search
       where project_id = ${projectId} and person_id = ${personId}) as searches,
      (select count(*)::int from person_browsers
       where project_id = ${projectId} and person_id = ${personId}) as links,
      (select count(*)::int from browsers
       where project_id = ${projectId} and id = any(${browserIds}::uuid[])) as browsers,
      (select count(*)::int from browser_keys
       where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])) as keys,
      (select count(*)::int from sessions
       where project_id = ${projectId} and id = any(${sessionIds}::uuid[])) as sessions,
      (select count(*)::int from chunks
       where project_id = ${projectId} and session_id = any(${sessionIds}::uuid[])) as chunks`
  let blobsLeft = 0
  for (const key of blobKeys) {
    blobsLeft += await blobs.get(key).then(
      () => 1,
      () => 0,
    )
  }
  return { ...rows, blobs: blobsLeft } as Record<
    'persons' | 'searches' | 'links' | 'browsers' | 'keys' | 'sessions' | 'chunks' | 'blobs',
    number
  >
}

export const nothing = {
  persons: 0,
  searches: 0,
  links: 0,
  browsers: 0,
  keys: 0,
  sessions: 0,
  chunks: 0,
  blobs: 0,
}
