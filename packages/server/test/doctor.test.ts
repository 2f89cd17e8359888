import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { connectOne } from '../src/sql.ts'
import { test } from './fixtures.ts'
import {
  type Environment,
  eventually,
  greeting,
  newEnvironment,
  runLethe,
  startLethe,
} from './lethe-process.ts'

const limit = { timeout: 120_000 }
/** Of the database of this file. */
const MASTER_KEY = `k1:${randomBytes(32).toString('base64')}`

interface Finding {
  check: string
  state: string
  words: string
}

async function ask(env: Environment): Promise<{ code: number; of(check: string): Finding }> {
  const { code, out, err } = await runLethe(['doctor', '--json'], env)
  const { findings } = JSON.parse(out || '{}') as { findings: Finding[] }
  expect(findings, err).toBeDefined()
  return {
    code,
    of: (check) => findings.find((one) => one.check === check) ?? { check, state: '', words: '' },
  }
}

describe('lethe doctor', () => {
  test('finds nothing wrong while a service works', limit, async ({ address }) => {
    const env = await newEnvironment(address, { MASTER_KEY })
    await startLethe(['serve'], env, greeting)
    // The worker of it says so when it starts.
    await eventually(async () => (await ask(env)).of('workers').state === 'ok')
    const { code, of } = await ask(env)
    const checks = ['settings', 'blob store', 'database', 'migrations', 'master key', 'workers']
    for (const check of [...checks, 'erasures', 'ledger', 'clocks']) {
      expect(of(check), check).toMatchObject({ state: 'ok' })
    }
    expect(code).toBe(0)
  })

  test(
    'names what is wrong, in the same words as a failed start, and exits with 1',
    limit,
    async ({ address }) => {
      const env = await newEnvironment(address, { MASTER_KEY })
      const other = `k1:${randomBytes(32).toString('base64')}`
      const wrong: [settings: Environment, check: string, words: RegExp][] = [
        [{ PORT: 'x' }, 'settings', /PORT must be/],
        [{ DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x' }, 'database', /Nothing listens/],
        [{ MASTER_KEY: other }, 'master key', /not the key that encrypted/],
        [
          {
            BLOBS_URL: 's3://bucket',
            S3_ENDPOINT: 'http://127.0.0.1:1',
            AWS_ACCESS_KEY_ID: 'a',
            AWS_SECRET_ACCESS_KEY: 'b',
          },
          'blob store',
          /cannot be reached.*S3_ENDPOINT/,
        ],
      ]
      for (const [settings, check, words] of wrong) {
        const { code, of } = await ask({ ...env, ...settings })
        expect(of(check), check).toMatchObject({
          state: 'failed',
          words: expect.stringMatching(words),
        })
        expect(of(check).words).not.toContain('hunter2')
        expect(code).toBe(1)
      }
    },
  )

  test('warns of a proxy that is not trusted', limit, async ({ address }) => {
    const env = await newEnvironment(address, { MASTER_KEY, PUBLIC_URL: 'https://x.example' })
    expect((await ask(env)).of('address')).toMatchObject({
      state: 'warning',
      words: expect.stringContaining('TRUST_PROXY'),
    })
  })
})

test(
  'lethe doctor sees secrets others can read, where PUBLIC_URL leads, the key database and locks',
  limit,
  async ({ address, db }) => {
    const { DATABASE_URL = '', ...env } = await newEnvironment(address, { MASTER_KEY })
    const file = join(env.DATA_DIR, '..', 'url')
    writeFileSync(file, DATABASE_URL, { mode: 0o644 })
    const service = await startLethe(['serve'], { ...env, DATABASE_URL }, greeting)
    const settings = {
      ...env,
      DATABASE_URL_FILE: file,
      PUBLIC_URL: service.found,
      KEY_DATABASE_URL: DATABASE_URL,
    }
    // A connection without limits: the diagnosis may take longer than a request may wait for a lock.
    const { sql, end } = await connectOne(address)
    let waiting: Promise<unknown> = Promise.resolve()
    await db.begin(async (tx) => {
      await tx`lock table audit_log in access exclusive mode`
      waiting = sql`select count(*) from audit_log`
      const { of } = await eventually(async () => {
        const asked = await ask(settings)
        return asked.of('transactions').state === 'warning' && asked
      })
      expect(of('transactions').words).toMatch(/wait for locks held by another \(pid \d+\)/)
      expect(of('secret files')).toMatchObject({
        state: 'warning',
        words: 'Other users can read DATABASE_URL_FILE (mode 644): run chmod 600 on them.',
      })
      expect(of('public address')).toMatchObject({ state: 'ok' })
      expect(of('key database')).toMatchObject({
        state: 'warning',
        words: expect.stringContaining('It is the main database'),
      })
    })
    await waiting
    await end()
    chmodSync(file, 0o600)
    const PUBLIC_URL = `${service.found}/elsewhere`
    const other = await ask({
      ...settings,
      PUBLIC_URL,
      TRUST_PROXY: '1',
      KEY_DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/x',
    })
    expect(other.of('secret files').state).toBe('ok')
    expect(other.of('transactions').state).toBe('ok')
    expect(other.of('public address').words).toContain('does not lead to Lethe (status 404)')
    expect(other.of('key database')).toMatchObject({
      state: 'failed',
      words: expect.stringMatching(/KEY_DATABASE_URL/),
    })
    const open = await ask({ ...env, DATABASE_URL, TRUST_PROXY: '1' })
    expect(open.of('address').words).toContain('clients can claim any address')
  },
)

test(
  'secrets come from files and from a command, and lethe config shows none',
  limit,
  async ({ address }) => {
    const { DATABASE_URL = '', ...env } = await newEnvironment(address, {})
    const file = join(env.DATA_DIR, '..', 'secret')
    writeFileSync(file, `${DATABASE_URL}\n`)
    const settings: Environment = {
      ...env,
      DATABASE_URL_FILE: file,
      MASTER_KEY: '',
      MASTER_KEY_COMMAND: `printf '${MASTER_KEY}'`,
    }
    await (await startLethe(['serve'], settings, greeting)).stop()
    const shown = await runLethe(['config', '--json'], settings)
    expect(JSON.parse(shown.out)).toMatchObject({ PORT: '0' })
    expect(shown.out).not.toContain(address.password ?? 'no password')
    const failing = await runLethe(['serve'], { ...settings, MASTER_KEY_COMMAND: 'exit 7' })
    expect([failing.code, failing.err]).toEqual([
      1,
      expect.stringMatching(/^lethe: MASTER_KEY_COMMAND failed \(7\)/),
    ])
    const missing = await runLethe(['serve'], { ...settings, DATABASE_URL_FILE: '/nowhere' })
    expect(missing.err).toMatch(/^lethe: The file named by DATABASE_URL_FILE cannot be read/)
  },
)
