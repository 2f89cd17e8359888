import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { DbAddress } from '../packages/server/src/sql.ts'

export interface Load {
  requestsPerSecond: number
  p50: number
  p99: number
  errors: number
}

/** What wrk sends: a URL and a Lua script that may create each request. */
export interface Requests {
  url: string
  lua: string
}

/** Sends requests with wrk for some seconds over `connections` connections. */
export function load(requests: Requests, connections = 32, seconds = 5): Load {
  const { words, loadOf } = wrk(requests, connections, seconds)
  return loadOf(execFileSync('wrk', words, { encoding: 'utf8' }))
}

/** The same without blocking this process. */
export async function loadMeanwhile(
  requests: Requests,
  connections: number,
  seconds: number,
): Promise<Load> {
  const { words, loadOf } = wrk(requests, connections, seconds)
  const { stdout } = await promisify(execFile)('wrk', words)
  return loadOf(stdout)
}

function wrk({ url, lua }: Requests, connections: number, seconds: number) {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-wrk-'))
  const script = join(folder, 'requests.lua')
  writeFileSync(
    script,
    `${lua}
done = function(summary, latency, requests)
  io.write(string.format("RESULT %f %f %f %d\\n", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.status + summary.errors.read + summary.errors.timeout))
end`,
  )
  const places = ['-t', '1', '-c', String(connections), '-d', `${seconds}s`]
  return {
    // By default wrk counts a response after 2 s as an error, which a busy disk can cause.
    words: [...places, '--timeout', '30s', '-s', script, url],
    loadOf(out: string): Load {
      rmSync(folder, { recursive: true })
      const [, rps, p50, p99, errors] = /RESULT (\S+) (\S+) (\S+) (\S+)/.exec(out) ?? []
      return {
        requestsPerSecond: Number(rps),
        p50: Number(p50),
        p99: Number(p99),
        errors: Number(errors),
      }
    },
  }
}

/** The arguments for `node` that run the service of a checkout, with the options of its shebang. */
export function letheWordsOf(root: string): string[] {
  const program = join(root, 'packages/server/bin/lethe.ts')
  return [...(/^#!.*/.exec(readFileSync(program, 'utf8'))?.[0].match(/--\S+/g) ?? []), program]
}

export const letheWords = letheWordsOf(join(import.meta.dirname, '..'))

/** Starts a Node program and waits until its output matches the pattern. */
export function start(
  words: string[],
  pattern: RegExp,
  environment: Record<string, string> = {},
  node = process.execPath,
): Promise<{ found: string; child: ChildProcess }> {
  const child = spawn(node, words, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (chunk) => {
      text += chunk
      const match = pattern.exec(text)
      if (match) resolve({ found: match[1] ?? match[0], child })
    })
    child.on('exit', (code) => reject(new Error(`${words.join(' ')} ended with ${code}`)))
  })
}

export function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

export const median = (numbers: number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN

/**
 * Runs the contenders in turns, several rounds, so that other load on the machine affects all of
 * them. Returns the median of each. `restart` runs before each round: one process of Node can be 10 %
 * faster or slower than the next of the same program, for its whole life.
 */
export async function inTurns(
  contenders: Record<string, () => Load | Promise<Load>>,
  rounds: number,
  restart?: () => Promise<void>,
): Promise<Record<string, Load>> {
  const loads: Record<string, Load[]> = {}
  for (let round = 0; round < rounds; round++) {
    await restart?.()
    for (const [name, run] of Object.entries(contenders)) {
      const measured = await run()
      if (measured.errors > 0) throw new Error(`${name}: ${measured.errors} requests failed`)
      loads[name] = [...(loads[name] ?? []), measured]
    }
  }
  return Object.fromEntries(
    Object.entries(loads).map(([name, all]) => [
      name,
      {
        requestsPerSecond: median(all.map((one) => one.requestsPerSecond)),
        p50: median(all.map((one) => one.p50)),
        p99: median(all.map((one) => one.p99)),
        errors: 0,
      },
    ]),
  )
}

/** Returns the resident memory of a process, in MB. */
export function residentMegabytes(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024
}

/** Returns a port that is free on the loopback address. */
export function freePort(): Promise<number> {
  const server = createServer()
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

/** Returns the URL of an embedded database, for a service in another process. */
export function urlOf({ host, port, user, password = '', database }: DbAddress): string {
  const secret = encodeURIComponent(password)
  return `postgres://${user}:${secret}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
}

interface TraceEvent {
  name: string
  /** `X` is a complete event; others are only a start or an end. */
  ph: string
  pid: number
  tid: number
  dur: number
  tdur?: number
  args: { name?: string }
}

/** Returns the tasks of the page's main thread in a trace of Chromium, with times in microseconds. */
export function tasksOf(trace: Buffer): TraceEvent[] {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] }
  const threads = traceEvents.filter(
    ({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain',
  )
  const isMain = ({ pid, tid }: TraceEvent) =>
    threads.some((thread) => thread.pid === pid && thread.tid === tid)
  const isTask = ({ name, ph, tdur }: TraceEvent) =>
    name === 'ThreadControllerImpl::RunTask' && ph === 'X' && tdur !== undefined
  return traceEvents.filter((each) => isTask(each) && isMain(each))
}
