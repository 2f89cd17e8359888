import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { BlobFault, browserPrefix } from '../src/blobs/blobs.ts'
import { openBucket } from '../src/blobs/s3.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { findReceipt, verifyReceipt } from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import type { Db } from '../src/sql.ts'
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
import type { TestProject } from './fixtures.ts'
import { byDepth } from './proof/deep.ts'
import { newBucket } from './s3-servers/bucket.ts'
import { onS3Server } from './s3-servers/on-server.ts'

const run = promisify(execFile)

/** Nobody else may make a device. */
const isRoot = process.getuid?.() === 0
if (!isRoot) console.warn('\n*** SKIPPED: devices among the blobs, as this user is not root. ***\n')
const makeDevice = (place: string) => run('mknod', [place, 'c', '1', '3'])

const lastErrorOf = async ({ options }: TestErasure, projectId: number, id: string) =>
  (await findDeletionJobDetails(options.db.sql, projectId, id))?.attempts.at(-1)

/** What stands in the place of the first session's folder, which is moved away. */
const disguises: Record<
  string,
  { code: string; put(place: string, elsewhere: string): Promise<unknown> }
> = {
  'a symbolic link to it': {
    code: 'symbolic_link',
    put: (place, elsewhere) => symlink(elsewhere, place),
  },
  nothing: { code: 'missing', put: async () => {} },
  'a file': { code: 'foreign_entry', put: (place) => writeFile(place, 'x') },
  ...(isRoot && { 'a device': { code: 'foreign_entry', put: makeDevice } }),
  'a pipe': { code: 'foreign_entry', put: (place) => run('mkfifo', [place]) },
  'a folder of folders': {
    code: 'foreign_entry',
    put: (place) => mkdir(join(place, `t-0-${'0'.repeat(24)}`), { recursive: true }),
  },
}

for (const [what, { code, put }] of Object.entries(disguises)) {
  test(`a session's folder moved away, with ${what} in its place: the attempt fails and says so, and the next one ends it when the folder is back`, async ({
    erasure,
    project,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
    const prefix = join(erasure.folder, browserPrefix(project.id, ada.browserIds[0]!))
    const place = join(prefix, ada.sessionIds[0]!)
    const elsewhere = join(tmpdir(), `moved-${ada.sessionIds[0]}`)
    await rename(place, elsewhere)
    await put(place, elsewhere)
    const { id } = await requestErasure(erasure, project.id, 'ada')
    expect(await runNextAttempt(erasure.options)).toBe('failed')
    expect(await lastErrorOf(erasure, project.id, id)).toMatchObject({
      step: 'delete_blobs',
      errorCode: `blobs_${code}`,
    })
    // What was moved away is unreadable all the same.
    expect(await countBrowserKeys(db.sql, project.id, ada.browserIds)).toBe(0)

    await rm(place, { force: true, recursive: true })
    await rename(elsewhere, place)
    await clock.forward(30)
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    await clock.close()
  })
}

test('blobs that nobody brings back: the job fails when the rest is deleted, and a new one completes', async ({
  erasure,
  project,
  address,
}) => {
  const clock = await openClock(address)
  const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
  await erasure.blobs.delete([ada.blobKeys[0]!])
  const { id } = await requestErasure(erasure, project.id, 'ada')
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect(await runNextAttempt(erasure.options)).toBe('failed')
    await clock.forward(240)
  }
  expect(await lastErrorOf(erasure, project.id, id)).toMatchObject({
    step: 'verify',
    errorCode: 'blobs_missing',
  })
  expect(await remains(erasure, project.id, ada)).toMatchObject({ persons: 1, blobs: 0, chunks: 0 })
  const again = await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  const { sql } = erasure.options.db
  const receipt = (await findReceipt(sql, project.id, again.id))!
  expect(await verifyReceipt(receipt, await publicKeys(sql))).toMatchObject({
    earlierJobs: [{ jobId: id, removed: { chunks: 4, blobs: 3 } }],
  })
  await clock.close()
})

const strangers: Record<string, { code: string; put(place: string): Promise<unknown> }> = {
  'a symbolic link': { code: 'symbolic_link', put: (place) => symlink('/etc', place) },
  'a symbolic link to a file': {
    code: 'symbolic_link',
    put: (place) => symlink('/etc/hostname', place),
  },
  'a folder': { code: 'foreign_entry', put: (place) => mkdir(place) },
  ...(isRoot && { 'a device': { code: 'foreign_entry', put: makeDevice } }),
}

for (const [what, { code, put }] of Object.entries(strangers)) {
  test(`${what} in a session's folder fails the attempt; all else is deleted, and what it leads to stays`, async ({
    erasure,
    project,
    address,
  }) => {
    const clock = await openClock(address)
    const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
    const prefix = join(erasure.folder, browserPrefix(project.id, ada.browserIds[0]!))
    const place = join(prefix, ada.sessionIds[0]!, 'strange')
    await put(place)
    const { id } = await requestErasure(erasure, project.id, 'ada')
    for (let attempt = 1; attempt <= byDepth(1, 4); attempt++) {
      expect(await runNextAttempt(erasure.options)).toBe('failed')
      expect(await lastErrorOf(erasure, project.id, id)).toMatchObject({
        errorCode: `blobs_${code}`,
      })
      await clock.forward(240)
    }
    await rm(place, { recursive: true })
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    await clock.close()
  })
}

/** As an upload that came too late would have left it, which no chunk knows of. */
const lateKey = (key: string) => `${key.slice(0, key.lastIndexOf('/'))}/t-0-${'a1'.repeat(12)}`

async function expectNamesToAgree(
  erasure: TestErasure,
  { id: projectId }: TestProject,
  db: Db,
  chunks: number,
) {
  const { blobs, options } = erasure
  const ada = await record(erasure, projectId, 'ada', { browsers: 1, sessions: 1, chunks })
  const moved = ada.blobKeys.at(-1)!
  const bytes = await blobs.get(moved)
  await blobs.delete([moved])
  await blobs.put(lateKey(moved), randomBytes(10))
  const { id } = await requestErasure(erasure, projectId, 'ada')
  const attempt = async () => {
    await db.sql`
      update deletion_jobs set next_attempt_at = app_now()
      where project_id = ${projectId} and status = 'running'`
    const outcome = await runNextAttempt(options)
    return [outcome, (await lastErrorOf(erasure, projectId, id))?.errorCode]
  }
  expect(await attempt()).toEqual(['failed', 'blobs_missing'])
  expect(await countBrowserKeys(db.sql, projectId, ada.browserIds)).toBe(0)
  // All are there again, and one that is nobody's upload.
  await blobs.put(moved, bytes)
  const foreign = `${moved}-of-somebody`
  await blobs.put(foreign, randomBytes(10))
  expect(await attempt()).toEqual(['failed', 'blobs_foreign_entry'])
  await blobs.delete([foreign])
  expect(await attempt()).toEqual(['completed', null])
  expect(await remains(erasure, projectId, ada)).toEqual(nothing)
}

test('a blob moved away, with another file in its place, fails the attempt although their number agrees; so does a file that is no upload', async ({
  erasure,
  project,
  db,
}) => {
  // More than are told at once.
  await expectNamesToAgree(erasure, project, db, 300)
})

onS3Server('swift', 'the comparison of an erasure', (server) => {
  test('a blob moved away, with another in its place, fails the attempt in a bucket too', async ({
    erasure: onFolder,
    project,
    db,
  }) => {
    for (const versioned of [false, true]) {
      const bucket = await newBucket(server(), { versioned })
      const blobs = await openBucket({ url: bucket.url, endpoint: server().endpoint })
      onTestFinished(() => {
        blobs.close()
        bucket.client.destroy()
      })
      const erasure = { ...onFolder, blobs, options: { ...onFolder.options, blobs } }
      await expectNamesToAgree(erasure, project, db, 2)
    }
  })
})

test('a file that nobody takes away: the job fails when all is deleted, and a new one completes', async ({
  erasure,
  project,
  address,
}) => {
  const clock = await openClock(address)
  const ada = await record(erasure, project.id, 'ada', { browsers: 1 })
  await writeFile(join(erasure.folder, `${ada.blobKeys[0]}-foreign`), 'x')
  const { id } = await requestErasure(erasure, project.id, 'ada')
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect(await runNextAttempt(erasure.options)).toBe('failed')
    await clock.forward(240)
  }
  expect(await lastErrorOf(erasure, project.id, id)).toMatchObject({
    step: 'verify',
    errorCode: 'blobs_foreign_entry',
  })
  expect(await remains(erasure, project.id, ada)).toMatchObject({ persons: 1, blobs: 0, chunks: 0 })
  await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  await clock.close()
})

test('an upload that came too late is removed and counted', async ({ erasure, project }) => {
  const ada = await record(erasure, project.id, 'ada', { browsers: 1, sessions: 1 })
  await erasure.blobs.put(lateKey(ada.blobKeys[0]!), randomBytes(10))
  const { id } = await requestErasure(erasure, project.id, 'ada')
  expect(await runNextAttempt(erasure.options)).toBe('completed')
  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  const { sql } = erasure.options.db
  const receipt = (await findReceipt(sql, project.id, id))!
  const { removed } = await verifyReceipt(receipt, await publicKeys(sql))
  expect(removed.blobs).toBe(removed.chunks + 1)
})

test('a deletion of recordings that failed, then one that keeps them: what was made unreadable is removed and counted', async ({
  erasure,
  project,
  address,
  db,
}) => {
  const clock = await openClock(address)
  const ada = await record(erasure, project.id, 'ada', { browsers: 2 })
  const { id } = await requestErasure(erasure, project.id, 'ada', false)
  const down = overBlobs(erasure.blobs, (run, what) =>
    what === 'deletePrefix' ? Promise.reject(new BlobFault('timed_out', '')) : run(),
  )
  for (let attempt = 1; attempt <= 5; attempt++) {
    expect(await runNextAttempt({ ...erasure.options, blobs: down })).toBe('failed')
    await clock.forward(240)
  }
  // A browser that was identified after the failure can be read, and is kept.
  const kept = await record(erasure, project.id, 'ada', { browsers: 1 })
  const again = await requestErasure(erasure, project.id, 'ada', true)
  expect(await runNextAttempt(erasure.options)).toBe('completed')

  expect(await remains(erasure, project.id, { ...ada, personId: ada.personId })).toEqual(nothing)
  expect(await remains(erasure, project.id, kept)).toMatchObject({
    persons: 0,
    links: 0,
    browsers: 1,
    keys: 1,
    sessions: 2,
    chunks: 4,
    blobs: 4,
  })
  const marks = await db.sql`select distinct removal_begun, removal_counted from browsers`
  expect(marks).toEqual([{ removal_begun: false, removal_counted: false }])
  const receipt = (await findReceipt(db.sql, project.id, again.id))!
  expect(await verifyReceipt(receipt, await publicKeys(db.sql))).toMatchObject({
    keepRecordings: true,
    removed: { browsers: 2, sessions: 4, chunks: 8, blobs: 8 },
    earlierJobs: [{ jobId: id, keepRecordings: false }],
    recordingsVerifiedAt: expect.any(String),
  })
  await clock.close()
})
