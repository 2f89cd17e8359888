import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDeflate, createGzip, gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { open } from '../src/blobs/sealing.ts'
import { destroyBrowserKeys, readBrowserKey } from '../src/recordings/browser-keys.ts'
import { ChunkDamaged, expandChunk, readChunkBody } from '../src/recordings/chunk-body.ts'
import { newProject } from './fixtures.ts'
import { byDepth } from './proof/deep.ts'
import {
  blobKeys,
  events,
  type IngestService,
  plainEvents,
  type Started,
  test,
} from './recordings-fixtures.ts'

describe('a chunk', () => {
  test('is kept compressed as it was sent, sealed with the key of its browser', async ({
    ingesting,
    recordings,
    folder,
    project,
  }) => {
    const started = await ingesting.start()
    const sent = events(50)
    expect(await ingesting.chunk({ ...started, tab: 'a', number: 7 }, sent)).toMatchObject({
      status: 200,
      json: { next: 'continue' },
    })
    const { browserId, sessionId } = started
    const keys = await blobKeys(recordings)
    expect(keys).toEqual([
      expect.stringMatching(
        new RegExp(`^blobs/${project.id}/${browserId}/${sessionId}/a-7-[0-9a-f]{24}$`),
      ),
    ])
    const kept = await readFile(join(folder, keys[0]!))
    expect(kept.includes('timestamp')).toBe(false)
    expect(kept.includes(sent.subarray(10))).toBe(false)
    const dataKey = await readBrowserKey(recordings.browserKeys, project.id, browserId)
    const context = { projectId: project.id, sessionId, tab: 'a', number: 7 }
    expect(Buffer.from(open(dataKey!, context, kept)).equals(sent)).toBe(true)
  })

  test('may come plain, and is compressed here', async ({ ingesting, recordings, folder }) => {
    const started = await ingesting.start()
    const text = plainEvents(500)
    expect((await ingesting.chunk(started, text)).status).toBe(200)
    const [key] = await blobKeys(recordings)
    expect((await readFile(join(folder, key!))).length).toBeLessThan(text.length / 4)
    const read = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(text)
  })

  test('that comes again succeeds, and is kept once, as it came first', async ({
    ingesting,
    recordings,
  }) => {
    const started = await ingesting.start()
    for (const body of [events(3), events(3), plainEvents(9, 100)]) {
      expect((await ingesting.chunk(started, body)).json).toEqual({ next: 'continue' })
    }
    expect(await blobKeys(recordings)).toHaveLength(1)
    const { json } = await ingesting.send(`/v1/sessions/${started.sessionId}`)
    expect(json.session.chunks).toBe(1)
    const read = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(plainEvents(3))
  })

  test('of the same number is another one in another tab', async ({ ingesting, recordings }) => {
    const started = await ingesting.start()
    await ingesting.chunk({ ...started, tab: 'a' })
    await ingesting.chunk({ ...started, tab: 'A' })
    expect(await blobKeys(recordings)).toHaveLength(2)
  })

  test('moves what its session counts', async ({ ingesting, recordings, folder }) => {
    const started = await ingesting.start()
    for (const [number, pages] of [
      [0, 2],
      [1, 0],
      [2, 1],
    ] as const) {
      await ingesting.ingest('chunks', events(2), {
        query: { browser: started.browserId, session: started.sessionId, tab: 't', number, pages },
      })
    }
    const keys = await blobKeys(recordings)
    const sizes = await Promise.all(
      keys.map(async (key) => (await readFile(join(folder, key))).length),
    )
    const { json } = await ingesting.send(`/v1/sessions/${started.sessionId}`)
    expect(json.session).toMatchObject({
      chunks: 3,
      pages: 3,
      bytes: sizes.reduce((a, b) => a + b),
      lastChunkAt: expect.any(String),
    })
    expect(json.tabs).toEqual([
      {
        tab: 't',
        chunks: 3,
        missingChunks: 0,
        bytes: json.session.bytes,
        firstChunkAt: expect.any(String),
        lastChunkAt: json.session.lastChunkAt,
      },
    ])
  })

  test('tell when their events were, which counts and not when they arrived', async ({
    ingesting,
  }) => {
    const { browserId: browser, sessionId: session } = await ingesting.start()
    const place = { browser, session, tab: 't' }
    const read = async () => (await ingesting.send(`/v1/sessions/${session}`)).json.session
    expect(await read()).toMatchObject({ firstEventAt: null, lastEventAt: null, errors: 0 })
    const hour = 3_600_000
    for (const query of [
      { ...place, number: 1, from: hour, to: hour + 60_000, errors: 2, rageClicks: 1 },
      { ...place, number: 0, from: -5_000, to: 30_000, errors: 1, failedRequests: 3 },
      { ...place, number: 2, from: hour, to: hour, deadClicks: 1 },
    ]) {
      expect((await ingesting.ingest('chunks', events(2), { query })).status).toBe(200)
    }
    const told = await read()
    expect(told).toMatchObject({ errors: 3, failedRequests: 3, rageClicks: 1, deadClicks: 1 })
    const sinceStart = (at: string) => Date.parse(at) - Date.parse(told.startedAt)
    expect([told.firstEventAt, told.lastEventAt].map(sinceStart)).toEqual([-5_000, hour + 60_000])
    for (const wrong of [{ from: 1.5 }, { to: 'late' }, { errors: 'many' }]) {
      const query = { ...place, number: 9, ...wrong }
      expect((await ingesting.ingest('chunks', events(1), { query })).status).toBe(400)
    }
  })

  test('begin a session: without one it is in no list', async ({ ingesting }) => {
    const { json: started } = await ingesting.ingest('start', { pending: true })
    await ingesting.identify(started.browserId, 'ada')
    const list = async () => (await ingesting.send('/v1/persons/ada/sessions')).json.sessions
    expect(await list()).toEqual([])
    await ingesting.chunk(started)
    expect(await list()).toMatchObject([{ id: started.sessionId, chunks: 1 }])
  })

  test('of a place that no number or tab can have is refused', async ({ ingesting }) => {
    const { browserId: browser, sessionId: session } = await ingesting.start()
    const place = { browser, session, tab: 't', number: 0 }
    for (const wrong of [
      { number: -1 },
      { number: 1_000_001 },
      { number: '1e3' },
      { number: '' },
      { tab: '' },
      { tab: 'x'.repeat(33) },
      { tab: '../x' },
      { tab: 'a/b' },
      { pages: -1 },
    ]) {
      const answer = await ingesting.ingest('chunks', events(1), { query: { ...place, ...wrong } })
      expect(answer).toMatchObject({ status: 400, json: { next: 'continue' } })
    }
    const { tab, ...without } = place
    const answer = await ingesting.ingest('chunks', events(1), { query: without })
    expect(answer.status).toBe(400)
  })

  test('goes nowhere but into a session of its own browser and project', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const mine = await ingesting.start()
    const another = await ingesting.start()
    const other = await newProject(db)
    const { json: foreign } = await ingesting.ingest('start', {}, { key: other.publicKey })
    const closed = await ingesting.start()
    await db.sql`
      update sessions set closed = true
      where project_id = ${project.id} and id = ${closed.sessionId}`
    const keyless = await ingesting.start()
    await destroyBrowserKeys(recordings.browserKeys.sql, project.id, [keyless.browserId])
    const places: Started[] = [
      { ...mine, sessionId: another.sessionId },
      { ...mine, sessionId: randomUUID() },
      { ...mine, browserId: randomUUID() },
      { ...mine, sessionId: 'x' },
      { ...mine, browserId: '' },
      foreign,
      closed,
      keyless,
    ]
    const answers = await Promise.all(places.map((place) => ingesting.chunk(place)))
    const bodies = answers.map(({ text }) => text.replace(/"requestId":"[^"]+"/, ''))
    for (const [i, { status, json }] of answers.entries()) {
      expect(status).toBe(410)
      expect(json.next).toBe('new_browser')
      expect(bodies[i]).toBe(bodies[0])
    }
    expect(await blobKeys(recordings)).toEqual([])
    const rows = await db.sql`
      select from chunks where project_id in (${project.id}, ${other.id})`
    expect(rows).toEqual([])
  })

  test('is taken for a week after its session can have ended, and then no more', async ({
    ingesting,
    db,
    project,
  }) => {
    const started = await ingesting.start()
    const startedDaysAgo = (days: number) => db.sql`
      update sessions set started_at = app_now() - ${days} * interval '1 day'
      where project_id = ${project.id} and id = ${started.sessionId}`
    await startedDaysAgo(7.9)
    expect((await ingesting.chunk(started)).status).toBe(200)
    await startedDaysAgo(8.1)
    expect((await ingesting.chunk({ ...started, number: 1 })).status).toBe(410)
  })
})

describe('the form of a chunk', () => {
  const right: [string, string | Buffer][] = [
    ['one line', '{}'],
    ['one line with its end', '{}\n'],
    ['several lines', '{"a":1}\n{"b":2}\n{"c":3}'],
    ['characters of all lengths', '{"a":"é€😀"}\n{"b":"\u0000"}'],
    ['a gzip of two members', Buffer.concat([gzipSync('{"a":1}\n'), gzipSync('{"b":2}\n')])],
  ]
  for (const [name, body] of right) {
    test(`may be ${name}`, async () => {
      const expected = Buffer.from(body)
      const read = await expanded(await readChunkBody(expected))
      expect(read).toEqual(expected[0] === 0x1f ? gunzipSync(expected) : expected)
    })
  }

  const wrong: [string, string | Buffer][] = [
    ['empty', ''],
    ['an array', '[{}]'],
    ['an empty line', '{}\n\n{}'],
    ['an empty first line', '\n{}'],
    ['two ends of line', '{}\n\n'],
    ['cut short', '{"a":1}\n{"b":'],
    ['a line that begins with a space', '{}\n {}'],
    ['a line that ends with a space', '{} \n{}'],
    ['Windows ends of line', '{}\r\n{}'],
    ['text', 'hello'],
    ['a byte order mark', '\ufeff{}'],
    ['broken UTF-8', Buffer.from([0x7b, 0xc3, 0x28, 0x7d])],
    ['half a character at its end', Buffer.from([0x7b, 0x7d, 0x0a, 0x7b, 0xf0, 0x9f, 0x98])],
    ['an overlong character', Buffer.from([0x7b, 0xc0, 0x80, 0x7d])],
    ['a surrogate', Buffer.from([0x7b, 0xed, 0xa0, 0x80, 0x7d])],
    ['a gzip in a gzip', gzipSync(gzipSync('{}'))],
    ['an empty gzip', gzipSync('')],
  ]
  for (const [name, body] of wrong) {
    test(`may not be ${name}: refused if it comes plain, damaged if it came compressed`, async () => {
      const plain = Buffer.from(body)
      if (plain[0] !== 0x1f) {
        await expect(readChunkBody(plain)).rejects.toMatchObject({ code: 'invalid_request' })
      }
      await expect(expanded(gzipSync(body))).rejects.toThrow(ChunkDamaged)
    })
  }

  for (const [name, body] of [
    ['cut to its magic', gzipSync('{}').subarray(0, 2)],
    ['of no content', gzipSync('{}').subarray(0, 10)],
    ['of another method', Buffer.from(gzipSync('{}')).fill(7, 2, 3)],
  ] as const) {
    test(`may not be a gzip ${name}`, async () => {
      await expect(readChunkBody(body)).rejects.toMatchObject({ code: 'invalid_request' })
    })
  }

  for (const [name, body] of [
    ['cut short', gzipSync('{}').subarray(0, -4)],
    ['changed', Buffer.from(gzipSync(plainEvents(100))).fill(0, 30, 40)],
    [
      'of a wrong checksum',
      Buffer.concat([gzipSync('{}').subarray(0, -8), gzipSync('[]').subarray(-8)]),
    ],
  ] as const) {
    test(`is damaged as a gzip ${name}`, async () => {
      await expect(expanded(body)).rejects.toThrow(ChunkDamaged)
    })
  }

  test('is told the same however it is cut into parts, and whatever text it holds', async () => {
    const line = fc
      .string({ unit: 'binary', maxLength: 40 })
      .map((text) => JSON.stringify({ text }))
    const lines = fc.array(line, { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 65_480, max: 65_540 }), async (some, pad) => {
        // Pushes some character across the border between two parts.
        const text = `${JSON.stringify({ pad: 'x'.repeat(pad) })}\n${some.join('\n')}`
        expect((await expanded(await readChunkBody(Buffer.from(text)))).toString()).toBe(text)
      }),
      { numRuns: 100 },
    )
  })

  test('is refused wherever one byte is wrong', async () => {
    const text = Buffer.from(`{"a":"${'é'.repeat(40_000)}"}\n{"b":"${'€'.repeat(20_000)}"}`)
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length - 1), async (at) => {
        const changed = Buffer.from(text)
        changed[at] = 0xff
        await expect(readChunkBody(changed)).rejects.toMatchObject({ code: 'invalid_request' })
        await expect(expanded(gzipSync(changed))).rejects.toThrow(ChunkDamaged)
      }),
      { numRuns: 50 },
    )
  })
})

describe('a bomb', () => {
  /** `megabytes` of the same line, compressed. */
  async function bomb(megabytes: number, format: 'gzip' | 'deflate' = 'gzip'): Promise<Buffer> {
    const stream = format === 'gzip' ? createGzip({ level: 9 }) : createDeflate({ level: 9 })
    const parts: Buffer[] = []
    stream.on('data', (part) => parts.push(part))
    const line = Buffer.from(`${JSON.stringify({ x: 'x'.repeat(1_000_000 - 9) })}\n`)
    for (let i = 0; i < megabytes; i++) {
      if (!stream.write(line)) await new Promise((resolve) => stream.once('drain', resolve))
    }
    stream.end()
    await new Promise((resolve) => stream.once('end', resolve))
    return Buffer.concat(parts)
  }

  test('is refused for the size it says, and costs nobody memory', async ({
    ingesting,
    recordings,
  }) => {
    const started = await ingesting.start()
    const much = await bomb(byDepth(200, 1_000))
    expect(much.length).toBeLessThan(1_048_576)
    // Many at once, so that what each of them takes would show.
    const before = process.memoryUsage().rss
    let highest = before
    const watch = setInterval(() => {
      highest = Math.max(highest, process.memoryUsage().rss)
    }, 5)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, number) => ingesting.chunk({ ...started, number }, much)),
    )
    clearInterval(watch)
    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 413,
        json: { error: { code: 'payload_too_large' }, next: 'continue' },
      })
    }
    // The 20 bodies are some 40 MB with their copies; 8 MiB of each expanded would be 160 more.
    expect(highest - before).toBeLessThan(120_000_000)
    expect(await blobKeys(recordings)).toEqual([])
  })

  test('of a small size is refused too', async () => {
    const small = await bomb(8)
    expect(small.length).toBeLessThan(20_000)
    await expect(readChunkBody(small)).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  test('is not what an honest chunk of 8 MiB is; a byte more is too much', async () => {
    const most = honestLines(8 * 1_048_576)
    expect(most.length).toBe(8 * 1_048_576)
    const packed = gzipSync(most)
    expect(packed.length).toBeLessThan(1_048_576)
    expect(await readChunkBody(packed)).toBe(packed)
    expect((await expanded(packed)).length).toBe(most.length)
    await expect(readChunkBody(gzipSync(`${most}\n`))).rejects.toMatchObject({
      code: 'payload_too_large',
    })
  })

  test('that lies about its size is taken, and its reader gets what came before and a gap', async ({
    ingesting,
  }) => {
    const started = await ingesting.start()
    const liar = Buffer.concat([await bomb(100), gzipSync('{}')])
    expect((await ingesting.chunk({ ...started, number: 0 }, events(2))).status).toBe(200)
    expect((await ingesting.chunk({ ...started, number: 1 }, liar)).status).toBe(200)
    expect((await ingesting.chunk({ ...started, number: 2 }, plainEvents(1, 7))).status).toBe(200)
    const { text } = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(text.length).toBeLessThan(9_000_000)
    const whole = text.split('\n').filter((line) => line.length < 1_000)
    const gap = whole.findIndex((line) => line.includes('lethe.gap'))
    expect(whole.slice(0, 2).join('\n')).toBe(plainEvents(2).trimEnd())
    expect(JSON.parse(whole[gap]!)).toMatchObject({ type: 5, timestamp: expect.any(Number) })
    expect(whole.slice(gap + 1).join('\n')).toBe(plainEvents(1, 7))
  })

  test('of brotli or deflate is no gzip, and so no chunk', async () => {
    await expect(readChunkBody(await bomb(1, 'deflate'))).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })
})

test('others have their turn while a chunk of many short lines is checked', async () => {
  const turnsDuring = async (work: Promise<unknown>) => {
    let turns = 0
    let isDone = false
    const count = () => {
      turns += 1
      if (!isDone) setImmediate(count)
    }
    setImmediate(count)
    await work
    isDone = true
    return turns
  }
  const lines = '{}\n'.repeat(340_000)
  expect(await turnsDuring(readChunkBody(Buffer.from(lines)))).toBeGreaterThan(10)
  const packed = gzipSync(`${honestLines(1_000_000)}\n${lines}`)
  expect(await turnsDuring(expanded(packed))).toBeGreaterThan(10)
})

async function expanded(packed: Buffer): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(expandChunk(packed)))
}

/** Lines of so many bytes in all that compress as recorded pages do. */
function honestLines(bytes: number): string {
  const lines: string[] = []
  let length = 0
  while (length < bytes - 2_000) {
    const line = JSON.stringify({ x: randomBytes(15).toString('hex'), y: 'y'.repeat(800) })
    lines.push(line)
    length += line.length + 1
  }
  lines.push(JSON.stringify({ z: 'z'.repeat(bytes - length - 8) }))
  return lines.join('\n')
}

test('a body that breaks off stores nothing', async ({ ingesting, recordings, project }) => {
  const { browserId, sessionId } = await ingesting.start()
  await brokenUpload(ingesting, { browserId, sessionId }, project.publicKey)
  expect((await ingesting.chunk({ browserId, sessionId })).status).toBe(200)
  expect(await blobKeys(recordings)).toHaveLength(1)
})

/** Announces 1,000 bytes, sends ten and hangs up. */
async function brokenUpload({ url }: IngestService, place: Started, key: string): Promise<void> {
  const { connect } = await import('node:net')
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const query = new URLSearchParams({
    key,
    browser: place.browserId,
    session: place.sessionId,
    tab: 'tab',
    number: '0',
  })
  socket.write(
    `POST /ingest/v1/chunks?${query} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n` +
      'Content-Length: 1000\r\n\r\n{"a":1}\n{}',
  )
  await new Promise((resolve) => setTimeout(resolve, 100))
  socket.destroy()
}
