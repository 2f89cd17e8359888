import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { connectOne } from '../src/sql.ts'
import { sendRaw } from './fixtures.ts'

const lethe = join(import.meta.dirname, '../bin/lethe.ts')

let folder: string
let started: ChildProcess[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lethe-command-'))
  started = []
})
afterEach(async () => {
  for (const child of started) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGTERM')
    await new Promise((resolve) => child.on('exit', resolve))
  }
  rmSync(folder, { recursive: true, force: true })
})

const environment = (settings: Record<string, string>) => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  DATA_DIR: join(folder, 'data'),
  PORT: '0',
  ...settings,
})

/** Runs the command to its end. */
function run(words: string[], settings: Record<string, string> = {}) {
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(
      process.execPath,
      [lethe, ...words],
      { env: environment(settings) },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
      },
    )
  })
}

/** Starts the service and waits until it has greeted. */
async function serve(settings: Record<string, string> = {}) {
  const child = spawn(process.execPath, [lethe, 'serve'], { env: environment(settings) })
  started.push(child)
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    err += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      const found = /listens on (http:\S+)[\s\S]*API page/.exec(out)
      if (found) resolve(found[1] as string)
    })
    void ended.then((code) => reject(new Error(`serve ended with ${code}: ${err}`)))
  })
  return { child, url, ended, out: () => out, err: () => err }
}

describe('lethe serve on the embedded database', () => {
  test('greets with a first project whose keys work, once', async () => {
    const first = await serve()
    await expect.poll(() => first.out()).toMatch(/Try it:[\s\S]*curl/)
    const [key = ''] = /sk_\w+/.exec(first.out()) ?? []
    const answer = await sendRaw(first.url, '/v1/persons', key, {
      method: 'POST',
      body: { externalId: 'ada' },
    })
    expect(answer.status).toBe(201)
    first.child.kill('SIGINT')
    expect(await first.ended).toBe(0)

    const second = await serve()
    expect((await sendRaw(second.url, '/v1/persons/ada', key, {})).status).toBe(200)
    expect(second.out()).not.toMatch(/sk_|pk_/)
    expect(first.err() + second.err()).toBe('')
  })

  test('SIGTERM lets a request in flight finish, then stops the database', async () => {
    const { child, url, ended, out } = await serve()
    await expect.poll(out).toMatch(/sk_\w+/)
    const [key = ''] = /sk_\w+/.exec(out()) ?? []
    const { request } = await import('node:http')
    const answered = new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(`${url}/v1/persons`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': 20,
        },
      })
      outgoing.on('response', (response) => resolve(response.statusCode))
      outgoing.on('error', reject)
      outgoing.write('{"externalId"', () => {
        child.kill('SIGTERM')
        setTimeout(() => outgoing.end(':"ada"}'.padEnd(7)), 500)
      })
    })
    expect(await answered).toBe(201)
    expect(await ended).toBe(0)
    expect(existsSync(join(folder, 'data/postgres/postmaster.pid'))).toBe(false)
  })

  test('SIGTERM ends it at once, also when it has read a large body on a thread of its own', async () => {
    const { child, url, ended, out } = await serve()
    await expect.poll(out).toMatch(/sk_\w+/)
    const [key = ''] = /sk_\w+/.exec(out()) ?? []
    const answer = await sendRaw(url, '/v1/persons', key, {
      method: 'POST',
      body: { externalId: 'ada', properties: { long: 'x'.repeat(100_000) } },
    })
    expect(answer.status).toBe(201)
    child.kill('SIGTERM')
    // 1 would say that it was cut off, after all the time that requests in flight may take.
    expect(await ended).toBe(0)
  })

  test('a second service on the same folder is refused in one line', async () => {
    await serve()
    const { code, err } = await run(['serve'])
    expect([code, err.trim().split('\n')]).toEqual([
      1,
      [expect.stringMatching(/^lethe: .*data folder/)],
    ])
  })

  test('a port that is taken is a line, and the database is not left running', async () => {
    const server = createServer()
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    )
    const { code, err } = await run(['serve'], { PORT: String(port) })
    server.close()
    expect([code, err]).toEqual([1, expect.stringMatching(/^lethe: The port is taken.*\n$/)])
    expect(existsSync(join(folder, 'data/postgres/postmaster.pid'))).toBe(false)
  })

  test('says in a line which master key is missing, when its file was lost', async () => {
    const first = await serve()
    first.child.kill('SIGTERM')
    await first.ended
    const file = join(folder, 'data/keys/master-key')
    const [id] = readFileSync(file, 'utf8').split(':')
    rmSync(file)
    const { code, err } = await run(['serve'])
    expect(code).toBe(1)
    expect(err).toMatch(new RegExp(`^lethe: There is no master key of the id ${id}\\..+\\n$`))
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
    expect(existsSync(join(folder, 'data/postgres/postmaster.pid'))).toBe(false)

    const { url } = await serve()
    const during = JSON.parse((await run(['projects', 'create', 'During', '--json'])).out)
    for (const { secretKey } of [JSON.parse(made.out), during]) {
      expect((await sendRaw(url, '/v1/persons', secretKey, {})).status).toBe(200)
    }
    const { projects } = JSON.parse((await run(['projects', 'list', '--json'])).out)
    expect(projects.map(({ name }: { name: string }) => name)).toEqual(['Before', 'During'])
  })

  test('a key is made, listed without its text, revoked at once or after an overlap', async () => {
    const { url } = await serve()
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
    await expect.poll(() => status(text), { timeout: 20_000 }).toBe(401)
    expect(await status(second.text)).toBe(200)
  })

  test('a public key is held to origins, shows them, and is set free again', async () => {
    const { url } = await serve()
    const made = await run([
      'keys',
      'create',
      '--project',
      '1',
      '--kind',
      'public',
      '--name',
      'x',
      '--json',
    ])
    const { key, text } = JSON.parse(made.out)
    const origins = (...words: string[]) =>
      run(['keys', 'origins', key.id, ...words, '--project', '1'])
    const startFrom = async (origin: string) => {
      const path = `${url}/ingest/v1/start?key=${text}`
      return (await fetch(path, { method: 'POST', headers: { origin } })).status
    }
    expect((await origins()).out).toBe('Any origin.\n')
    const set = await origins('HTTPS://Shop.example:443', 'https://*.apps.example', '--json')
    expect(JSON.parse(set.out)).toEqual({
      id: key.id,
      allowedOrigins: ['https://shop.example', 'https://*.apps.example'],
    })
    expect((await origins()).out).toBe('https://shop.example\nhttps://*.apps.example\n')
    expect(await startFrom('https://evil.example')).toBe(403)
    expect(await startFrom('https://shop.example')).toBe(200)
    expect(await startFrom('https://one.apps.example')).toBe(200)
    expect((await origins('--any')).out).toBe('Any origin.\n')
    // What a process knows of a key it believes for some seconds.
    await expect.poll(() => startFrom('https://evil.example'), { timeout: 20_000 }).toBe(200)

    const wrong = [['https://a.example/path'], ['a.example'], ['https://a.example', '--any']]
    for (const words of wrong) {
      const { code, out, err } = await origins(...words)
      expect([code, out], words.join(' ')).toEqual([2, ''])
      expect(err).toMatch(/^lethe: .+\n$/)
    }
    expect((await origins()).out).toBe('Any origin.\n')
  })

  test('called wrongly they say so in a line and end with 2', async () => {
    await run(['migrate'])
    for (const words of [
      ['nonsense'],
      ['projects', 'nonsense'],
      ['projects', 'create'],
      ['projects', 'create', ' '],
      ['projects', 'create', 'x'.repeat(201)],
      ['keys', 'list'],
      ['keys', 'list', '--project', '99'],
      ['keys', 'list', '--project', 'x'],
      ['keys', 'create', '--project', '1', '--kind', 'golden', '--name', 'x'],
      ['keys', 'origins', 'x'],
      ['keys', 'origins', 'x', '--project', '1'],
      ['keys', 'origins', '00000000-0000-4000-8000-000000000000', '--project', '1'],
      ['keys', 'revoke', 'x'],
      ['keys', 'revoke', '00000000-0000-4000-8000-000000000000'],
      ['keys', 'revoke', '00000000-0000-4000-8000-000000000000', '--in', 'soon'],
    ]) {
      const { code, out, err } = await run(words)
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
  })
})

describe('an outside database', () => {
  const url = (database: string) => {
    const { host, port, user } = inject('postgres')
    return `postgres://${user}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
  }

  test('is migrated and served; the embedded one stays away, and no project is made', async () => {
    const { client, end } = await connectOne({ ...inject('postgres'), database: 'postgres' })
    const name = `lethe_outside_${process.pid}`
    await client.query(`create database ${name} template template0 encoding 'UTF8'`)
    const service = await serve({ DATABASE_URL: url(name) })
    expect((await sendRaw(service.url, '/health/ready', null, {})).status).toBe(200)
    expect(service.out()).not.toMatch(/sk_/)
    expect(existsSync(join(folder, 'data/postgres'))).toBe(false)
    service.child.kill('SIGTERM')
    expect(await service.ended).toBe(0)
    await client.query(`drop database ${name}`)
    await end()
  })

  test('in another encoding, or out of reach, is refused in one line without the password', async () => {
    const { client, end } = await connectOne({ ...inject('postgres'), database: 'postgres' })
    const name = `lethe_ascii_${process.pid}`
    await client.query(
      `create database ${name} template template0 encoding 'SQL_ASCII' locale 'C' locale_provider 'libc'`,
    )
    for (const [DATABASE_URL, words] of [
      [url(name), /encoding SQL_ASCII.*UTF8/],
      [url('no_such_database'), /cannot be reached/],
      ['postgres://user:hunter2@127.0.0.1:1/x', /cannot be reached/],
      ['mysql://user:hunter2@127.0.0.1/x', /DATABASE_URL has to be/],
    ] as const) {
      const { code, err } = await run(['serve'], { DATABASE_URL })
      expect([code, err.trim().split('\n').length], err).toEqual([1, 1])
      expect(err).toMatch(words)
      expect(err).not.toContain('hunter2')
    }
    await client.query(`drop database ${name}`)
    await end()
  })
})
