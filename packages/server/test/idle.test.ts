import { connect as connectSocket, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { DbAddress } from '../src/sql.ts'
import { test } from './fixtures.ts'
import { greeting, newEnvironment, startLethe } from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'

/** Stands between a process and PostgreSQL, and counts its connections and statements. */
async function startCounter(database: DbAddress) {
  const sockets = new Set<Socket>()
  const counted = { statements: 0, most: 0 }
  const server = createServer((client) => {
    const upstream = database.host.startsWith('/')
      ? connectSocket(join(database.host, `.s.PGSQL.${database.port}`))
      : connectSocket(database.port, database.host)
    sockets.add(client)
    counted.most = Math.max(counted.most, sockets.size)
    const end = () => {
      sockets.delete(client)
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
    let rest = Buffer.alloc(0)
    let hasStarted = false
    client.on('data', (bytes: Buffer) => {
      upstream.write(bytes)
      rest = Buffer.concat([rest, bytes])
      // The first messages have no type: the start, and before it perhaps a question for TLS.
      for (;;) {
        const head = hasStarted ? 1 : 0
        if (rest.length < head + 4) return
        const length = head + rest.readInt32BE(head)
        if (rest.length < length) return
        if (hasStarted && /[EQ]/.test(String.fromCharCode(rest[0] as number))) counted.statements++
        if (!hasStarted && length > 8) hasStarted = true
        rest = rest.subarray(length)
      }
    })
    upstream.on('data', (bytes) => client.write(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return { counted, address: { ...database, host: '127.0.0.1', port } }
}

/** How long an idle service is counted. */
const seconds = byDepth(10, 20)

test('an idle service sends at most a statement in two seconds, and a busy one has 12 connections', async ({
  address,
  project,
}) => {
  const counter = await startCounter(address)
  const env = await newEnvironment(counter.address)
  const { found: url, output } = await startLethe(['serve'], env, greeting)
  // The greeting comes before the worker's first look at everything.
  do {
    counter.counted.statements = 0
    await sleep(1_000)
  } while (counter.counted.statements > 0)
  await sleep(seconds * 1_000)
  expect(counter.counted.statements).toBeLessThanOrEqual(seconds / 2)

  const headers = {
    authorization: `Bearer ${project.secretKey}`,
    'content-type': 'application/json',
  }
  const statusOf = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(url + path, { ...init, headers })
    await answer.arrayBuffer()
    return answer.status
  }
  const post = (n: number) =>
    statusOf('/v1/persons', {
      method: 'POST',
      body: JSON.stringify({ externalId: `p${n}`, properties: { pad: 'x'.repeat(n * 300) } }),
    })
  const signIn = () =>
    fetch(`${url}/dashboard/v1/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url },
      body: JSON.stringify({ email: 'ada@example.com', password: 'a wrong password' }),
    }).then((answer) => answer.arrayBuffer())
  const statuses = await Promise.all([
    ...Array.from({ length: 100 }, (_, n) => post(n)),
    ...Array.from({ length: 30 }, () => statusOf('/v1/persons?limit=100')),
    ...Array.from({ length: 30 }, () => statusOf('/v1/persons?search=p1')),
  ])
  expect(new Set(statuses)).toEqual(new Set([200, 201]))
  await Promise.all([
    ...Array.from({ length: 20 }, signIn),
    ...Array.from({ length: 100 }, (_, n) => statusOf(`/v1/persons/p${n}`, { method: 'DELETE' })),
  ])
  const open = '/v1/deletion-jobs?status='
  for (const status of ['pending', 'running']) {
    while (!(await (await fetch(url + open + status, { headers })).text()).includes('"jobs":[]')) {
      await sleep(50)
    }
  }
  expect(counter.counted.most, output()).toBeLessThanOrEqual(12)
}, 120_000)
