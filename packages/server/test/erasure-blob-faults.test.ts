import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectVersionsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { expect, onTestFinished } from 'vitest'
import { BlobFault, type Blobs, browserPrefix } from '../src/blobs/blobs.ts'
import { openBucket } from '../src/blobs/s3.ts'
import { open } from '../src/blobs/sealing.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { togetherMaximum } from '../src/erasure/job-leases.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/jobs.ts'
import { readBrowserKey } from '../src/recordings/browser-keys.ts'
import { storeChunk } from '../src/recordings/upload.ts'
import { overBlobs } from './erasure-faults.ts'
import {
  fingerprint,
  nothing,
  openClock,
  type Recorded,
  record,
  remains,
  requestErasure,
  type TestErasure,
  test,
} from './erasure-fixtures.ts'
import { newProject, type TestProject } from './fixtures.ts'
import { byDepth } from './proof/deep.ts'
import { events } from './recordings-fixtures.ts'
import { newCanary } from './residue-fixtures.ts'
import { scan } from './residue-scanner.ts'
import { newBucket, type TestBucket } from './s3-servers/bucket.ts'
import {
  type FaultyProxy,
  type Passing,
  s3Error,
  startFaultyProxy,
} from './s3-servers/faulty-proxy.ts'
import { onS3Server } from './s3-servers/on-server.ts'
import type { S3Server } from './s3-servers/start.ts'

/** What befalls one call of the blob store, and what is recorded of it. */
const misfortunes: Record<string, { isDone: boolean; fault: BlobFault; code: string }> = {
  'is refused': {
    isDone: false,
    fault: new BlobFault('failed', 'the store is in trouble'),
    code: 'blobs_failed',
  },
  'is answered by nobody': {
    isDone: false,
    fault: new BlobFault('timed_out', 'no answer'),
    code: 'blobs_timed_out',
  },
  'is done, and its answer lost': {
    isDone: true,
    fault: new BlobFault('unreachable', 'the connection broke'),
    code: 'blobs_unreachable',
  },
}

/** A store whose n-th call fails in some way; returns how many calls there were. */
function unfortunate(blobs: Blobs, n: number, { isDone, fault }: (typeof misfortunes)[string]) {
  const calls = { count: 0 }
  const faulty = overBlobs(blobs, async (run) => {
    if (++calls.count !== n) return run()
    // What it would have said, that nothing is there for instance, is lost as well.
    if (isDone) await run().catch(() => {})
    throw fault
  })
  return { blobs: faulty, calls }
}

/**
 * In a normal run each misfortune befalls every third call, another third for each: what fails and how
 * are independent. In a deep run all befall all.
 */
const stride = byDepth(Object.keys(misfortunes).length, 1)

for (const [index, [what, misfortune]] of Object.entries(misfortunes).entries()) {
  test(`any one call of the blob store ${what}: the attempt fails and says so, and the next one ends the erasure`, async ({
    erasure,
    db,
    address,
  }) => {
    const clock = await openClock(address)
    for (let n = 1 + (index % stride); ; n += stride) {
      const { id: projectId } = await newProject(db)
      const ada = await record(erasure, projectId, 'ada', { sessions: 1 })
      const bystander = await record(erasure, projectId, 'bystander', { browsers: 1 })
      const before = await fingerprint(erasure, projectId, bystander)
      const { id } = await requestErasure(erasure, projectId, 'ada')
      const { blobs, calls } = unfortunate(erasure.blobs, n, misfortune)
      const outcome = await runNextAttempt({ ...erasure.options, blobs })
      if (calls.count < n) {
        expect(outcome).toBe('completed')
        expect(n).toBeGreaterThan(5)
        break
      }
      expect(outcome, `call ${n}`).toBe('failed')
      expect(await findDeletionJob(db.sql, projectId, id)).toMatchObject({ status: 'running' })
      expect((await findDeletionJobDetails(db.sql, projectId, id))!.attempts).toMatchObject([
        { outcome: 'failed', errorCode: misfortune.code, step: expect.any(String) },
      ])
      // Until it is verified that all is gone the person and the way to its recordings stay.
      expect(await remains(erasure, projectId, ada)).toMatchObject({ persons: 1, browsers: 2 })
      await clock.forward(30)
      expect(await runNextAttempt(erasure.options)).toBe('completed')
      expect(await remains(erasure, projectId, ada), `call ${n}`).toEqual(nothing)
      expect(await fingerprint(erasure, projectId, bystander)).toBe(before)
      const receipts = await db.sql`select from receipts where project_id = ${projectId}`
      expect(receipts).toHaveLength(1)
    }
    await clock.close()
  })
}

/** An erasure over a bucket, which is looked at and harmed past the product. */
interface OnBucket {
  erasure: TestErasure
  bucket: TestBucket
  proxy: FaultyProxy
  ada: Recorded
  jobId: string
  /** The bystander's rows and blobs, hashed. */
  unchanged(): Promise<string>
}

async function onBucket(
  server: S3Server,
  onFolder: TestErasure,
  { id }: TestProject,
  shape: { versioned?: boolean; requestSeconds?: number } = {},
): Promise<OnBucket> {
  const { requestSeconds = 30, ...bucketShape } = shape
  const proxy = await startFaultyProxy(server.endpoint)
  const bucket = await newBucket(server, bucketShape)
  const blobs = await openBucket({ url: bucket.url, endpoint: proxy.endpoint, requestSeconds })
  onTestFinished(async () => {
    blobs.close()
    await proxy.stop()
  })
  const erasure = { ...onFolder, blobs, options: { ...onFolder.options, blobs } }
  const ada = await record(erasure, id, 'ada', { sessions: 1 })
  const bystander = await record(erasure, id, 'bystander', { browsers: 1, sessions: 1 })
  const { id: jobId } = await requestErasure(erasure, id, 'ada')
  const unchanged = () => fingerprint(erasure, id, bystander)
  return { erasure, bucket, proxy, ada, jobId, unchanged }
}

/** What the bucket has of these browsers: versions, markers and open uploads. */
async function leftOf({ client, name }: TestBucket, { browserIds }: Recorded): Promise<string[]> {
  const versions = await client.send(new ListObjectVersionsCommand({ Bucket: name }))
  const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket: name }))
  return [
    ...(versions.Versions ?? []),
    ...(versions.DeleteMarkers ?? []),
    ...(uploads.Uploads ?? []),
  ]
    .map(({ Key = '' }) => Key)
    .filter((key) => browserIds.some((id) => key.includes(id)))
}

const isBulkDelete = ({ method, url }: Passing) => method === 'POST' && /[?&]delete/.test(url)

onS3Server('swift', 'erasures over S3', (server) => versionedBucket(server))
onS3Server('radosgw', 'erasures over S3', (server) => {
  versionedBucket(server)
  personsTogether(server)
  faultyBucket(server)
  lateWriter(server)
})

function versionedBucket(server: () => S3Server) {
  test('of a versioned bucket an erasure leaves no version, no marker and no open upload of the person', async ({
    erasure: onFolder,
    project,
    db,
  }) => {
    const stage = await onBucket(server(), onFolder, project, { versioned: true })
    const { erasure, bucket, ada, jobId } = stage
    const [first, second] = ada.blobKeys as [string, string]
    const place = (key: string) => ({ Bucket: bucket.name, Key: `lethe/${key}` })
    // As others leave it: an older version, a blob under a marker, a marker alone, an open upload.
    await bucket.client.send(new PutObjectCommand({ ...place(first), Body: randomBytes(10) }))
    await bucket.client.send(new DeleteObjectCommand(place(second)))
    const prefix = browserPrefix(project.id, ada.browserIds[0]!)
    await bucket.client.send(new DeleteObjectCommand(place(`${prefix}session/never-there`)))
    const started = await bucket.client.send(
      new CreateMultipartUploadCommand(place(`${prefix}session/half`)),
    )
    await bucket.client.send(
      new UploadPartCommand({
        ...place(`${prefix}session/half`),
        UploadId: started.UploadId,
        PartNumber: 1,
        Body: randomBytes(10),
      }),
    )
    const before = await stage.unchanged()
    expect(await leftOf(bucket, ada)).toHaveLength(ada.blobKeys.length + 4)

    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await leftOf(bucket, ada)).toEqual([])
    expect(await remains(erasure, project.id, ada)).toEqual(nothing)
    expect(await stage.unchanged()).toBe(before)
    const details = await findDeletionJobDetails(db.sql, project.id, jobId)
    expect(details!.removed).toMatchObject({ browsers: 2, sessions: 2, chunks: 4 })
  })
}

function personsTogether(server: () => S3Server) {
  test('of persons that are erased together a versioned bucket keeps nothing of any, and all of others', async ({
    erasure: onFolder,
    project,
    db,
  }) => {
    const stage = await onBucket(server(), onFolder, project, { versioned: true })
    const { erasure, bucket, ada } = stage
    const persons = [ada]
    for (let n = 0; n < 11; n++) {
      persons.push(await record(erasure, project.id, `p${n}`, { browsers: 2, sessions: 1 }))
      await requestErasure(erasure, project.id, `p${n}`)
    }
    const before = await stage.unchanged()
    expect(await runNextAttempt(erasure.options, togetherMaximum)).toBe('completed')
    expect(await db.sql`select from deletion_jobs where status <> 'completed'`).toEqual([])
    for (const one of persons) {
      expect(await leftOf(bucket, one)).toEqual([])
      expect(await remains(erasure, project.id, one)).toEqual(nothing)
    }
    expect(await stage.unchanged()).toBe(before)
  })
}

function faultyBucket(server: () => S3Server) {
  const cases: Record<
    string,
    { fate: FaultyProxy['fate']; code: string; step?: string; failures?: number }
  > = {
    'that never answers a deletion': {
      fate: (passing) => (isBulkDelete(passing) ? 'swallowed' : undefined),
      code: 'blobs_timed_out',
    },
    'that never answers anything': { fate: () => 'swallowed', code: 'blobs_timed_out' },
    'that answers a deletion with errors inside of a success': {
      fate: (passing) => (isBulkDelete(passing) ? refusalOfOne(passing) : undefined),
      code: 'blobs_delete_refused',
    },
    'that deletes, and whose every answer to it is lost': {
      fate: (passing) => (isBulkDelete(passing) ? 'answer_lost' : undefined),
      code: 'blobs_unreachable',
      // The second attempt finds nothing to delete.
      failures: 1,
    },
    'that says it deleted and did not': {
      fate: (passing) =>
        isBulkDelete(passing) ? { status: 200, body: '<DeleteResult></DeleteResult>' } : undefined,
      code: 'blobs_not_empty',
    },
    'that takes nothing': {
      fate: ({ method }) => (method === 'PUT' ? s3Error(503, 'SlowDown') : undefined),
      code: 'blobs_failed',
      step: 'write_ledger',
    },
    'that takes the ledger, and whose answer is lost': {
      fate: ({ method }) => (method === 'PUT' ? 'answer_lost' : undefined),
      code: 'blobs_unreachable',
      step: 'write_ledger',
      // The next attempt finds the entry and has nothing to write.
      failures: 1,
    },
  }
  for (const [what, { fate, code, step = 'delete_blobs', failures }] of Object.entries(cases)) {
    test(`a bucket ${what}: no attempt completes, and when it has recovered the next one leaves nothing`, async ({
      erasure: onFolder,
      project,
      db,
      address,
    }) => {
      const clock = await openClock(address)
      const stage = await onBucket(server(), onFolder, project, { requestSeconds: 2 })
      const { erasure, bucket, proxy, ada, jobId } = stage
      const before = await stage.unchanged()
      proxy.fate = fate
      for (let attempts = 0; attempts < (failures ?? byDepth(1, 4)); attempts++) {
        expect(await runNextAttempt(erasure.options)).toBe('failed')
        const details = await findDeletionJobDetails(db.sql, project.id, jobId)
        expect(details!.attempts[attempts]).toMatchObject({
          step,
          // What is tried again and again may also run out of time, on a machine under load.
          errorCode: expect.stringMatching(new RegExp(`^(?:${code}|blobs_timed_out)$`)),
        })
        expect(await findDeletionJob(db.sql, project.id, jobId)).toMatchObject({
          status: 'running',
          completedAt: null,
        })
        await clock.forward(240)
      }
      const persons = await db.sql`select from persons where id = ${ada.personId}`
      expect(persons).toHaveLength(1)

      proxy.fate = () => undefined
      expect(await runNextAttempt(erasure.options)).toBe('completed')
      expect(await leftOf(bucket, ada)).toEqual([])
      expect(await remains(erasure, project.id, ada)).toEqual(nothing)
      expect(await stage.unchanged()).toBe(before)
      await clock.close()
    })
  }
}

/** A bulk delete of which one key is refused and the others are done, as far as it says. */
function refusalOfOne({ body }: Passing) {
  const [, key = ''] = /<Key>([^<]+)<\/Key>/.exec(body.toString()) ?? []
  return {
    status: 200,
    body: `<DeleteResult><Error><Key>${key}</Key><Code>AccessDenied</Code></Error></DeleteResult>`,
  }
}

function lateWriter(server: () => S3Server) {
  test('an upload that the bucket carries out after the end of the erasure, its uploader long gone: nobody can open what it left', async ({
    erasure: onFolder,
    project,
    db,
  }) => {
    const stage = await onBucket(server(), onFolder, project)
    const { erasure, bucket, proxy } = stage
    const eve = await record(erasure, project.id, 'eve', { browsers: 1, sessions: 1 })
    const place = {
      projectId: project.id,
      browserId: eve.browserIds[0]!,
      sessionId: eve.sessionIds[0]!,
      tab: 't',
      number: 99,
    }
    const browserKeys = { sql: db.sql, masterKeys: erasure.masterKeys }
    const text = newCanary()
    const key = (await readBrowserKey(browserKeys, project.id, place.browserId))!
    const gzip = events(1)
    proxy.fate = ({ method }) => (method === 'PUT' ? 'swallowed' : undefined)
    const upload = storeChunk(
      { db, blobs: erasure.blobs, browserKeys },
      place,
      { gzip: Buffer.concat([gzip, Buffer.from(text)]), pages: 0 },
      { putSeconds: 1 },
    )
    await expect(upload).rejects.toMatchObject({ code: 'aborted' })
    const frozen = proxy.seen.find(({ method, url }) => method === 'PUT' && url.includes('t-99-'))!
    proxy.fate = () => undefined
    await requestErasure(erasure, project.id, 'eve')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await runNextAttempt(erasure.options)).toBe('completed')
    expect(await leftOf(bucket, eve)).toEqual([])

    expect(await sendAsItWas(server(), frozen)).toBe(200)
    const left = await leftOf(bucket, eve)
    expect(left).toHaveLength(1)
    const late = await bucket.client.send(
      new GetObjectCommand({ Bucket: bucket.name, Key: left[0]! }),
    )
    const bytes = Buffer.from(await late.Body!.transformToByteArray())
    expect(scan(bytes, [text])).toEqual([])
    // The control: it is there for who still had the key.
    expect(scan(Buffer.from(open(key, place, bytes)), [text])).toHaveLength(1)
    expect(await remains(erasure, project.id, eve)).toEqual(nothing)
    const keys = await db.sql`
      select from browser_keys where browser_id = ${place.browserId}`
    expect(keys).toEqual([])
  })
}

/** The request as it was signed, by way of a network that kept it so long. */
function sendAsItWas(server: S3Server, { method, url, headers, body }: Passing) {
  return new Promise<number | undefined>((resolve, reject) => {
    const late = request(new URL(url, server.endpoint), { method, headers })
    late.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
    })
    late.on('error', reject)
    late.end(body)
  })
}
