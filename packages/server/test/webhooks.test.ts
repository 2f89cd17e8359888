import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import {
  createWebhook,
  listDeliveries,
  listWebhooks,
  removeWebhook,
  resendDelivery,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@lethe/contract/dashboard-webhooks.ts'
import { Webhook } from 'standardwebhooks'
import { describe, expect } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { type ClaimedJob, claimJobs, failAttempt } from '../src/erasure/job-leases.ts'
import { createLog } from '../src/log.ts'
import type { Db } from '../src/sql.ts'
import { type DeliveryOptions, retrySeconds, startDeliveries } from '../src/webhooks/deliver.ts'
import { isPublicAddress, lookupPublic } from '../src/webhooks/send.ts'
import { claimDeliveries, deleteOldDeliveries } from '../src/webhooks/store.ts'
import {
  test as base,
  type Dashboard,
  eraseAll,
  erasureOptions,
  eventually,
  refusalOf,
  type SignedInVisitor,
  startDashboard,
  webhookKey,
} from './dashboard-fixtures.ts'
import { overBlobs } from './erasure-faults.ts'
import { shiftClock } from './recordings-fixtures.ts'

interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

/** A customer's server that receives events and responds as it is told. */
interface Receiver {
  url: string
  received: Received[]
  answer: (response: ServerResponse) => void
}

const test = base.extend<{
  receiver: Receiver
  owner: SignedInVisitor
  params: { projectId: string }
}>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  receiver: async ({}, use) => {
    const receiver: Receiver = {
      url: '',
      received: [],
      answer: (response) => response.writeHead(204).end(),
    }
    const server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', (part) => {
        body += part
      })
      request.on('end', () => {
        receiver.received.push({ path: request.url ?? '', headers: request.headers, body })
        receiver.answer(response)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
    await use(receiver)
    server.closeAllConnections()
    await promisify(server.close.bind(server))()
  },
  owner: async ({ dashboard }, use) => use(await dashboard.member('owner')),
  params: async ({ dashboard }, use) => use({ projectId: dashboard.projectId }),
})

function deliveries(db: Db, options: Partial<DeliveryOptions> = {}) {
  return startDeliveries({
    db,
    log: createLog('silent'),
    secret: webhookKey,
    allowPrivate: true,
    version: '0.0.0',
    pollSeconds: 0.02,
    ...options,
  })
}

/** Delivers until none of this webhook is due, as one process that starts and stops again. */
async function deliverAll(db: Db, options: Partial<DeliveryOptions> = {}) {
  const running = deliveries(db, options)
  await eventually(async () => {
    const due = await db.sql`
      select from webhook_deliveries
      where state = 'pending' and (lease_token is not null or next_attempt_at <= app_now())`
    return due.length === 0
  })
  await running.stop()
}

const both = ['person.deletion.completed', 'person.deletion.failed'] as const

async function makeWebhook(
  owner: SignedInVisitor,
  params: { projectId: string },
  url: string,
  events: readonly (typeof both)[number][] = both,
) {
  const { body } = await owner.call(createWebhook, { params, body: { url, events: [...events] } })
  return { ...body, path: { ...params, webhookId: body.webhook.id } }
}

async function erasePerson(dashboard: Dashboard, externalId: string) {
  await dashboard.send('/v1/persons', {
    method: 'POST',
    body: { externalId, properties: { name: 'Lovelace', email: 'ada@secret.example' } },
  })
  const { json } = await dashboard.send(`/v1/persons/${externalId}`, { method: 'DELETE' })
  return json.job.id as string
}

describe('an event', () => {
  test('says that a deletion is completed, signed as Standard Webhooks are', async ({
    db,
    dashboard,
    recordings,
    owner,
    params,
    receiver,
  }) => {
    const { secret, path } = await makeWebhook(owner, params, `${receiver.url}?tenant=7`)
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const jobId = await erasePerson(dashboard, 'ada')
    await eraseAll(await erasureOptions(recordings))
    await deliverAll(db)

    expect(receiver.received).toHaveLength(1)
    const { headers, body, path: target } = receiver.received[0]!
    expect(target).toBe('/hook?tenant=7')
    expect(headers['content-type']).toBe('application/json')
    const event = new Webhook(secret).verify(body, headers as Record<string, string>)
    const job = (await dashboard.send(`/v1/deletion-jobs/${jobId}`)).json.job
    expect(job.status).toBe('completed')
    expect(event).toEqual({
      type: 'person.deletion.completed',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      data: { projectId: params.projectId, job },
    })
    expect(() =>
      new Webhook(secret).verify(`${body} `, headers as Record<string, string>),
    ).toThrow()
    const [delivery] = (await owner.call(listDeliveries, { params: path })).body.deliveries
    expect(delivery).toMatchObject({
      id: headers['webhook-id'],
      event: 'person.deletion.completed',
      jobId,
      state: 'delivered',
      attempts: 1,
      lastStatus: 204,
      lastErrorCode: null,
      nextAttemptAt: null,
    })
    const [webhook] = (await owner.call(listWebhooks, { params })).body.webhooks
    expect(webhook).toMatchObject({ lastDeliveryState: 'delivered' })
  })

  test('says that a deletion failed, to those who asked for that event and are enabled', async ({
    db,
    dashboard,
    recordings,
    owner,
    params,
    receiver,
  }) => {
    await makeWebhook(owner, params, `${receiver.url}/failed`, ['person.deletion.failed'])
    await makeWebhook(owner, params, `${receiver.url}/completed`, ['person.deletion.completed'])
    const off = await makeWebhook(owner, params, `${receiver.url}/off`)
    await owner.call(updateWebhook, { params: off.path, body: { isEnabled: false } })
    const jobId = await erasePerson(dashboard, 'ada')
    const failing = overBlobs(recordings.blobs, async () => {
      throw new BlobFault('unreachable', 'The store is away.')
    })
    await eraseAll(await erasureOptions(recordings, { blobs: failing }))
    await deliverAll(db)
    expect(receiver.received.map((one) => one.path)).toEqual(['/hook/failed'])
    expect(JSON.parse(receiver.received[0]!.body)).toMatchObject({
      type: 'person.deletion.failed',
      data: { job: { id: jobId, status: 'failed', completedAt: null } },
    })
  })

  test('is written in the transaction that ends the job, or not at all', async ({
    db,
    dashboard,
    owner,
    params,
    receiver,
  }) => {
    await makeWebhook(owner, params, receiver.url)
    const jobId = await erasePerson(dashboard, 'ada')
    const [job] = await claimJobs(db.sql, 1)
    await db.sql`
      update deletion_jobs set attempts = 5
      where project_id = ${dashboard.project.id} and id = ${jobId}`
    const end = db.begin(async (tx) => {
      const fault = { step: 'drain', code: 'fault' }
      expect(await failAttempt(tx, job as ClaimedJob, fault, [1, 1, 1, 1])).toBe('failed')
      expect(await tx`select from webhook_deliveries where job_id = ${jobId}`).toHaveLength(1)
      throw new Error('The transaction comes to nothing.')
    })
    await expect(end).rejects.toThrow('comes to nothing')
    expect(await db.sql`select from webhook_deliveries where job_id = ${jobId}`).toHaveLength(0)
  })

  test('leaves nothing of the person in the tables of the webhooks', async ({
    db,
    dashboard,
    recordings,
    owner,
    params,
    receiver,
  }) => {
    await makeWebhook(owner, params, receiver.url)
    await erasePerson(dashboard, 'ada')
    const personId = await dashboard.personId('ada')
    await eraseAll(await erasureOptions(recordings))
    await deliverAll(db)
    const rows = await db.sql<{ row: string }>`
      select d::text as row from webhook_deliveries d union all select w::text from webhooks w
      union all select e::text from erased_persons e union all select a::text from audit_log a`
    const text = rows.map(({ row }) => row).join('\n')
    for (const word of ['Lovelace', 'secret.example', '(ada', ',ada', personId]) {
      expect(text).not.toContain(word)
    }
  })
})

describe('an attempt that fails', () => {
  test('is made again, eight times within 24 hours, and then no more', async ({
    db,
    address,
    owner,
    params,
    receiver,
  }) => {
    receiver.answer = (response) => response.writeHead(500).end('no')
    const { path } = await makeWebhook(owner, params, receiver.url)
    await owner.call(testWebhook, { params: path, body: {} })
    let elapsed = 0
    for (const [i, pause] of [...retrySeconds, 0].entries()) {
      await deliverAll(db)
      expect(receiver.received).toHaveLength(i + 1)
      // Nothing is due until then.
      await deliverAll(db)
      expect(receiver.received).toHaveLength(i + 1)
      elapsed += pause
      await shiftClock(address, elapsed)
    }
    expect(elapsed).toBeLessThanOrEqual(86_400)
    expect(elapsed).toBeGreaterThan(80_000)
    await shiftClock(address, elapsed + 86_400)
    await deliverAll(db)
    expect(receiver.received).toHaveLength(8)
    expect(new Set(receiver.received.map((one) => one.headers['webhook-id'])).size).toBe(1)
    const [delivery] = (await owner.call(listDeliveries, { params: path })).body.deliveries
    expect(delivery).toMatchObject({
      state: 'failed',
      attempts: 8,
      lastStatus: 500,
      lastErrorCode: 'bad_status',
      nextAttemptAt: null,
    })
    await shiftClock(address, 0)
  })

  test('because its process went away is made by another one when the lease has ended', async ({
    db,
    address,
    owner,
    params,
    receiver,
  }) => {
    const { path } = await makeWebhook(owner, params, receiver.url)
    await owner.call(testWebhook, { params: path, body: {} })
    expect(await claimDeliveries(db.sql, 10, 60)).toHaveLength(1)
    const other = deliveries(db)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(receiver.received).toHaveLength(0)
    await shiftClock(address, 61)
    await eventually(async () => receiver.received.length > 0)
    await other.stop()
    expect(receiver.received).toHaveLength(1)
    await shiftClock(address, 0)
  })

  test('says why: no response, an unknown name, no connection or another protocol', async ({
    db,
    owner,
    params,
    receiver,
  }) => {
    receiver.answer = () => {}
    const silent = await makeWebhook(owner, params, receiver.url)
    const closed = await makeWebhook(owner, params, 'http://127.0.0.1:9/')
    const nowhere = await makeWebhook(owner, params, 'http://no.such.name.invalid/')
    const noTls = await makeWebhook(owner, params, receiver.url.replace('http:', 'https:'))
    const switching = createServer((request) =>
      request.socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      ),
    )
    await new Promise<void>((resolve) => switching.listen(0, '127.0.0.1', resolve))
    const { port } = switching.address() as AddressInfo
    const switched = await makeWebhook(owner, params, `http://127.0.0.1:${port}/`)
    const expected = new Map([
      [silent, /^timed_out$/],
      [closed, /^connection_refused$/],
      [nowhere, /^name_not_found$/],
      [noTls, /^(?:tls_failed|connection_failed)$/],
      [switched, /^connection_failed$/],
    ])
    for (const { path } of expected.keys())
      await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db, { timeoutSeconds: 1 })
    for (const [{ path }, code] of expected) {
      const [delivery] = (await owner.call(listDeliveries, { params: path })).body.deliveries
      expect(delivery).toMatchObject({ state: 'pending', lastStatus: null })
      expect(delivery?.lastErrorCode).toMatch(code)
    }
    switching.close()
  })

  test('a redirect is not followed, and 410 turns the webhook off', async ({
    db,
    owner,
    params,
    receiver,
  }) => {
    receiver.answer = (response) =>
      response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end()
    const { path } = await makeWebhook(owner, params, receiver.url)
    await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db)
    expect(receiver.received.map((one) => one.path)).toEqual(['/hook'])
    receiver.answer = (response) => response.writeHead(410).end()
    const again = await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db)
    const [webhook] = (await owner.call(listWebhooks, { params })).body.webhooks
    expect(webhook?.isEnabled).toBe(false)
    const log = (await owner.call(listDeliveries, { params: path })).body.deliveries
    expect(log.find((one) => one.id === again.body.delivery.id)).toMatchObject({
      state: 'failed',
      lastStatus: 410,
    })
  })
})

describe('deliveries', () => {
  test('many processes send each event once', async ({ db, owner, params, receiver }) => {
    const { path } = await makeWebhook(owner, params, receiver.url)
    for (let i = 0; i < 30; i++) await owner.call(testWebhook, { params: path, body: {} })
    await Promise.all([deliverAll(db), deliverAll(db), deliverAll(db)])
    const ids = receiver.received.map((one) => one.headers['webhook-id'])
    expect(ids).toHaveLength(30)
    expect(new Set(ids).size).toBe(30)
  })

  test('to a receiver that does not answer hold up no other receiver', async ({
    db,
    owner,
    params,
    receiver,
  }) => {
    receiver.answer = (response) => {
      if (response.req.url !== '/hook/silent') response.writeHead(204).end()
    }
    const silent = await makeWebhook(owner, params, `${receiver.url}/silent`)
    const other = await makeWebhook(owner, params, `${receiver.url}/other`)
    for (let i = 0; i < 30; i++) await owner.call(testWebhook, { params: silent.path, body: {} })
    await owner.call(testWebhook, { params: other.path, body: {} })
    const running = deliveries(db, { timeoutSeconds: 5 })
    await eventually(async () => receiver.received.some(({ path }) => path === '/hook/other'))
    expect(receiver.received.filter(({ path }) => path === '/hook/silent')).toHaveLength(4)
    await running.stop()
    await owner.call(removeWebhook, { params: silent.path })
  })

  test('are sent again under their id, and paged in the log', async ({
    db,
    owner,
    params,
    receiver,
  }) => {
    const { path } = await makeWebhook(owner, params, receiver.url)
    for (let i = 0; i < 3; i++) await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db)
    const first = (await owner.call(listDeliveries, { params: path, query: { limit: 2 } })).body
    expect(first.deliveries).toHaveLength(2)
    const rest = { limit: 2, cursor: first.nextCursor! }
    const second = (await owner.call(listDeliveries, { params: path, query: rest })).body
    expect(second.deliveries).toHaveLength(1)
    expect(second.nextCursor).toBeNull()

    const deliveryId = second.deliveries[0]!.id
    const resent = await owner.call(resendDelivery, { params: { ...path, deliveryId }, body: {} })
    expect(resent.body.delivery).toMatchObject({ id: deliveryId, state: 'pending', attempts: 1 })
    await deliverAll(db)
    const all = (await owner.call(listDeliveries, { params: path, query: { limit: 10 } })).body
    const sent = all.deliveries.find(({ id }) => id === deliveryId)
    expect(sent).toMatchObject({ state: 'delivered', attempts: 2 })
    const ids = receiver.received.map((one) => one.headers['webhook-id'])
    expect(ids.filter((id) => id === deliveryId)).toHaveLength(2)
    const nobody = { ...path, deliveryId: path.webhookId }
    expect(await refusalOf(owner.call(resendDelivery, { params: nobody, body: {} }))).toEqual({
      status: 404,
      code: 'delivery_not_found',
    })
  })

  test('are signed with both secrets for a day after a renewal', async ({
    db,
    address,
    owner,
    params,
    receiver,
  }) => {
    const { secret: old, path } = await makeWebhook(owner, params, receiver.url)
    const { secret } = (await owner.call(rotateWebhookSecret, { params: path, body: {} })).body
    expect(secret).not.toBe(old)
    const send = async () => {
      await owner.call(testWebhook, { params: path, body: {} })
      await deliverAll(db)
      const { headers, body } = receiver.received.at(-1)!
      return [secret, old].map((one) => {
        try {
          return new Webhook(one).verify(body, headers as Record<string, string>) !== undefined
        } catch {
          return false
        }
      })
    }
    expect(await send()).toEqual([true, true])
    await shiftClock(address, 24 * 3_600 + 1)
    expect(await send()).toEqual([true, false])
    await shiftClock(address, 0)
  })

  test('go with their webhook, and are forgotten thirty days after they ended', async ({
    db,
    address,
    owner,
    params,
    receiver,
  }) => {
    const { path } = await makeWebhook(owner, params, receiver.url)
    await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db)
    await shiftClock(address, 29 * 86_400)
    expect(await deleteOldDeliveries(db.sql, 30, 1_000)).toBe(0)
    await shiftClock(address, 31 * 86_400)
    expect(await deleteOldDeliveries(db.sql, 30, 1_000)).toBeGreaterThan(0)
    expect((await owner.call(listDeliveries, { params: path })).body.deliveries).toEqual([])
    await shiftClock(address, 0)
    await owner.call(testWebhook, { params: path, body: {} })
    await owner.call(removeWebhook, { params: path })
    expect(
      await db.sql`
      select from webhook_deliveries where webhook_id = ${path.webhookId}`,
    ).toHaveLength(0)
  })
})

describe('where events may not go', () => {
  test('private and odd URLs are refused when a webhook is made', async ({
    recordings,
    address,
    project,
    signIn,
  }) => {
    const dashboard = await startDashboard(
      { recordings, address, project, signIn },
      { dashboard: { webhooks: { secret: webhookKey, allowPrivate: false } } },
    )
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const make = (url: string) =>
      refusalOf(
        owner.call(createWebhook, { params, body: { url, events: ['person.deletion.failed'] } }),
      )
    for (const url of [
      'http://example.com/',
      'ftp://example.com/',
      'example.com',
      'https://user:word@example.com/',
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://0177.0.0.1/',
      'https://10.1.2.3/',
      'https://192.168.0.1/',
      'https://169.254.169.254/latest/meta-data',
      'https://[::1]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[fd00::1]/',
      'https://[fe80::1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://[2002:7f00:1::]/',
    ]) {
      expect([url, await make(url)]).toEqual([url, { status: 400, code: 'invalid_request' }])
    }
    expect(await make('https://hooks.example.com/lethe')).toBeUndefined()
    expect(await make('https://8.8.8.8/')).toBeUndefined()
    await dashboard.close()
  })

  test('a name that resolves to a private address is refused at the connection', async ({
    db,
    owner,
    params,
    receiver,
  }) => {
    const { port } = new URL(receiver.url)
    // Made while it was allowed, or a name that changed since.
    const { path } = await makeWebhook(owner, params, `http://localhost:${port}/hook`)
    await owner.call(testWebhook, { params: path, body: {} })
    await deliverAll(db, { allowPrivate: false })
    expect(receiver.received).toHaveLength(0)
    const [delivery] = (await owner.call(listDeliveries, { params: path })).body.deliveries
    expect(delivery).toMatchObject({ state: 'pending', lastErrorCode: 'address_refused' })
    await expect(promisify(lookupPublic)('localhost', {})).rejects.toThrow('no public address')
  })

  test('only public unicast addresses are public', () => {
    for (const address of ['8.8.8.8', '1.1.1.1', '100.63.255.255', '172.15.0.1', '2606:4700::1']) {
      expect([address, isPublicAddress(address)]).toEqual([address, true])
    }
    for (const address of [
      '3ffe::1',
      '3ffe:ffff::8',
      '0.0.0.0',
      '10.0.0.1',
      '100.64.0.1',
      '127.255.255.254',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.2.1',
      '192.168.1.1',
      '198.18.0.1',
      '203.0.113.9',
      '224.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:8.8.8.8',
      '::ffff:127.0.0.1',
      '64:ff9b::808:808',
      '2001:db8::1',
      '2002:7f00:1::',
      'fc00::1',
      'fe80::1',
      'ff02::1',
      'no address',
    ]) {
      expect([address, isPublicAddress(address)]).toEqual([address, false])
    }
  })
})
