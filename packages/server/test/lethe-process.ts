import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject, onTestFinished } from 'vitest'
import type { DbAddress } from '../src/sql.ts'
import { newDataFolder } from './data-folder.ts'

export type Environment = Record<string, string>

/** The whole program, running. All it says is kept in a file. */
export interface LetheProcess {
  child: ChildProcess
  /** What the awaited line held in its first group. */
  found: string
  output(): string
  /** Of its standard error alone. */
  complaints(): string
  /** Sends a signal; one that ends the process is waited for. */
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void>
  /** Ends it as an operator does. Returns the exit code. */
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<number | null>
}

export const greeting = /Lethe listens on (\S+)/
export const workerGreeting = /works on deletion jobs/

/**
 * Settings over a folder of this test's own: a database that runs already, or a built-in one, which
 * is initialised already if this is no first start. The folder `temporary` beside the data folder is where the process puts temporary files, if any.
 */
export async function newEnvironment(
  address?: DbAddress,
  settings: Environment = {},
  { isFirstStart = false } = {},
): Promise<Environment & { DATA_DIR: string; TMPDIR: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-process-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const temporary = await mkdtemp(join(folder, 'temporary-'))
  const isBuiltIn = !address && settings.DATABASE_URL === undefined
  if (isBuiltIn && !isFirstStart) newDataFolder(join(folder, 'data'))
  return {
    PATH: process.env.PATH as string,
    HOME: process.env.HOME as string,
    TMPDIR: temporary,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE as string,
    PORT: '0',
    MASTER_KEY: `k1:${randomBytes(32).toString('base64')}`,
    DATA_DIR: join(folder, 'data'),
    ...(address && { DATABASE_URL: urlOf(address) }),
    ...settings,
  }
}

export function urlOf({ user, password, port, database, host }: DbAddress): string {
  const credentials = [user, password ?? ''].map(encodeURIComponent).join(':')
  return `postgres://${credentials}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
}

/** Runs a command to its end. */
export function runLethe(words: string[], env: Environment) {
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [inject('command'), ...words], { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
}

/** What a command with `--json` printed at last; lines before it show the progress. */
export const resultOf = ({ out }: { out: string }) =>
  JSON.parse(out.trim().split('\n').at(-1) ?? '')

/** Starts a command that stays, and waits for a line of its output. It ends with the test. */
export async function startLethe(
  words: string[],
  env: Environment,
  line: RegExp,
  nodeFlags: string[] = [],
): Promise<LetheProcess> {
  const started = spawnLethe(words, env, nodeFlags)
  for (;;) {
    const match = line.exec(started.output())
    if (match) return { ...started, found: match[1] ?? '' }
    if (hasEnded(started.child)) {
      throw new Error(`It ended with ${started.child.exitCode}: ${started.output()}`)
    }
    await sleep(10)
  }
}

/** Starts a command and does not wait for anything. It ends with the test. */
export function spawnLethe(
  words: string[],
  env: Environment,
  nodeFlags: string[] = [],
): LetheProcess {
  const child = spawn(process.execPath, [...nodeFlags, inject('command'), ...words], { env })
  const file = join(env.DATA_DIR as string, '..', `${words.join('-')}-${child.pid}.log`)
  writeFileSync(file, '')
  let complaints = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => appendFileSync(file, bytes))
  }
  child.stderr.on('data', (bytes) => {
    complaints += bytes
  })
  onTestFinished(async () => {
    // One that was stopped by a signal hears of no other until it goes on.
    child.kill('SIGCONT')
    await stop(child)
  })
  return {
    child,
    found: '',
    output: () => readFileSync(file, 'utf8'),
    complaints: () => complaints,
    async signal(name) {
      const exit = hasEnded(child) ? undefined : once(child, 'exit')
      child.kill(name)
      if (name === 'SIGKILL') await exit
    },
    stop: (signal) => stop(child, signal),
  }
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

async function stop(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<number | null> {
  if (!hasEnded(child)) {
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }
  return child.exitCode
}

/**
 * Asks again until it is so; the limit of the test is the limit of this. It ends by itself long after
 * that, as vitest does not end what a test that was given up still does. It asks less often the longer
 * it takes, because each question is work for what it waits for.
 */
export async function eventually<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  const end = Date.now() + 1_200_000
  for (let pause = 10; Date.now() < end; pause = Math.min(pause * 1.1, 150)) {
    const answer = await ask()
    if (answer) return answer
    await sleep(pause)
  }
  throw new Error('It did not become so in 20 minutes.')
}
