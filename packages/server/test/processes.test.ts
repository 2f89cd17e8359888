import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { blockOf } from './documents.ts'
import { test } from './fixtures.ts'
import { eventually, greeting, newEnvironment, runLethe, startLethe } from './lethe-process.ts'

/** The processes that this one has started (proc(5)), the built-in database apart. */
function processesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  return children
    .map(Number)
    .filter((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('--processes'))
}

const isRunning = (pid: number) => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** As docs/scaling.md says it. */
const [, ...words] = blockOf('docs/scaling.md', 'sh processes').trim().split(' ')

describe('lethe serve --processes', () => {
  test('serves from several processes with one worker, sums their metrics, replaces one that dies, and ends all', {
    timeout: 120_000,
  }, async () => {
    const env = await newEnvironment()
    const service = await startLethe(words, env, /listens on (\S+)[\s\S]*DELETE/)
    const url = service.found
    const [, key] = /secret key +(sk_\w+)/.exec(service.output()) ?? []
    const headers = { authorization: `Bearer ${key}`, connection: 'close' }
    const first = processesOf(service.child.pid as number)
    expect(first).toHaveLength(2)

    const body = JSON.stringify({ externalId: 'ada', properties: {} })
    const json = { ...headers, 'content-type': 'application/json' }
    const post = await fetch(`${url}/v1/persons`, { method: 'POST', headers: json, body })
    expect(post.status).toBe(201)
    for (let i = 0; i < 20; i++) {
      expect((await fetch(`${url}/v1/persons/ada`, { headers })).status).toBe(200)
    }
    const metrics = await (await fetch(`${url}/metrics`, { headers })).text()
    const [, served] =
      /_count\{method="GET",route="\/v1\/persons\/:externalId",status="200"\} (\d+)/.exec(
        metrics,
      ) ?? []
    expect(served, 'over both of them').toBe('20')
    expect(metrics, 'what the database says is there once').toContain('\nlethe_database_up 1\n')

    const deleted = await fetch(`${url}/v1/persons/ada`, { method: 'DELETE', headers })
    const { job } = (await deleted.json()) as { job: { id: string } }
    await eventually(async () => {
      const answer = await fetch(`${url}/v1/deletion-jobs/${job.id}`, { headers })
      return ((await answer.json()) as { job: { status: string } }).job.status === 'completed'
    })

    process.kill(first[0] as number, 'SIGKILL')
    await eventually(async () => {
      const now = processesOf(service.child.pid as number)
      return now.length === 2 && !now.includes(first[0] as number)
    })
    expect((await fetch(`${url}/v1/persons`, { headers })).status).toBe(200)
    const all = processesOf(service.child.pid as number)
    expect(await service.stop()).toBe(0)
    expect(all.filter(isRunning)).toEqual([])
    expect(service.complaints()).toBe('')
  })

  test('refuses more processes than the database has connections for, and invalid numbers', {
    timeout: 60_000,
  }, async () => {
    const env = await newEnvironment()
    const many = await runLethe(['serve', '--processes', '40'], env)
    expect(many).toMatchObject({ code: 2, err: expect.stringContaining('40 processes need up to') })
    for (const wrong of ['0', '-1', 'two', '65']) {
      const refused = await runLethe(['serve', `--processes=${wrong}`], env)
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('from 1 to 64') })
    }
  })

  test('ends with its supervisor, also when that is killed', { timeout: 60_000 }, async ({
    address,
  }) => {
    const service = await startLethe(words, await newEnvironment(address), greeting)
    const all = processesOf(service.child.pid as number)
    expect(all).toHaveLength(2)
    await service.signal('SIGKILL')
    await eventually(async () => !all.some(isRunning))
  })
})
