import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { postmasterOf } from '../src/embedded/postmaster.ts'
import { addressesOf } from '../src/embedded/roles.ts'
import { connectOne } from '../src/sql.ts'
import {
  type Environment,
  eventually,
  greeting,
  newEnvironment,
  spawnLethe,
  startLethe,
  workerGreeting,
} from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'

const root = join(import.meta.dirname, '../../..')

const folderOf = (env: Environment) => join(env.DATA_DIR as string, 'postgres')

/** Resolves when neither the process nor its database runs; the limit of the test is its limit. */
async function ended(child: ChildProcess, env: Environment): Promise<void> {
  await eventually(async () => child.exitCode !== null || child.signalCode !== null)
  await eventually(async () => postmasterOf(folderOf(env)) === undefined)
}

/** A start of a busy machine takes its time; what a signal may take is seconds. */
const limit = { timeout: 120_000 }

describe('a signal to what runs', () => {
  // That SIGTERM does is held by command.test.ts.
  const few: NodeJS.Signals[] = ['SIGINT', 'SIGHUP', 'SIGKILL']
  const all = byDepth<NodeJS.Signals[]>(few, [...few, 'SIGTERM', 'SIGQUIT'])
  test.each(all)('%s ends the service, and its database', limit, async (signal) => {
    const env = await newEnvironment()
    const { child } = await startLethe(['serve'], env, greeting)
    expect(postmasterOf(folderOf(env))).toBeDefined()
    child.kill(signal)
    await ended(child, env)
    // What is orderly ends with 0.
    if (/TERM|INT|HUP/.test(signal)) expect(child.exitCode).toBe(0)
  })

  const toNpm = byDepth<NodeJS.Signals[]>(['SIGTERM'], ['SIGTERM', 'SIGHUP'])
  test.each(toNpm)('%s to npm ends what `npm start` started', limit, async (signal) => {
    const env = await newEnvironment()
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const home = join(env.DATA_DIR, '..')
    writeFileSync(join(home, 'package.json'), JSON.stringify({ scripts: { start: scripts.start } }))
    const bin = join(root, 'node_modules/.bin')
    const npm = spawn('npm', ['start'], {
      cwd: home,
      env: { ...env, PATH: `${bin}:${env.PATH}` },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    onTestFinished(() => {
      npm.kill('SIGKILL')
    })
    let out = ''
    npm.stdout.on('data', (bytes) => {
      out += bytes
    })
    const url = (await eventually(async () => greeting.exec(out) ?? undefined))[1] as string
    npm.kill(signal)
    await ended(npm, env)
    await expect(fetch(url)).rejects.toThrow('fetch failed')
  })
})

describe('a signal to a start', () => {
  const moments: [string, (env: Environment) => boolean][] = [
    ['that makes the database', (env) => namesIn(env).some((name) => /^postgres\.new/.test(name))],
    ['that starts the database', (env) => existsSync(join(folderOf(env), 'postmaster.pid'))],
    ['that opens the storage', (env) => namesIn(env).includes('keys')],
  ]
  test.each(moments)('%s ends it, and its database', limit, async (_name, isThere) => {
    const isFirstStart = isThere === moments[0]?.[1]
    const signal = isFirstStart ? 'SIGKILL' : 'SIGTERM'
    const env = await newEnvironment(undefined, { MASTER_KEY: '' }, { isFirstStart })
    const { child } = spawnLethe(['serve'], env)
    await eventually(async () => isThere(env))
    child.kill(signal)
    await ended(child, env)
  })
})

function namesIn(env: Environment): string[] {
  const folder = env.DATA_DIR as string
  return existsSync(folder) ? readdirSync(folder) : []
}

test('SIGTERM ends a start that waits for a database that does not respond', limit, async () => {
  const env = await newEnvironment()
  const first = await startLethe(['serve'], env, greeting)
  const server = postmasterOf(folderOf(env)) as number
  onTestFinished(() => {
    if (postmasterOf(folderOf(env)) === server) process.kill(server, 'SIGKILL')
  })
  process.kill(server, 'SIGSTOP')
  await first.signal('SIGKILL')
  const second = spawnLethe(['serve'], env)
  // By then it has found the server, and waits.
  await eventually(async () => readFileSync(`/proc/${second.child.pid}/cmdline`).length > 0)
  second.child.kill('SIGTERM')
  const [code] = second.child.exitCode === null ? await once(second.child, 'exit') : []
  expect([0, null, undefined]).toContain(code)
  process.kill(server, 'SIGCONT')
  await ended(second.child, env)
})

test('a worker ends at a signal as a service does', limit, async () => {
  const env = await newEnvironment()
  const { child } = await startLethe(['worker'], env, workerGreeting)
  child.kill('SIGHUP')
  await ended(child, env)
  expect(child.exitCode).toBe(0)
})

test('a command that is killed does not stop the database of others', limit, async () => {
  const env = await newEnvironment()
  const first = await startLethe(['worker'], env, workerGreeting)
  const service = await startLethe(['serve'], env, greeting)
  await first.signal('SIGKILL')
  const server = postmasterOf(folderOf(env))
  // The watcher acts at once when it acts; a response of the database comes after that.
  expect((await fetch(`${service.found}/health/ready`)).status).toBe(200)
  expect(postmasterOf(folderOf(env))).toBe(server)
  expect(await service.stop()).toBe(0)
  expect(postmasterOf(folderOf(env))).toBeUndefined()
})

test('a start that fails after it listens leaves no port and no process', limit, async () => {
  const env = await newEnvironment()
  const before = await startLethe(['serve'], env, greeting)
  // What only a start asks of the database, when it listens already.
  const { client, end } = await connectOne(addressesOf(folderOf(env), folderOf(env)).superuser)
  await client.query('alter table auth.links rename to elsewhere')
  await end()
  await before.stop()
  const port = await freePort()
  const { child, output } = spawnLethe(['serve'], { ...env, PORT: String(port) })
  await ended(child, env)
  expect(child.exitCode, output()).toBe(1)
  await expect(fetch(`http://127.0.0.1:${port}/health/live`)).rejects.toThrow('fetch failed')
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
