import { connect, type Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { describe, expect } from 'vitest'
import { arrivalLimits } from '../src/http/arrivals.ts'
import { pacing } from '../src/http/pace.ts'
import { newKeyText } from '../src/projects/key-text.ts'
import { startService } from './fixtures.ts'
import {
  type ChunkQuery,
  type IngestService,
  plainEvents,
  type Started,
  startIngesting,
  test,
} from './recordings-fixtures.ts'

const largeChunk = plainEvents(20_000)
  .slice(0, 400_000)
  .replace(/[^\n]*$/, '')

interface HalfSent {
  socket: Socket
  /** All that came back, once the server has closed. */
  answer: Promise<string>
}

/** Announces a chunk of `announced` bytes and sends only `sent` of them. */
function halfSent(
  { url }: IngestService,
  key: string,
  { browserId, sessionId, number = 0 }: ChunkQuery,
  { announced = 1_000_000, sent = 10 } = {},
): HalfSent {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const query = `key=${key}&browser=${browserId}&session=${sessionId}&tab=t&number=${number}`
  socket.write(
    `POST /ingest/v1/chunks?${query} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${announced}\r\n\r\n${'{'.repeat(sent)}`,
  )
  let received = ''
  const answer = new Promise<string>((resolve) => {
    socket.on('data', (part) => {
      received += part
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
  })
  return { socket, answer }
}

/** Until each has been written; the service reads what was written before a later request. */
async function untilAllArrived(all: readonly HalfSent[]): Promise<void> {
  await Promise.all(
    all.map(
      ({ socket }) =>
        new Promise<void>((resolve, reject) => {
          if (socket.bytesWritten > 0 && !socket.connecting) resolve()
          socket.once('ready', () => resolve())
          socket.once('error', reject)
        }),
    ),
  )
}

/** A service that gives a body a tenth of a second to arrive at the least rate. */
const startImpatient = (...[recordings, address, project]: Parameters<typeof startIngesting>) =>
  startIngesting(recordings, address, project, {
    arrivalLimits: { ...arrivalLimits, graceSeconds: 0.1 },
  })

describe('uploads that are half sent', () => {
  test('block no other client, at the same address or another', async ({ ingesting, project }) => {
    const place = await ingesting.start()
    const all = Array.from({ length: 300 }, () => halfSent(ingesting, project.publicKey, place))
    await untilAllArrived(all)
    for (let number = 0; number < 5; number++) {
      expect((await ingesting.chunk({ ...place, number })).status).toBe(200)
    }
    for (const { socket } of all) socket.destroy()
  })

  test('release all they held when their clients leave, at any moment', async ({
    ingesting,
    project,
  }) => {
    const place = await ingesting.start()
    // More than may be stored at one time, of one address and of all.
    for (let round = 0; round < 10; round++) {
      const all = Array.from({ length: 40 }, () =>
        halfSent(ingesting, project.publicKey, place, { announced: 10, sent: 10 }),
      )
      await untilAllArrived(all)
      for (const { socket } of all) socket.destroy()
    }
    await expect.poll(async () => (await ingesting.chunk(place)).status).toBe(200)
  })

  test('are cut off if they are too slow, and the SDK sends them again', async ({
    recordings,
    address,
    project,
  }) => {
    const service = await startImpatient(recordings, address, project)
    const place = await service.start()
    const { answer } = halfSent(service, project.publicKey, place)
    const text = await answer
    expect(text).toMatch(/^HTTP\/1.1 408 /)
    expect(bodyOf(text)).toMatchObject({ error: { code: 'request_timeout' }, next: 'retry' })
    await service.close()
  })

  test('are cut off few at a time if many are too slow, and others are served in between', async ({
    recordings,
    address,
    project,
  }) => {
    const service = await startImpatient(recordings, address, project)
    const place = await service.start()
    const slow = Array.from({ length: 40 }, () => halfSent(service, project.publicKey, place))
    let ended = 0
    const statuses = slow.map(async ({ answer }) => {
      const text = await answer
      ended += 1
      return text.slice(0, 13)
    })
    await Promise.race(statuses)
    expect((await service.send('/health/live')).status).toBe(200)
    expect(ended).toBeLessThan(slow.length)
    expect(new Set(await Promise.all(statuses))).toEqual(new Set(['HTTP/1.1 408 ']))
    await service.close()
  })

  test('are cut off if they take too much memory: the oldest of the network that holds the most', async ({
    recordings,
    address,
    project,
  }) => {
    const service = await startIngesting(recordings, address, project, {
      arrivalLimits: { ...arrivalLimits, bytesPerNetworkMaximum: 1_000_000 },
    })
    const place: Started = await service.start()
    const sent = 300_000
    const first = halfSent(service, project.publicKey, place, { sent })
    await untilAllArrived([first])
    const others = Array.from({ length: 5 }, () =>
      halfSent(service, project.publicKey, place, { sent }),
    )
    const text = await Promise.race([first, ...others].map(({ answer }) => answer))
    expect(text).toMatch(/^HTTP\/1.1 503 /)
    expect(bodyOf(text)).toMatchObject({ error: { code: 'unavailable' }, next: 'retry' })
    expect((await service.chunk(place)).status).toBe(200)
    for (const { socket } of [first, ...others]) socket.destroy()
    await service.close()
  })
})

describe('what one network sends beyond its pace', () => {
  const of = (ip: string, isKnown = false) => ({ ip, isKnown }) as FastifyRequest

  test('waits, and neither another network nor a backend does', () => {
    const pace = pacing({ requestsPerSecond: 1, burstRequests: 5 })
    expect(pace(of('10.0.0.1'), 5)).toBe(0)
    // Whatever time has passed in between counts.
    const rest = pace(of('10.0.0.1'), 2)
    expect(rest).toBeGreaterThan(0)
    expect(rest).toBeLessThanOrEqual(2_000)
    expect(pace(of('10.0.0.2'), 5)).toBe(0)
    expect(pace(of('10.0.0.1', true), 60)).toBe(0)
    expect(pace(of('2001:db8::1'), 5)).toBe(0)
    expect(pace(of('2001:db8::2'), 2)).toBeGreaterThan(0)
  })

  test('waits five seconds at most, however much it sent', () => {
    const pace = pacing({ requestsPerSecond: 1, burstRequests: 1 })
    for (let i = 0; i < 100; i++) expect(pace(of('10.0.0.1'), 10)).toBeLessThanOrEqual(5_000)
  })

  test('arrives whole, also where it is refused', async ({ recordings, address, project }) => {
    const service = await startIngesting(recordings, address, project, {
      paceLimits: { requestsPerSecond: 5, burstRequests: 2 },
    })
    const place = await service.start()
    const begun = performance.now()
    const refused = service.ingest('chunks', largeChunk, { key: newKeyText('public') })
    expect((await service.chunk(place, largeChunk)).status).toBe(200)
    expect((await refused).status).toBe(401)
    expect(performance.now() - begun).toBeGreaterThan(600)
    await service.close()
  })

  test('is served one after the other, and refused where it would wait for long', async ({
    db,
    address,
    project,
  }) => {
    const service = await startService(db, address, project, {
      paceLimits: { requestsPerSecond: 5, burstRequests: 1 },
    })
    const unknown = newKeyText('secret')
    const begun = performance.now()
    const guesses = Array.from({ length: 5 }, () =>
      service.send('/v1/persons', { method: 'POST', key: unknown, body: {} }),
    )
    for (const { status } of await Promise.all(guesses)) expect(status).toBe(401)
    expect(performance.now() - begun).toBeGreaterThan(700)
    const pages = Array.from({ length: 160 }, () => service.send('/docs/json', { key: null }))
    const answers = await Promise.all(pages)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)
    expect(refused[0]?.headers.get('retry-after')).toBe('5')
    // Who has a key waits for none of them, and neither does who looks at the service itself.
    expect((await service.send('/v1/persons')).status).toBe(200)
    expect((await service.send('/health/live', { key: null })).status).toBe(200)
    await service.close()
  })
})

function bodyOf(answer: string): unknown {
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
}
