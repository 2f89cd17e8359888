import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest'
import { connectOne } from '../src/sql.ts'
import { test as onDatabase, sendRaw } from './fixtures.ts'
import {
  type Environment,
  eventually,
  type LetheProcess,
  newEnvironment,
  runLethe,
  startLethe,
  urlOf,
} from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'

let env: Awaited<ReturnType<typeof newEnvironment>>
beforeEach(async () => {
  env = await newEnvironment(undefined, { MASTER_KEY: '' })
})

/** Runs the command to its end. */
const run = (words: string[], settings: Environment = {}) =>
  runLethe(words, { ...env, ...settings })

/** Starts the service and waits until it has greeted. */
const serve = (settings: Environment = {}) =>
  startLethe(['serve'], { ...env, ...settings }, /listens on (http:\S+)[\s\S]*API page.*\n/)

const isDatabaseRunning = () => existsSync(join(env.DATA_DIR, 'postgres/postmaster.pid'))

/** The secret key in a greeting, which is complete when its line ends. */
async function keyIn({ output }: LetheProcess): Promise<string> {
  return eventually(async () => /secret key +(sk_\w+) /.exec(output())?.[1])
}

describe('lethe serve on the embedded database', () => {
  test('greets with a first project whose keys work, once; a second service on the same folder is refused in one line', async () => {
    rmSync(env.DATA_DIR, { recursive: true })
    const first = await serve()
    const key = await keyIn(first)
    const answer = await sendRaw(first.found, '/v1/persons', key, {
      method: 'POST',
      body: { externalId: 'ada' },
    })
    expect(answer.status).toBe(201)
    await expect.poll(first.output).toMatch(/Try it:[\s\S]*curl/)
    expect(await first.stop('SIGINT')).toBe(0)

    const second = await serve()
    expect((await sendRaw(second.found, '/v1/persons/ada', key, {})).status).toBe(200)
    const third = await run(['serve'])
    expect([third.code, third.err.trim().split('\n')]).toEqual([
      1,
      [expect.stringMatching(/^lethe: .*data folder/)],
    ])
    expect(await second.stop()).toBe(0)
    expect(second.output()).not.toMatch(/sk_|pk_/)
    expect(first.complaints() + second.complaints()).toBe('')
  })

  test('SIGTERM lets a request in flight finish, then stops the database', async () => {
    const service = await serve()
    const key = await keyIn(service)
    const ended = once(service.child, 'exit')
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(`${service.found}/v1/persons`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': 20,
          // Told when the service has the request: before that it is none in flight.
          expect: '100-continue',
        },
      })
      outgoing.on('response', (response) => resolve(response.statusCode))
      outgoing.on('error', reject)
      outgoing.on('continue', async () => {
        outgoing.write('{"externalId"')
        service.child.kill('SIGTERM')
        await eventually(async () => service.output().includes('service.stopping'))
        outgoing.end(':"ada"}')
      })
    })
    expect(await answered).toBe(201)
    expect(await ended).toEqual([0, null])
    expect(isDatabaseRunning()).toBe(false)
  })

  test('SIGTERM ends it at once, also when it has read a large body; without the file of its master key it says which is missing', async () => {
    const service = await serve()
    const key = await keyIn(service)
    const answer = await sendRaw(service.found, '/v1/persons', key, {
      method: 'POST',
      body: { externalId: 'ada', properties: { long: 'x'.repeat(100_000) } },
    })
    expect(answer.status).toBe(201)
    // 1 would say that it was cut off, after all the time that requests in flight may take.
    expect(await service.stop()).toBe(0)

    const file = join(env.DATA_DIR, 'keys/master-key')
    const [id] = readFileSync(file, 'utf8').split(':')
    rmSync(file)
    const { code, err } = await run(['serve'])
    expect(code).toBe(1)
    expect(err).toMatch(new RegExp(`^lethe: There is no master key with the id ${id}\\..+\\n$`))
  })

  test('a port in use gives one line, and the database is not left running', async () => {
    const server = createServer()
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    )
    const { code, err } = await run(['serve'], { PORT: String(port) })
    server.close()
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^lethe: Another program uses the port.*\n$/),
    ])
    expect(isDatabaseRunning()).toBe(false)
  })
})

describe('projects and keys', () => {
  test('are made whether or not the service runs', async () => {
    const made = await run(['projects', 'create', 'Before', '--json'])
    expect([made.code, made.err, made.out.split('\n').length]).toEqual([0, '', 2])
    expect(JSON.parse(made.out)).toEqual({
      project: { id: expect.stringMatching(/^\d+$/), name: 'Before' },
      secretKey: expect.stringMatching(/^sk_\w{49}$/),
      publicKey: expect.stringMatching(/^pk_\w{49}$/),
    })
    expect(isDatabaseRunning()).toBe(false)

    const { found: url } = await serve()
    const during = JSON.parse((await run(['projects', 'create', 'During', '--json'])).out)
    for (const { secretKey } of [JSON.parse(made.out), during]) {
      expect((await sendRaw(url, '/v1/persons', secretKey, {})).status).toBe(200)
    }
    const { projects } = JSON.parse((await run(['projects', 'list', '--json'])).out)
    expect(projects.map(({ name }: { name: string }) => name)).toEqual(['Before', 'During'])
  })

  test('a key is made, listed without its text, revoked at once or after an overlap; a public one is limited to origins, shows them, and is unlimited again', async () => {
    const { found: url } = await serve()
    const create = (kind: string) =>
      run(['keys', 'create', '--project', '1', '--kind', kind, '--name', 'a key', '--json'])
    const { key, text } = JSON.parse((await create('secret')).out)
    const second = JSON.parse((await create('secret')).out)
    const status = async (one: string) => (await sendRaw(url, '/v1/persons', one, {})).status
    expect([await status(text), await status(second.text)]).toEqual([200, 200])
    const listed = await run(['keys', 'list', '--project', '1', '--json'])
    expect(JSON.parse(listed.out).keys).toContainEqual(
      expect.objectContaining({ id: key.id, name: 'a key', last4: text.slice(-4) }),
    )
    expect(listed.out).not.toContain(text)
    expect((await run(['keys', 'revoke', key.id])).code).toBe(0)
    expect((await run(['keys', 'revoke', second.key.id, '--in', '24h'])).code).toBe(0)

    const { key: limited, text: publicText } = JSON.parse((await create('public')).out)
    const origins = (...words: string[]) =>
      run(['keys', 'origins', limited.id, ...words, '--project', '1'])
    const startFrom = async (origin: string) => {
      const path = `${url}/ingest/v1/start?key=${publicText}`
      return (await fetch(path, { method: 'POST', headers: { origin } })).status
    }
    expect((await origins()).out).toBe('Any origin.\n')
    const set = await origins('HTTPS://Shop.example:443', 'https://*.apps.example', '--json')
    expect(JSON.parse(set.out)).toEqual({
      id: limited.id,
      allowedOrigins: ['https://shop.example', 'https://*.apps.example'],
    })
    expect((await origins()).out).toBe('https://shop.example\nhttps://*.apps.example\n')
    expect(await startFrom('https://evil.example')).toBe(403)
    expect(await startFrom('https://shop.example')).toBe(200)
    expect(await startFrom('https://one.apps.example')).toBe(200)
    expect((await origins('--any')).out).toBe('Any origin.\n')
    // What a process knows of a key it believes for some seconds.
    await expect.poll(() => startFrom('https://evil.example'), { timeout: 20_000 }).toBe(200)
    await expect.poll(() => status(text), { timeout: 20_000 }).toBe(401)
    expect(await status(second.text)).toBe(200)

    const wrong = [['https://a.example/path'], ['a.example'], ['https://a.example', '--any']]
    for (const words of wrong) {
      const { code, out, err } = await origins(...words)
      expect([code, out], words.join(' ')).toEqual([2, ''])
      expect(err).toMatch(/^lethe: .+\n$/)
    }
    expect((await origins()).out).toBe('Any origin.\n')
  })

  onDatabase('called wrongly they say so in a line and end with 2', async ({ address }) => {
    const DATABASE_URL = urlOf(address)
    const id = '00000000-0000-4000-8000-000000000000'
    // A word, a value and an id that is nobody's; in the deep run all that there are.
    const few = [
      ['nonsense'],
      ['projects', 'create', ' '],
      ['keys', 'list', '--project', '99'],
      ['keys', 'create', '--project', '1', '--kind', 'golden', '--name', 'x'],
      ['keys', 'revoke', id],
    ]
    const others = [
      ['projects', 'nonsense'],
      ['projects', 'create'],
      ['projects', 'create', 'x'.repeat(201)],
      ['keys', 'list'],
      ['keys', 'list', '--project', 'x'],
      ['keys', 'origins', 'x'],
      ['keys', 'origins', 'x', '--project', '1'],
      ['keys', 'origins', id, '--project', '1'],
      ['keys', 'revoke', 'x'],
      ['keys', 'revoke', id, '--in', 'soon'],
    ]
    for (const words of byDepth(few, [...few, ...others])) {
      const { code, out, err } = await run(words, { DATABASE_URL })
      expect([code, out], words.join(' ')).toEqual([2, ''])
      expect(err, words.join(' ')).toMatch(/^lethe: .+\n$/)
    }
  })

  test('--help shows what there is', async () => {
    for (const [words, shown] of [
      [['--help'], 'projects'],
      [['keys', '--help'], 'revoke'],
      [['keys', 'revoke', '--help'], '--in'],
    ] as const) {
      const { code, out } = await run([...words])
      expect([code, out.includes(shown)]).toEqual([0, true])
    }
    const { code, out } = await run(['keys'])
    expect([code, out.includes('revoke')]).toEqual([2, true])
  })
})

describe('an outside database', () => {
  const url = (database: string) => urlOf({ ...inject('postgres'), database })

  test('is migrated and served; the embedded one is not started, and no project is created', async () => {
    rmSync(env.DATA_DIR, { recursive: true })
    const { client, end } = await connectOne({ ...inject('postgres'), database: 'postgres' })
    const name = `lethe_outside_${process.pid}`
    await client.query(`create database ${name} template template0 encoding 'UTF8'`)
    onTestFinished(async () => {
      await client.query(`drop database ${name} with (force)`)
      await end()
    })
    const service = await serve({ DATABASE_URL: url(name) })
    expect((await sendRaw(service.found, '/health/ready', null, {})).status).toBe(200)
    expect(existsSync(join(env.DATA_DIR, 'postgres'))).toBe(false)
    expect(await service.stop()).toBe(0)
    expect(service.output()).not.toMatch(/sk_/)
  })

  test('in another encoding, or out of reach, is refused in one line without the password', async () => {
    const { client, end } = await connectOne({ ...inject('postgres'), database: 'postgres' })
    const name = `lethe_ascii_${process.pid}`
    await client.query(
      `create database ${name} template template0 encoding 'SQL_ASCII' locale 'C' locale_provider 'libc'`,
    )
    for (const [DATABASE_URL, words] of [
      [url(name), /encoding SQL_ASCII.*UTF8/],
      [url('no_such_database'), /named in DATABASE_URL does not exist/],
      ['postgres://user:hunter2@127.0.0.1:1/x', /Nothing listens at 127.0.0.1:1/],
      ['mysql://user:hunter2@127.0.0.1/x', /DATABASE_URL must be/],
    ] as const) {
      const { code, err } = await run(['serve'], { DATABASE_URL, START_WAIT_SECONDS: '0' })
      expect([code, err.trim().split('\n').length], err).toEqual([1, 1])
      expect(err).toMatch(words)
      expect(err).not.toContain('hunter2')
    }
    await client.query(`drop database ${name}`)
    await end()
  })
})
