import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, test as base, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { startInstalledPostgres } from '../../../scripts/installed-postgres.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { test } from './fixtures.ts'
import {
  type Environment,
  eventually,
  greeting,
  newEnvironment,
  runLethe,
  spawnLethe,
  startLethe,
} from './lethe-process.ts'
import { isDeep } from './proof/deep.ts'

/*
 * What an operator gets wrong, and what the start says of it: one line that names the setting and
 * what to do. A server of its own, with TLS and passwords; a test that needs it is skipped without.
 */

const limit = { timeout: 180_000 }
const files = mkdtempSync(join(tmpdir(), 'lethe-set-ups-'))
afterAll(() => rmSync(files, { recursive: true, force: true }))

let server: NonNullable<ReturnType<typeof startInstalledPostgres>>
let address: DbAddress

beforeAll(async () => {
  makeCertificates()
  const started = startInstalledPostgres({
    listens: true,
    settings: `-c ssl=on -c ssl_cert_file=${files}/server.crt -c ssl_key_file=${files}/server.key`,
    hba: [
      'hostssl all encrypted all trust',
      'hostnossl all encrypted all reject',
      'hostnossl all plain all trust',
      'host all secret all scram-sha-256',
    ],
  })
  if (!started) return
  server = started
  const url = new URL(server.url)
  address = { host: url.hostname, port: Number(url.port), user: 'lethe', database: 'postgres' }
  const { client, end } = await connectOne(address)
  for (const statement of [
    'create role encrypted login superuser',
    'create role plain login superuser',
    `create role secret login superuser password 'right'`,
    'create role reader login superuser',
    'alter role reader set default_transaction_read_only = on',
    'create role nobody_else login',
    'create role limited login connection limit 0',
    `create database fresh template template0 encoding 'UTF8'`,
    `create database owned template template0 encoding 'UTF8'`,
    `create database newer template template0 encoding 'UTF8'`,
    `create database ascii template template0 encoding 'SQL_ASCII' locale 'C'`,
  ]) {
    await client.query(statement)
  }
  await end()
}, 120_000)
afterAll(() => server?.stop())

/** A root certificate of nobody's, and one it signed for `database.example`. */
function makeCertificates(): void {
  const openssl = (words: string) =>
    execFileSync('openssl', words.split(' '), { cwd: files, stdio: 'ignore' })
  const subject = (name: string) => `-nodes -newkey rsa:2048 -days 2 -subj /CN=${name}`
  openssl(`req -x509 ${subject('root')} -keyout root.key -out root.crt`)
  openssl(
    `req -x509 ${subject('database.example')} -keyout server.key -out server.crt -CA root.crt -CAkey root.key -addext subjectAltName=DNS:database.example`,
  )
  execFileSync('chmod', ['755', files])
  if (process.getuid?.() === 0) {
    const uid = Number(execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' }))
    for (const name of ['server.key', 'server.crt']) chownSync(join(files, name), uid, uid)
  }
}

const at = (user: string, database = 'fresh', query = '') =>
  `postgres://${user}@127.0.0.1:${address.port}/${database}${query}`

async function freeOrTakenPort(isTaken: boolean): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  if (isTaken) onTestFinished(() => void listener.close())
  else listener.close()
  return port
}

type SetUp = [name: string, settings: () => Environment | Promise<Environment>, says: RegExp]

/** Of these a normal run has the words in command.test.ts and doctor.test.ts. */
const elsewhere = [
  'PORT is no number',
  'another database',
  'nothing listens',
  'no such database',
  'another encoding',
  'a taken PORT',
  'another master key of the id',
  'nothing listens for S3',
]
const isOfThisRun = ([name]: SetUp) => isDeep || !elsewhere.includes(name)

const settingsAlone: SetUp[] = [
  ['PORT is no number', () => ({ PORT: 'http' }), /PORT must be a whole number/],
  [
    'another database',
    () => ({ DATABASE_URL: 'mysql://u:hunter2@h/x' }),
    /DATABASE_URL.*postgres:/,
  ],
  ['two hosts', () => ({ DATABASE_URL: 'postgres://u:hunter2@a,b/x' }), /DATABASE_URL.*one host/],
  ['a bucket by http', () => ({ BLOBS_URL: 'http://bucket' }), /BLOBS_URL.*s3:\/\/bucket/],
  ['an unknown master key form', () => ({ MASTER_KEY: 'hunter2' }), /master key is written id:key/],
]

const databases: SetUp[] = [
  [
    'nothing listens',
    async () => ({
      DATABASE_URL: `postgres://u:hunter2@127.0.0.1:${await freeOrTakenPort(false)}/x`,
    }),
    /Nothing listens at 127\.0\.0\.1:\d+.*DATABASE_URL.*start PostgreSQL/,
  ],
  [
    'a wrong host name',
    () => ({ DATABASE_URL: 'postgres://u:hunter2@no-such-host.invalid/x' }),
    /host name no-such-host\.invalid in DATABASE_URL cannot be resolved/,
  ],
  [
    'a wrong socket',
    () => ({ DATABASE_URL: 'postgres://u@localhost/x?host=/nowhere' }),
    /no PostgreSQL socket in \/nowhere.*DATABASE_URL/,
  ],
  ['no such database', () => ({ DATABASE_URL: at('lethe', 'none') }), /does not exist: create it/],
  ['no such user', () => ({ DATABASE_URL: at('stranger') }), /rejects the user in DATABASE_URL/],
  ['no password', () => ({ DATABASE_URL: at('secret') }), /requires a password.*DATABASE_URL/],
  [
    'a wrong password',
    () => ({ DATABASE_URL: at('secret:hunter2') }),
    /rejects the password in DATABASE_URL/,
  ],
  [
    'a server that takes encrypted connections only',
    () => ({ DATABASE_URL: at('encrypted') }),
    /only encrypted connections: add \?sslmode=require to DATABASE_URL/,
  ],
  [
    'a private authority',
    () => ({ DATABASE_URL: at('encrypted', 'fresh', '?sslmode=verify-full') }),
    /unknown authority.*sslrootcert/,
  ],
  [
    'a certificate for another name',
    () => ({
      DATABASE_URL: at('encrypted', 'fresh', `?sslmode=verify-full&sslrootcert=${files}/root.crt`),
    }),
    /certificate of the database is not for 127\.0\.0\.1.*verify-ca/,
  ],
  [
    'a root certificate that is not there',
    () => ({ DATABASE_URL: at('encrypted', 'fresh', '?sslmode=verify-ca&sslrootcert=/no/root') }),
    /\/no\/root.*DATABASE_URL.*cannot be read/,
  ],
  [
    'verify-ca without a root certificate',
    () => ({ DATABASE_URL: at('encrypted', 'fresh', '?sslmode=verify-ca') }),
    /verify-ca in DATABASE_URL needs a root certificate/,
  ],
  ['another encoding', () => ({ DATABASE_URL: at('lethe', 'ascii') }), /encoding SQL_ASCII.*UTF8/],
  ['a read-only database', () => ({ DATABASE_URL: at('reader') }), /read-only.*the primary/],
  ['no connection left', () => ({ DATABASE_URL: at('limited') }), /no connections left.*POOL_SIZE/],
  [
    'a user without rights',
    () => ({ DATABASE_URL: at('nobody_else') }),
    /user in DATABASE_URL lacks rights/,
  ],
  [
    'tables of another user',
    async () => {
      const env = await newEnvironment(undefined, { DATABASE_URL: at('lethe', 'owned') })
      await runLethe(['migrate'], env)
      return { DATABASE_URL: at('nobody_else', 'owned') }
    },
    /user in DATABASE_URL lacks rights/,
  ],
  [
    'the database of a newer Lethe',
    async () => {
      const DATABASE_URL = at('lethe', 'newer')
      await runLethe(['migrate'], await newEnvironment(undefined, { DATABASE_URL }))
      const { client, end } = await connectOne({ ...address, database: 'newer' })
      await client.query(`insert into migrations values ('9999_later.sql', '')`)
      await end()
      return { DATABASE_URL }
    },
    /migrated by a newer version of Lethe \(9999_later\.sql\): use that version/,
  ],
]

describe('the start says in one line', () => {
  base.for([...settingsAlone, ...databases].filter(isOfThisRun))(
    '%s',
    limit,
    async ([_name, settings, says], context) => {
      if (!server) context.skip('there is no installed PostgreSQL')
      const env = await newEnvironment(undefined, {
        START_WAIT_SECONDS: '0',
        ...(await settings()),
      })
      const { code, out, err } = await runLethe(['serve'], env)
      expect([code, out], err).toEqual([1, ''])
      expect(err).toMatch(/^lethe: [^\n]+\n$/)
      expect(err).toMatch(says)
      expect(err).not.toMatch(/hunter2| at .*:\d+:\d+/)
      if (isDeep) await expectDiagnosis(env, says)
    },
  )
})

/** `lethe doctor` names it in the same words, and ends with 1. */
async function expectDiagnosis(env: Environment, says: RegExp): Promise<void> {
  const { code, out } = await runLethe(['doctor', '--json'], env)
  expect(code, out).toBe(1)
  const failed = JSON.parse(out).findings.filter(
    ({ state }: { state: string }) => state === 'failed',
  )
  expect(failed.map(({ words }: { words: string }) => words)).toContainEqual(
    expect.stringMatching(says),
  )
  expect(out).not.toMatch(/hunter2| at .*:\d+:\d+/)
}

const key = (id = 'k1') => `${id}:${randomBytes(32).toString('base64')}`

/** Of the database of this file. */
const sealing = key()

describe('on a database that is right, the start says in one line', () => {
  /** Whether the master key has sealed something in the database of this file. */
  let isSealed = false
  const right = { MASTER_KEY: sealing, START_WAIT_SECONDS: '0' }
  const s3 = { BLOBS_URL: 's3://bucket', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'hunter2' }
  const setUps: SetUp[] = [
    ['a wrong HOST', () => ({ HOST: 'no-such-host.invalid' }), /HOST cannot be resolved/],
    [
      'a HOST of elsewhere',
      () => ({ HOST: '192.0.2.1' }),
      /HOST is not an address of this machine/,
    ],
    [
      'a taken PORT',
      async () => ({ PORT: String(await freeOrTakenPort(true)) }),
      /program uses the port.*PORT/,
    ],
    [
      'a database of countries that is missing',
      () => ({ COUNTRY_DATABASE: '/nowhere/countries.mmdb' }),
      /COUNTRY_DATABASE names cannot be read \(ENOENT\)/,
    ],
    ['another master key of the id', () => ({ MASTER_KEY: key() }), /not the key that encrypted/],
    ['an unknown master key', () => ({ MASTER_KEY: key('k2') }), /no master key with the id k1/],
    [
      'no S3 credentials',
      () => ({
        BLOBS_URL: 's3://bucket',
        S3_ENDPOINT: 'http://127.0.0.1:1',
        AWS_EC2_METADATA_DISABLED: 'true',
      }),
      /no credentials for the S3 server: set AWS_ACCESS_KEY_ID/,
    ],
    [
      'nothing listens for S3',
      () => ({ ...s3, S3_ENDPOINT: 'http://127.0.0.1:1' }),
      /S3 server http:\/\/127\.0\.0\.1:1 cannot be reached.*S3_ENDPOINT/,
    ],
    [
      'https to a server of http',
      async () => ({ ...s3, S3_ENDPOINT: await plainServer() }),
      /does not use TLS: start S3_ENDPOINT with http:/,
    ],
  ]
  test.for(setUps.filter(isOfThisRun))(
    '%s',
    limit,
    async ([_name, settings, says], { address: database }) => {
      const env = await newEnvironment(database, right)
      if (!isSealed) await (await startLethe(['serve'], env, greeting)).stop()
      isSealed = true
      const { code, err } = await runLethe(['serve'], { ...env, ...(await settings()) })
      expect(code, err).toBe(1)
      expect(err).toMatch(/^lethe: [^\n]+\n$/)
      expect(err).toMatch(says)
      expect(err).not.toContain('hunter2')
      if (isDeep) await expectDiagnosis({ ...env, ...(await settings()) }, says)
    },
  )

  test('nothing with a HOST of IPv6 in brackets', limit, async ({ address: database }) => {
    const env = await newEnvironment(database, { ...right, HOST: '[::1]' })
    const { found } = await startLethe(['serve'], env, greeting)
    expect((await fetch(`${found}/health/ready`)).status).toBe(200)
  })
})

/** The https address of a server that responds in plain HTTP. */
async function plainServer(): Promise<string> {
  const listener = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  onTestFinished(() => void listener.close())
  return `https://127.0.0.1:${(listener.address() as { port: number }).port}`
}

describe('a start that comes before its database', () => {
  test('says so once, and goes on when it is there', limit, async ({ address: database }) => {
    const port = await freeOrTakenPort(false)
    const { user, password = '', database: name } = database
    const url = `postgres://${user}:${password}@127.0.0.1:${port}/${name}`
    const env = await newEnvironment(undefined, { DATABASE_URL: url, MASTER_KEY: sealing })
    const service = spawnLethe(['serve'], env)
    const waiting = /Nothing listens.*Retrying for up to 120 seconds/g
    await eventually(async () => waiting.test(service.output()))
    const bridge = await startCuttingProxy(database, port)
    onTestFinished(() => bridge.close())
    await eventually(async () => greeting.test(service.output()))
    expect(service.output().match(waiting)).toHaveLength(1)
    expect(await service.stop()).toBe(0)
  })

  test('ends at a signal meanwhile', limit, async () => {
    const port = await freeOrTakenPort(false)
    const env = await newEnvironment(undefined, {
      DATABASE_URL: `postgres://lethe@127.0.0.1:${port}/lethe`,
    })
    const service = spawnLethe(['worker'], env)
    await eventually(async () => /Retrying for/.test(service.output()))
    expect(await service.stop()).toBe(0)
  })
})

describe('sslmode means what it means to libpq', () => {
  const modes: [query: string, user: string][] = [
    ['sslmode=disable', 'plain'],
    ['sslmode=prefer', 'encrypted'],
    ['sslmode=require', 'encrypted'],
    [`sslmode=require&sslrootcert=ROOT`, 'encrypted'],
    [`sslmode=verify-ca&sslrootcert=ROOT`, 'encrypted'],
  ]
  base.for(modes)('%s connects', limit, async ([query, user], context) => {
    if (!server) context.skip('there is no installed PostgreSQL')
    const url = at(user, 'fresh', `?${query.replace('ROOT', `${files}/root.crt`)}`)
    const env = await newEnvironment(undefined, { DATABASE_URL: url })
    expect(await runLethe(['migrate'], env)).toMatchObject({ code: 0, err: '' })
  })

  base('the root certificate may come from PGSSLROOTCERT', limit, async (context) => {
    if (!server) context.skip('there is no installed PostgreSQL')
    const url = at('encrypted', 'fresh', '?sslmode=verify-ca')
    const env = await newEnvironment(undefined, {
      DATABASE_URL: url,
      PGSSLROOTCERT: `${files}/root.crt`,
    })
    expect(await runLethe(['migrate'], env)).toMatchObject({ code: 0, err: '' })
  })
})
