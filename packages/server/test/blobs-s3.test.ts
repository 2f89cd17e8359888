import { randomBytes, randomUUID } from 'node:crypto'
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BlobFault, type Blobs, browserPrefix } from '../src/blobs/blobs.ts'
import { openBucket } from '../src/blobs/s3.ts'
import { newBucket, setVersioning, type TestBucket, useCredentials } from './s3-servers/bucket.ts'
import { type FaultyProxy, s3Error, startFaultyProxy } from './s3-servers/faulty-proxy.ts'
import { onS3Server } from './s3-servers/on-server.ts'
import type { S3Server } from './s3-servers/start.ts'

/* What buckets have beyond a folder, and what goes wrong on the way to them. */

const faultOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (fault) => (fault instanceof BlobFault ? fault.code : fault),
  )

onS3Server('swift', 'S3', (server) => leftovers(server))
onS3Server('radosgw', 'S3', (server) => {
  leftovers(server)
  refusals(server)
  misfortunes(server)
})

const browser = browserPrefix(1, randomUUID())
const key = `${browser}session/chunk`
/** As the bucket has it. */
const stored = `lethe/${key}`

/** Everything the bucket still has: versions, markers, uploads, and what a plain listing shows. */
async function leftIn({ client, name }: TestBucket): Promise<string[]> {
  const Bucket = name
  const versions = await client.send(new ListObjectVersionsCommand({ Bucket }))
  const objects = await client.send(new ListObjectsV2Command({ Bucket }))
  const uploads = await client.send(new ListMultipartUploadsCommand({ Bucket }))
  return [
    ...(versions.Versions ?? []).map(({ Key }) => `version of ${Key}`),
    ...(versions.DeleteMarkers ?? []).map(({ Key }) => `marker of ${Key}`),
    ...(objects.Contents ?? []).map(({ Key }) => `object ${Key}`),
    ...(uploads.Uploads ?? []).map(({ Key }) => `upload of ${Key}`),
  ]
}

function leftovers(server: () => S3Server) {
  let bucket: TestBucket
  let blobs: Blobs
  const prepare = async (versioned: boolean) => {
    bucket = await newBucket(server(), { versioned })
    blobs = await openBucket({ url: bucket.url, endpoint: server().endpoint })
  }
  const markDeleted = () =>
    bucket.client.send(new DeleteObjectCommand({ Bucket: bucket.name, Key: stored }))

  test('all versions and markers go with the prefix, each counted version by version', async () => {
    await prepare(true)
    await blobs.put(key, randomBytes(10))
    await blobs.put(key, randomBytes(20))
    await markDeleted()
    await blobs.put(key, randomBytes(30))
    await blobs.put(`${browser}other/chunk`, randomBytes(5))
    expect(await blobs.deletePrefix(browser)).toEqual({ blobs: 4, bytes: 65 })
    expect(await leftIn(bucket)).toEqual([])
    expect(await blobs.isEmpty(browser)).toBe(true)
  })

  test('a blob that a delete marker hides is still there for the check, and goes', async () => {
    await prepare(true)
    await blobs.put(key, randomBytes(10))
    await markDeleted()
    expect(await Array.fromAsync(blobs.list(browser))).toEqual([])
    expect(await blobs.isEmpty(browser)).toBe(false)
    await blobs.deletePrefix(browser)
    expect(await leftIn(bucket)).toEqual([])
  })

  test('a delete marker alone keeps the prefix from being empty, and goes', async () => {
    await prepare(true)
    await markDeleted()
    expect(await leftIn(bucket)).toEqual([`marker of ${stored}`])
    expect(await blobs.isEmpty(browser)).toBe(false)
    expect(await blobs.deletePrefix(browser)).toEqual({ blobs: 0, bytes: 0 })
    expect(await leftIn(bucket)).toEqual([])
  })

  test('versions from before versioning was switched on, and after it was suspended, go too', async () => {
    await prepare(false)
    await blobs.put(key, randomBytes(1))
    await setVersioning(bucket, 'Enabled')
    await blobs.put(key, randomBytes(2))
    await setVersioning(bucket, 'Suspended')
    await blobs.put(`${browser}session/second`, randomBytes(3))
    await blobs.deletePrefix(browser)
    expect(await leftIn(bucket)).toEqual([])
  })

  test('a blob deleted by its key leaves no version of it and every version of others', async () => {
    await prepare(true)
    await blobs.put(key, randomBytes(1))
    await blobs.put(key, randomBytes(2))
    await blobs.put(`${key}2`, randomBytes(3))
    await blobs.delete([key])
    expect(await leftIn(bucket)).toEqual([`version of ${stored}2`, `object ${stored}2`])
  })

  test('open multipart uploads keep the prefix from being empty, and go', async () => {
    await prepare(false)
    for (const name of [stored, stored, `lethe/${browser}other/chunk`, 'lethe/blobs/1/kept/a/b']) {
      const place = { Bucket: bucket.name, Key: name }
      const { UploadId } = await bucket.client.send(new CreateMultipartUploadCommand(place))
      await bucket.client.send(
        new UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body: randomBytes(100) }),
      )
    }
    expect(await blobs.isEmpty(browser)).toBe(false)
    await blobs.deletePrefix(browser)
    expect(await blobs.isEmpty(browser)).toBe(true)
    expect(await leftIn(bucket)).toEqual(['upload of lethe/blobs/1/kept/a/b'])
  })

  test('nothing outside of the prefix of the URL is ever touched or listed', async () => {
    await prepare(false)
    for (const name of [key, `lethe2/${key}`, `other/${key}`]) {
      await bucket.client.send(new PutObjectCommand({ Bucket: bucket.name, Key: name, Body: 'x' }))
    }
    await blobs.put(key, randomBytes(1))
    expect(await Array.fromAsync(blobs.list('blobs/'))).toEqual([key])
    await blobs.deletePrefix(browser)
    expect((await leftIn(bucket)).filter((line) => line.startsWith('object')).sort()).toEqual(
      [key, `lethe2/${key}`, `other/${key}`].map((name) => `object ${name}`).sort(),
    )
  })
}

function refusals(server: () => S3Server) {
  const fill = async (blobs: Blobs, names: string[]) => {
    for (const name of names) await blobs.put(`${browser}session/${name}`, randomBytes(10))
  }

  test('a blob that a policy protects fails the deletion, after the others went', async () => {
    const bucket = await newBucket(server(), { versioned: true })
    const blobs = await openBucket({ url: bucket.url, endpoint: server().endpoint })
    await fill(blobs, ['one', 'protected', 'three'])
    const Statement = [
      {
        Effect: 'Deny',
        Principal: '*',
        Action: ['s3:DeleteObject', 's3:DeleteObjectVersion'],
        Resource: `arn:aws:s3:::${bucket.name}/lethe/${browser}session/protected`,
      },
    ]
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement })
    await bucket.client.send(new PutBucketPolicyCommand({ Bucket: bucket.name, Policy }))
    const fault = await blobs.deletePrefix(browser).catch((error) => error)
    expect(fault).toMatchObject({ name: 'BlobFault', code: 'delete_refused' })
    expect(fault.message).toContain('AccessDenied')
    expect(fault.message).not.toContain(browser)
    expect(await leftIn(bucket)).toContain(`version of lethe/${browser}session/protected`)
    expect(await leftIn(bucket)).toHaveLength(2)
    expect(await blobs.isEmpty(browser)).toBe(false)
  })

  test('the check detects a bucket whose object lock keeps blobs', async () => {
    const bucket = await newBucket(server(), { versioned: true, locked: true })
    const blobs = await openBucket({ url: bucket.url, endpoint: server().endpoint })
    await fill(blobs, ['locked'])
    expect(await faultOf(blobs.deletePrefix(browser))).toBe('delete_refused')
    expect(await faultOf(blobs.check())).toBe('delete_refused')
  })

  test('a bucket that is not there, wrong credentials and a dead server are told apart', async () => {
    const { endpoint } = server()
    const missing = await openBucket({ url: 's3://not-there-at-all', endpoint })
    expect(await faultOf(missing.check())).toBe('bucket_missing')
    const { url } = await newBucket(server())
    const dead = await openBucket({ url, endpoint: 'http://127.0.0.1:1' })
    expect(await faultOf(dead.check())).toBe('unreachable')
    useCredentials({ ...server(), secretAccessKey: 'wrong' })
    const stranger = await openBucket({ url, endpoint })
    expect(await faultOf(stranger.check())).toBe('access_denied')
    useCredentials(server())
  })

  test.each([
    's3://',
    's3://Bucket',
    's3:/bucket',
    'https://bucket',
    's3://bucket/../x',
    's3://b/ä',
  ])('the URL %s is refused before anything is sent', async (url) => {
    expect(await faultOf(openBucket({ url, endpoint: server().endpoint }))).toMatch(
      /^(failed|invalid_key)$/,
    )
  })
}

function misfortunes(server: () => S3Server) {
  let proxy: FaultyProxy
  let bucket: TestBucket
  let blobs: Blobs

  beforeEach(async () => {
    proxy = await startFaultyProxy(server().endpoint)
    await renew({})
  })
  afterEach(async () => {
    blobs.close()
    await proxy.stop()
  })

  async function renew(shape: { versioned?: boolean; requestSeconds?: number }) {
    const { requestSeconds = 30, ...bucketShape } = shape
    bucket = await newBucket(server(), bucketShape)
    blobs?.close()
    blobs = await openBucket({ url: bucket.url, endpoint: proxy.endpoint, requestSeconds })
  }
  const fill = async (count = 5) => {
    for (let number = 0; number < count; number++) {
      await blobs.put(`${browser}session/tab-${number}`, randomBytes(10))
    }
  }
  const isBulkDelete = ({ method, url }: { method: string; url: string }) =>
    method === 'POST' && /[?&]delete/.test(url)

  describe('a bulk delete that returns 200 with errors inside', () => {
    const failing = (code: string) => ({
      status: 200,
      body: `<?xml version="1.0"?><DeleteResult><Error><Key>lethe/${browser}session/tab-3</Key>
        <VersionId>null</VersionId><Code>${code}</Code><Message>m</Message></Error></DeleteResult>`,
    })

    test('is no success: the deletion fails with what the server said', async () => {
      await fill()
      proxy.fate = (passing) => (isBulkDelete(passing) ? failing('AccessDenied') : undefined)
      const fault = await blobs.deletePrefix(browser).catch((error) => error)
      expect(fault).toMatchObject({ code: 'delete_refused' })
      expect(fault.message).toContain('AccessDenied')
      expect(await blobs.isEmpty(browser)).toBe(false)
    })

    test('is tried again when the error may pass, and counts each blob once', async () => {
      await fill()
      let failures = 2
      proxy.fate = (passing) => {
        if (!isBulkDelete(passing) || failures === 0) return undefined
        failures -= 1
        return failing('SlowDown')
      }
      await blobs.deletePrefix(browser)
      expect(failures).toBe(0)
      expect(await leftIn(bucket)).toEqual([])
    })

    test('fails in the end when the error does not pass', async () => {
      await fill()
      proxy.fate = (passing) => (isBulkDelete(passing) ? failing('InternalError') : undefined)
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('delete_refused')
    })

    test('a server that claims to have deleted and did not is detected', async () => {
      await fill()
      const lie = { status: 200, body: '<DeleteResult></DeleteResult>' }
      proxy.fate = (passing) => (isBulkDelete(passing) ? lie : undefined)
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('not_empty')
      expect(await blobs.isEmpty(browser)).toBe(false)
    })
  })

  describe('a server that lacks a part of S3', () => {
    test.each([s3Error(501, 'NotImplemented'), s3Error(405, 'MethodNotAllowed')])(
      'without bulk delete: blobs are deleted one by one, and the check says so (%o)',
      async (answer) => {
        await fill()
        proxy.fate = (passing) => (isBulkDelete(passing) ? answer : undefined)
        expect(await blobs.check()).toEqual(['bulk_delete_not_offered'])
        expect(await blobs.deletePrefix(browser)).toEqual({ blobs: 5, bytes: 50 })
        expect(await leftIn(bucket)).toEqual([])
      },
    )

    test('without bulk delete a blob that is kept still fails the deletion, after the others went', async () => {
      await fill()
      proxy.fate = (passing) => {
        if (isBulkDelete(passing)) return s3Error(501, 'NotImplemented')
        const kept = passing.method === 'DELETE' && passing.url.includes('tab-3')
        return kept ? s3Error(403, 'AccessDenied') : undefined
      }
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('delete_refused')
      expect(await Array.fromAsync(blobs.list(browser))).toEqual([`${browser}session/tab-3`])
    })

    const hidesVersions = ({ url }: { url: string }) =>
      /[?&]versions/.test(url) ? s3Error(501, 'NotImplemented') : undefined

    test('without versions: the plain listing is used, and the check says so', async () => {
      await fill()
      proxy.fate = hidesVersions
      expect(await blobs.check()).toEqual(['versions_not_offered'])
      expect(await blobs.isEmpty(browser)).toBe(false)
      expect(await blobs.deletePrefix(browser)).toEqual({ blobs: 5, bytes: 50 })
      expect(await blobs.isEmpty(browser)).toBe(true)
      expect(await leftIn(bucket)).toEqual([])
    })

    test('that keeps versions and hides them is refused, for nothing could be erased', async () => {
      await renew({ versioned: true })
      await fill()
      proxy.fate = hidesVersions
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('versions_hidden')
      expect(await leftIn(bucket)).toHaveLength(10)
      expect(await faultOf(blobs.check())).toBe('versions_hidden')
    })

    test('that returns a plain listing for one of versions is detected', async () => {
      await fill(2)
      proxy.fate = ({ url }) =>
        /[?&]versions/.test(url)
          ? {
              status: 200,
              body: '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>',
            }
          : undefined
      expect(await blobs.isEmpty(browser)).toBe(false)
      expect(await blobs.deletePrefix(browser)).toEqual({ blobs: 2, bytes: 20 })
      expect(await leftIn(bucket)).toEqual([])
    })

    test('without multipart uploads: none can be left, and the check says so', async () => {
      await fill(2)
      proxy.fate = ({ url }) =>
        /[?&]uploads/.test(url) ? s3Error(501, 'NotImplemented') : undefined
      expect(await blobs.check()).toEqual(['multipart_not_offered'])
      await blobs.deletePrefix(browser)
      expect(await blobs.isEmpty(browser)).toBe(true)
    })

    test('a listing that may not be read is no empty listing', async () => {
      for (const listing of [/[?&]versions/, /[?&]list-type/, /[?&]uploads/]) {
        proxy.fate = ({ url }) => (listing.test(url) ? s3Error(403, 'AccessDenied') : undefined)
        expect(await faultOf(blobs.isEmpty(browser)), `${listing}`).toBe('access_denied')
        expect(await faultOf(blobs.deletePrefix(browser)), `${listing}`).toBe('access_denied')
        expect(await faultOf(blobs.check()), `${listing}`).toBe('access_denied')
      }
    })

    test('a listing that says there is more and not where proves nothing', async () => {
      proxy.fate = ({ url }) =>
        /[?&]versions/.test(url)
          ? {
              status: 200,
              body: '<ListVersionsResult><IsTruncated>true</IsTruncated></ListVersionsResult>',
            }
          : undefined
      expect(await blobs.isEmpty(browser)).toBe(false)
    })
  })

  test('every bulk delete carries Content-MD5, which some servers ask for', async () => {
    await fill(1)
    await blobs.deletePrefix(browser)
    const bulk = proxy.seen.filter(isBulkDelete)
    expect(bulk).not.toHaveLength(0)
    for (const { headers } of bulk) expect(headers['content-md5']).toMatch(/^[A-Za-z0-9+/]{22}==$/)
  })

  describe('a connection that breaks', () => {
    test('before the response to a put: it is sent again, and stored once and whole', async () => {
      let lost = 1
      proxy.fate = ({ method }) => (method === 'PUT' && lost-- > 0 ? 'answer_lost' : undefined)
      const bytes = randomBytes(10_000)
      await blobs.put(key, bytes)
      expect(Buffer.compare(await blobs.get(key), bytes)).toBe(0)
    })

    test('before the response to a deletion: the request is sent again', async () => {
      await fill()
      let lost = 1
      proxy.fate = (passing) => (isBulkDelete(passing) && lost-- > 0 ? 'answer_lost' : undefined)
      await blobs.deletePrefix(browser)
      expect(await leftIn(bucket)).toEqual([])
    })

    test('every time: the work ends as unreachable after three tries', async () => {
      await fill(1)
      proxy.seen.length = 0
      proxy.fate = () => 'answer_lost'
      expect(await faultOf(blobs.get(`${browser}session/tab-0`))).toBe('unreachable')
      expect(proxy.seen).toHaveLength(3)
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('unreachable')
      expect(await faultOf(blobs.isEmpty(browser))).toBe('unreachable')
    })

    test('in the middle of a blob: half a blob is never returned', async () => {
      await renew({ requestSeconds: 2 })
      await blobs.put(key, randomBytes(100_000))
      proxy.fate = ({ method }) => (method === 'GET' ? 'answer_stops' : undefined)
      expect(await faultOf(blobs.get(key))).toBe('timed_out')
    })
  })

  describe('a server that does not respond', () => {
    test('ends a put after its time, and the put of a caller who gives up at once', async () => {
      await renew({ requestSeconds: 1 })
      proxy.fate = () => 'swallowed'
      expect(await faultOf(blobs.put(key, randomBytes(10)))).toBe('timed_out')
      await renew({})
      const cut = new AbortController()
      const put = faultOf(blobs.put(key, randomBytes(10), cut.signal))
      proxy.fate = () => {
        cut.abort()
        return 'swallowed'
      }
      expect(await put).toBe('aborted')
      expect(await leftIn(bucket)).toEqual([])
    })

    test('ends a deletion and the check of it after their time', async () => {
      await renew({ requestSeconds: 1 })
      await fill(1)
      proxy.fate = () => 'swallowed'
      expect(await faultOf(blobs.deletePrefix(browser))).toBe('timed_out')
      expect(await faultOf(blobs.isEmpty(browser))).toBe('timed_out')
    })
  })

  test('a server in trouble is asked three times and no more', async () => {
    proxy.fate = () => s3Error(503, 'SlowDown')
    expect(await faultOf(blobs.put(key, randomBytes(10)))).toBe('failed')
    expect(proxy.seen).toHaveLength(3)
  })

  test('a full server is told apart', async () => {
    proxy.fate = () => s3Error(507, 'QuotaExceeded')
    expect(await faultOf(blobs.put(key, randomBytes(10)))).toBe('store_full')
  })
}
