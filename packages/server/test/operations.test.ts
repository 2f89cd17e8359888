import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, test as base, describe, expect } from 'vitest'
import { createLog } from '../src/log.ts'
import { connectOne } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { sendRaw, test } from './fixtures.ts'
import { eventually, greeting, newEnvironment, startLethe, urlOf } from './lethe-process.ts'

const limit = { timeout: 120_000 }
const shared = mkdtempSync(join(tmpdir(), 'lethe-operations-'))
afterAll(() => rmSync(shared, { recursive: true }))
/** Of the database of this file, whose ledger of erasures lies in the data folder. */
const ofDatabase = {
  MASTER_KEY: `k1:${randomBytes(32).toString('base64')}`,
  DATA_DIR: join(shared, 'data'),
}
const docs = join(import.meta.dirname, '../../../docs')

const metricsAt = async (address: string) => await (await fetch(`${address}/metrics`)).text()

describe('a split deployment', () => {
  test(
    'every process shows a failed and a stuck erasure, on a port of its own',
    limit,
    async ({ address, db, project }) => {
      const env = await newEnvironment(address, { ...ofDatabase, OPERATIONS_PORT: '0' })
      const worker = await startLethe(['worker'], env, /Health and metrics are at (\S+)/)
      const service = await startLethe(['serve', '--no-worker'], env, /operations (\S+)\/metrics/)
      const port = /listens on (\S+)/.exec(service.output())?.[1] as string
      await sendRaw(port, '/v1/persons', project.secretKey, {
        method: 'POST',
        body: { externalId: 'ada' },
      })
      await db.sql`
      insert into deletion_jobs (project_id, id, external_id, person_id, status, attempts,
        keep_recordings, requested_by, next_attempt_at, started_at)
      select project_id, gen_random_uuid(), external_id, null, 'failed', 5, false, 'command', app_now(), app_now()
      from persons where project_id = ${project.id}`
      for (const at of [worker.found, service.found]) {
        const text = await metricsAt(at)
        expect(text).toMatch(/^lethe_deletion_jobs_failed 1$/m)
        expect(text).toMatch(/^lethe_deletion_jobs_stuck 0$/m)
        expect(text).toMatch(/^lethe_database_up 1$/m)
        expect((await fetch(`${at}/health/ready`)).status).toBe(200)
      }
      await worker.stop()
      const path = '/v1/persons/ada'
      await sendRaw(port, path, project.secretKey, { method: 'DELETE' })
      await db.sql`
      update deletion_jobs set next_attempt_at = app_now() - interval '1 hour'
      where project_id = ${project.id} and status = 'pending'`
      expect(await metricsAt(service.found)).toMatch(/^lethe_deletion_jobs_stuck 1$/m)
      // What has a port of its own is not on the one that is published.
      expect((await fetch(`${port}/metrics`)).status).toBe(404)
      expect((await fetch(`${port}/health/ready`)).status).toBe(200)
    },
  )

  test('each metric that an alert or a panel names is there', limit, async ({ address }) => {
    const env = await newEnvironment(address, { ...ofDatabase, OPERATIONS_PORT: '0' })
    const service = await startLethe(['serve'], env, /operations (\S+)\/metrics/)
    const text = await metricsAt(service.found)
    for (const file of ['alerts.yaml', 'grafana.json']) {
      const named = readFileSync(join(docs, file), 'utf8').matchAll(/\b(lethe_[a-z_]+)\b/g)
      const names = new Set(
        [...named].map(([, name = '']) => name.replace(/_(?:count|bucket)$/, '')),
      )
      expect(names.size).toBeGreaterThan(5)
      for (const name of names) expect(text, name).toContain(`# TYPE ${name} `)
    }
  })
})

describe('a database that went read-only', () => {
  test('is 503 with Retry-After for writes, and not ready', limit, async ({ address, project }) => {
    const { client, end } = await connectOne(address)
    const env = await newEnvironment(address, ofDatabase)
    const service = await startLethe(['serve', '--no-worker'], env, greeting)
    const post = () =>
      sendRaw(service.found, '/v1/persons', project.secretKey, {
        method: 'POST',
        body: { externalId: `p${Math.random()}` },
      })
    expect((await post()).status).toBe(201)
    await client.query(`alter database ${address.database} set default_transaction_read_only = on`)
    try {
      // As in a failover, all connections are opened again.
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [address.database],
      )
      const refused = await eventually(async () => {
        const answer = await post()
        return answer.status !== 201 && answer.headers.get('retry-after') ? answer : undefined
      })
      expect([refused.status, refused.json.error.code]).toEqual([503, 'unavailable'])
      await eventually(async () => (await fetch(`${service.found}/health/ready`)).status === 503)
    } finally {
      await client.query('set default_transaction_read_only = off')
      await client.query(`alter database ${address.database} reset default_transaction_read_only`)
      await end()
    }
  })
})

test(
  'in an outage a failed request is one line without frames, and background faults are few',
  limit,
  async ({ address, project }) => {
    const proxy = await startCuttingProxy(address)
    const env = await newEnvironment(undefined, {
      ...ofDatabase,
      DATABASE_URL: urlOf({ ...address, port: proxy.address.port })
        .replace(/\?.*/, '')
        .replace('localhost', '127.0.0.1'),
    })
    const service = await startLethe(['serve'], env, greeting)
    await proxy.close()
    const before = service.output().length
    const answers = []
    for (let n = 0; n < 20; n++) {
      answers.push(await sendRaw(service.found, `/v1/persons/p${n}`, project.secretKey, {}))
    }
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    const linesSince = () =>
      service
        .output()
        .slice(before)
        .split('\n')
        .filter((line) => /^\{.*\}$/.test(line))
        .map((line) => JSON.parse(line))
    await eventually(async () => linesSince().filter(({ requestId }) => requestId).length >= 20)
    const lines = linesSince()
    const ofRequests = lines.filter(({ requestId }) => requestId)
    expect(ofRequests).toHaveLength(20)
    expect(JSON.stringify(ofRequests)).not.toContain('frames')
    // Each kind of work in the background says it once.
    const others = lines
      .filter(({ requestId }) => !requestId)
      .map(({ event, fault }) => `${event} ${fault?.type} ${fault?.code}`)
    expect(new Set(others).size).toBe(others.length)
  },
)

base('a background fault that repeats is counted, and not logged each time', () => {
  let out = ''
  const write = (line: string) => {
    out += line
  }
  const log = createLog('info', { write })
  for (let n = 0; n < 100; n++) log.fault('worker.claim', new TypeError('x'))
  log.fault('worker.claim', new RangeError('x'))
  expect(out.trim().split('\n')).toHaveLength(2)
})

const promtool = '/usr/bin/promtool'

base.runIf(existsSync(promtool))('promtool takes the alerts', () => {
  const said = execFileSync(promtool, ['check', 'rules', join(docs, 'alerts.yaml')], {
    encoding: 'utf8',
  })
  expect(said).toMatch(/SUCCESS: \d+ rules found/)
})

const uncovered = 'skipped: there is no promtool on this machine'
if (!existsSync(promtool)) base.skip(uncovered, () => {})
