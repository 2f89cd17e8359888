import { expect, onTestFinished, test } from 'vitest'
import { connect, type DbAddress } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { newProject, sendRaw, withDatabase } from './fixtures.ts'
import { eventually, greeting, newEnvironment, startLethe } from './lethe-process.ts'
import { events } from './recordings-fixtures.ts'
import { newBucket } from './s3-servers/bucket.ts'
import { missingPackages, runsHere, s3Server } from './s3-servers/start.ts'

/* A bucket that refuses connections, or takes them and never responds, under the real service. */

const decision = runsHere('A failing store', missingPackages('swift'), process.env.CI === 'true')
const limit = { timeout: 240_000 }
const faults = [
  { kind: 'refuses', code: 'unreachable' },
  { kind: 'hangs', code: 'timed_out' },
] as const

if (!decision.runs) test.skip(decision.title, () => {})
else {
  test(
    'a bucket that refuses, or hangs: not ready, nothing is acknowledged that is not stored, no erasure completes, and all goes on by itself',
    limit,
    // Most of it is waiting: both at the same time, on a database each.
    () => Promise.all(faults.map((fault) => withDatabase((address) => standFault(fault, address)))),
  )
}

async function standFault({ kind, code }: (typeof faults)[number], address: DbAddress) {
  const db = connect({ connection: address })
  const project = await newProject(db)
  const server = await s3Server('swift')
  const { url: bucketUrl } = await newBucket(server)
  const { hostname, port } = new URL(server.endpoint)
  const way = await startCuttingProxy({ host: hostname, port: Number(port) } as DbAddress)
  onTestFinished(() => way.close())
  await db.sql`update ledger_state set lost_to = last_number`
  const env = await newEnvironment(address, {
    BLOBS_URL: bucketUrl,
    S3_ENDPOINT: `http://127.0.0.1:${way.address.port}`,
    AWS_ACCESS_KEY_ID: server.accessKeyId,
    AWS_SECRET_ACCESS_KEY: server.secretAccessKey,
    AWS_REGION: 'us-east-1',
    ERASURE_RETRY_DELAYS: '5,10,30,30',
  })
  const { found: url, stop } = await startLethe(['serve'], env, greeting)
  const ingest = (path: string, query: Record<string, string>, rawBody: string | Buffer) =>
    sendRaw(
      url,
      `/ingest/v1/${path}?${new URLSearchParams({ key: project.publicKey, ...query })}`,
      null,
      { method: 'POST', rawBody, headers: { 'content-type': 'application/octet-stream' } },
    )
  const api = (path: string, method = 'GET') => sendRaw(url, path, project.secretKey, { method })
  const newVisit = async () => {
    const place = (await ingest('start', {}, '{}')).json
    return { browser: place.browserId, session: place.sessionId, tab: 'tab' }
  }
  const chunk = (visit: Record<string, string>, number: number) =>
    ingest('chunks', { ...visit, number: String(number) }, events(2, number * 2))
  const ofAda = await newVisit()
  const identify = JSON.stringify({ browserId: ofAda.browser, userId: 'ada' })
  expect((await ingest('identify', {}, identify)).status).toBe(200)
  expect((await chunk(ofAda, 0)).status).toBe(200)
  // An erasure would wait for the end of an upload of its own person, which is not what is asked here.
  const ofNobody = await newVisit()

  if (kind === 'refuses') way.leadTo(undefined)
  else way.swallow(true)
  // All of these wait for the store, each as long as it has patience: at the same time.
  const { job } = (await api('/v1/persons/ada', 'DELETE')).json
  const attempts = () => db.sql`
    select from deletion_attempts where job_id = ${job.id} and outcome = 'failed'`
  const [refused] = await Promise.all([
    chunk(ofNobody, 0),
    eventually(async () => (await api('/health/ready')).status === 503),
    eventually(async () => (await attempts()).length > 0),
  ])
  expect([refused.status, refused.json.next]).toEqual([503, 'retry'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await api('/health/ready')).json.error.message).toBe('The blob store does not work.')
  expect((await api('/health/live')).status).toBe(200)
  expect((await api(`/v1/deletion-jobs/${job.id}`)).json.job.status).not.toBe('completed')
  expect((await api('/v1/persons/ada')).status).toBe(200)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics).toMatch(new RegExp(`lethe_blob_faults_total\\{code="${code}"\\} [1-9]`))

  way.swallow(false)
  way.leadTo({ host: hostname, port: Number(port) } as DbAddress)
  await eventually(async () => (await api('/health/ready')).status === 200)
  await eventually(
    async () => (await api(`/v1/deletion-jobs/${job.id}`)).json.job.status === 'completed',
  )
  expect((await api('/v1/persons/ada')).status).toBe(404)
  expect((await chunk(ofNobody, 0)).status).toBe(200)
  expect((await api(`/v1/sessions/${ofAda.session}/events`)).status).toBe(404)
  expect(await stop()).toBe(0)
  await db.end()
}
