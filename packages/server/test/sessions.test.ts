import { randomBytes, randomUUID } from 'node:crypto'
import { readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Session } from '@lethe/contract/session.ts'
import { getSession, listSessionsOfPerson } from '@lethe/contract/session.ts'
import { Ajv } from 'ajv'
import { describe, expect } from 'vitest'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { destroyBrowserKeys, rewrapBrowserKeys } from '../src/recordings/browser-keys.ts'
import { newProject } from './fixtures.ts'
import {
  blobKeys,
  events,
  type IngestService,
  plainEvents,
  startIngesting,
  test,
} from './recordings-fixtures.ts'

const ajv = new Ajv({ strict: false, formats: { 'date-time': true, uuid: true } })
const isList = ajv.compile(listSessionsOfPerson.schema.response[200])
const isSession = ajv.compile(getSession.schema.response[200])

describe("a person's sessions", () => {
  test('are listed newest first, each once, in pages of the size asked for', async ({
    ingesting,
    db,
    project,
  }) => {
    const ids: string[] = []
    for (let b = 0; b < 3; b++) {
      const started = await ingesting.start()
      ids.push(started.sessionId)
      for (let s = 0; s < 4; s++) ids.push((await ingesting.start(started.browserId)).sessionId)
      await ingesting.identify(started.browserId, 'ada')
    }
    // Some of one millisecond: the order among them is the ids'.
    await db.sql`
      update sessions set started_at = date_trunc('second', app_now())
      where project_id = ${project.id} and id = any(${ids.slice(3, 11)}::uuid[])`
    const expected = await db.sql<{ id: string }>`
      select id from sessions where project_id = ${project.id}
      order by started_at desc, id desc`
    expect(expected).toHaveLength(15)
    for (const limit of [1, 4, 5, 15, 100]) {
      const { sessions, pages } = await allSessions(ingesting, 'ada', limit)
      expect(sessions.map((session) => session.id)).toEqual(expected.map((row) => row.id))
      expect(pages).toBe(Math.ceil(15 / limit))
    }
  })

  test('have the shape of the contract', async ({ ingesting }) => {
    const started = await ingesting.start()
    await ingesting.chunk(started)
    await ingesting.identify(started.browserId, 'ada')
    const list = await ingesting.send('/v1/persons/ada/sessions')
    expect(isList(list.json), JSON.stringify(isList.errors)).toBe(true)
    const one = await ingesting.send(`/v1/sessions/${started.sessionId}`)
    expect(isSession(one.json), JSON.stringify(isSession.errors)).toBe(true)
    expect(list.json.sessions[0]).toEqual(one.json.session)
  })

  test('are none for a person without a browser, and 404 without a person', async ({
    ingesting,
    project,
  }) => {
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'a/b' } })
    const answer = await ingesting.send('/v1/persons/a%2Fb/sessions')
    expect([answer.status, answer.text]).toEqual([200, '{"sessions":[],"nextCursor":null}'])
    for (const id of ['nobody', 'x'.repeat(201)]) {
      const missing = await ingesting.send(`/v1/persons/${id}/sessions`)
      expect([missing.status, missing.json.error.code]).toEqual([404, 'person_not_found'])
    }
    expect((await ingesting.send('/v1/persons/%00/sessions')).status).toBe(400)
    expect((await ingesting.send('/v1/persons/ada/sessions', { key: null })).status).toBe(401)
    const asPage = await ingesting.send('/v1/persons/ada/sessions', { key: project.publicKey })
    expect(asPage.status).toBe(403)
  })

  test('have cursors that work for this list only', async ({ ingesting }) => {
    const started = await ingesting.start()
    await ingesting.start(started.browserId)
    await ingesting.identify(started.browserId, 'ada')
    await ingesting.identify((await ingesting.start()).browserId, 'grace')
    const first = await ingesting.send('/v1/persons/ada/sessions?limit=1')
    const { nextCursor } = first.json
    expect((await ingesting.send(`/v1/persons/ada/sessions?cursor=${nextCursor}`)).status).toBe(200)
    for (const path of [
      `/v1/persons/grace/sessions?cursor=${nextCursor}`,
      `/v1/persons/ada/sessions?cursor=${nextCursor}x`,
      '/v1/persons/ada/sessions?cursor=x',
      `/v1/persons?cursor=${nextCursor}`,
      '/v1/persons/ada/sessions?limit=0',
      '/v1/persons/ada/sessions?limit=101',
      '/v1/persons/ada/sessions?unknown=1',
    ]) {
      expect((await ingesting.send(path)).status).toBe(400)
    }
  })

  test('stay readable while the person is being deleted', async ({ ingesting }) => {
    const started = await ingesting.start()
    await ingesting.chunk(started, events(2))
    await ingesting.identify(started.browserId, 'ada')
    await ingesting.send('/v1/persons/ada', { method: 'DELETE' })
    const { sessions } = await allSessions(ingesting, 'ada', 50)
    expect(sessions.map((session) => session.id)).toEqual([started.sessionId])
    const read = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(plainEvents(2))
  })
})

const gap = (timestamp: number, chunks: number) =>
  `{"type":5,"timestamp":${timestamp},"data":{"tag":"lethe.gap","payload":{"chunks":${chunks}}}}\n`

describe('the events of a session', () => {
  test('come back as they were sent, tab by tab in the order of recording', async ({
    ingesting,
  }) => {
    const started = await ingesting.start()
    // Out of order, plain and compressed, with and without an end of the last line.
    await ingesting.chunk({ ...started, tab: 'a', number: 1 }, plainEvents(2, 10))
    await ingesting.chunk({ ...started, tab: 'b', number: 0 }, events(2, 100))
    await ingesting.chunk({ ...started, tab: 'a', number: 10 }, events(1, 20))
    await ingesting.chunk({ ...started, tab: 'a', number: 0 }, gzipSync('{"timestamp":1}'))
    await ingesting.chunk({ ...started, tab: 'a', number: 9 }, '{"timestamp":19}')
    const path = `/v1/sessions/${started.sessionId}`
    // Between the two and the ninth are seven that did not arrive.
    const ofA = `{"timestamp":1}\n${plainEvents(2, 10)}${gap(11, 7)}{"timestamp":19}\n${plainEvents(1, 20)}`
    const { text, headers } = await ingesting.send(`${path}/events`)
    expect(text).toBe(ofA + plainEvents(2, 100))
    expect(headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-store')
    expect((await ingesting.send(`${path}/events?tab=a`)).text).toBe(ofA)
    expect((await ingesting.send(`${path}/events?tab=B`)).text).toBe('')
    const { json } = await ingesting.send(path)
    expect(json.tabs).toMatchObject([
      { tab: 'a', chunks: 4, missingChunks: 7 },
      { tab: 'b', chunks: 1, missingChunks: 0 },
    ])
  })

  test('miss nothing where a session begins in the middle of a tab, and its beginning where it does not begin with a page', async ({
    ingesting,
  }) => {
    const [later, torn] = [await ingesting.start(), await ingesting.start()]
    const page = '{"type":4,"timestamp":5}\n'
    await ingesting.chunk({ ...later, tab: 'a', number: 7 }, page)
    await ingesting.chunk({ ...torn, tab: 'a', number: 7 }, plainEvents(1, 5))
    const { text } = await ingesting.send(`/v1/sessions/${later.sessionId}/events`)
    expect(text).toBe(page)
    expect((await ingesting.send(`/v1/sessions/${later.sessionId}`)).json.tabs).toMatchObject([
      { chunks: 1, missingChunks: 0 },
    ])
    expect((await ingesting.send(`/v1/sessions/${torn.sessionId}/events`)).text).toBe(
      gap(5, 7) + plainEvents(1, 5),
    )
  })

  test('are none for a session without chunks; HEAD works without them', async ({ ingesting }) => {
    const started = await ingesting.start()
    const path = `/v1/sessions/${started.sessionId}/events`
    const answer = await ingesting.send(path)
    expect([answer.status, answer.text]).toEqual([200, ''])
    await ingesting.chunk(started)
    const head = await ingesting.send(path, { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(head.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  })

  test('of more chunks than a page has come whole', async ({ ingesting }) => {
    const started = await ingesting.start()
    for (let first = 0; first < 420; first += 20) {
      const numbers = Array.from({ length: 20 }, (_, i) => first + i)
      await Promise.all(
        numbers.map((number) => ingesting.chunk({ ...started, number }, events(1, number))),
      )
    }
    const { text } = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect(text).toBe(plainEvents(420))
  })

  test("of a session that is unknown, malformed or another project's are a 404 like any other", async ({
    ingesting,
    db,
    project,
  }) => {
    const other = await newProject(db)
    const { json: foreign } = await ingesting.ingest('start', {}, { key: other.publicKey })
    const closed = await ingesting.start()
    await db.sql`
      update sessions set closed = true
      where project_id = ${project.id} and id = ${closed.sessionId}`
    for (const suffix of ['', '/events']) {
      const texts = []
      for (const id of [foreign.sessionId, randomUUID(), 'x', closed.sessionId]) {
        const { status, text } = await ingesting.send(`/v1/sessions/${id}${suffix}`)
        expect(status).toBe(404)
        texts.push(text.replace(/"requestId":"[^"]+"/, ''))
      }
      expect(new Set(texts).size).toBe(1)
      expect(texts[0]).toContain('session_not_found')
    }
  })

  test('are gone, and say so, once the data key is destroyed', async ({
    ingesting,
    recordings,
    project,
  }) => {
    const started = await ingesting.start()
    await ingesting.chunk(started)
    await destroyBrowserKeys(recordings.browserKeys.sql, project.id, [started.browserId])
    const { status, json } = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
    expect([status, json.error.code]).toEqual([404, 'session_not_found'])
  })

  test('open after a change of the master key, also when the old one is taken away', async ({
    recordings,
    address,
    project,
  }) => {
    const text = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
    const [old, fresh] = [text('old'), text('new')]
    const withKeys = (setting: string) => ({
      ...recordings,
      browserKeys: { ...recordings.browserKeys, masterKeys: parseMasterKeys(setting) },
    })
    const before = await startIngesting(withKeys(old), address, project)
    const started = await before.start()
    await before.chunk(started, events(3))
    await before.close()
    const both = withKeys(`${fresh},${old}`)
    expect(await rewrapBrowserKeys(both.browserKeys)).toBeGreaterThanOrEqual(1)
    expect(await rewrapBrowserKeys(both.browserKeys)).toBe(0)
    const after = await startIngesting(withKeys(fresh), address, project)
    const read = await after.send(`/v1/sessions/${started.sessionId}/events`)
    expect(read.text).toBe(plainEvents(3))
    await after.close()
  })

  test('have a gap where a chunk was changed, swapped or lost, and go on behind it', async ({
    ingesting,
    recordings,
    folder,
  }) => {
    const started = await ingesting.start()
    for (let number = 0; number < 4; number++) {
      await ingesting.chunk({ ...started, number }, events(2, number * 10))
    }
    const files = (await blobKeys(recordings)).map((key) => join(folder, key))
    const [first, second, third, fourth] = files as [string, string, string, string]
    const read = async () => {
      const answer = await ingesting.send(`/v1/sessions/${started.sessionId}/events`)
      expect(answer.status).toBe(200)
      return answer.text
    }
    const changed = Buffer.from(await readFile(second))
    changed[40]! ^= 1
    await writeFile(second, changed)
    const rest = plainEvents(2, 20) + plainEvents(2, 30)
    expect(await read()).toBe(plainEvents(2) + gap(1, 1) + rest)
    expect(ingesting.logged()).toContain('session.chunk_lost')

    await writeFile(second, await readFile(third))
    expect(await read()).toBe(plainEvents(2) + gap(1, 1) + rest)

    // At the start there is no time before: that of the next event is as good.
    await rm(first)
    expect(await read()).toBe(gap(20, 2) + rest)
    await rm(fourth)
    expect(await read()).toBe(gap(20, 2) + plainEvents(2, 20) + gap(21, 1))
    await rm(third)
    expect(JSON.parse(await read())).toMatchObject({ data: { payload: { chunks: 4 } } })
  })

  test('break off if the store fails, and are never wrong', async ({
    ingesting,
    recordings,
    folder,
    project,
  }) => {
    const started = await ingesting.start()
    for (let number = 0; number < 3; number++) {
      await ingesting.chunk({ ...started, number }, events(2, number * 10))
    }
    const [first, second] = (await blobKeys(recordings)).map((key) => join(folder, key))
    const path = `/v1/sessions/${started.sessionId}/events`
    // A folder that was moved and linked: what is in it may come back.
    await rm(second!)
    await symlink(folder, second!)
    expect(await readBroken(ingesting, project.secretKey, path)).toEqual({
      status: 200,
      text: plainEvents(2),
      isComplete: false,
    })
    expect(ingesting.logged()).toContain('session.events')
    await rm(first!)
    await symlink(folder, first!)
    const answer = await ingesting.send(path)
    expect([answer.status, answer.json.error.code]).toEqual([500, 'internal_error'])
  })

  test('stream with flat memory, as fast as they are read', async ({ ingesting, project }) => {
    const started = await ingesting.start()
    const line = JSON.stringify({ x: 'x'.repeat(40_000), y: randomBytes(8_000).toString('hex') })
    const chunk = gzipSync(`${line}\n`.repeat(100))
    for (let number = 0; number < 20; number++) {
      expect((await ingesting.chunk({ ...started, number }, chunk)).status).toBe(200)
    }
    const { text } = await ingesting.send(`/v1/sessions/${started.sessionId}/events?tab=none`)
    expect(text).toBe('')
    const before = process.memoryUsage().rss
    let highest = 0
    let bytes = 0
    const key = project.secretKey
    await new Promise<void>((resolve, reject) => {
      const url = `${ingesting.url}/v1/sessions/${started.sessionId}/events`
      request(url, { headers: { authorization: `Bearer ${key}` } }, (response) => {
        response.on('data', (part: Buffer) => {
          bytes += part.length
          highest = Math.max(highest, process.memoryUsage().rss)
        })
        response.on('end', resolve)
        response.on('error', reject)
      }).end()
    })
    expect(bytes).toBe((line.length + 1) * 100 * 20)
    expect(bytes).toBeGreaterThan(110_000_000)
    expect(highest - before).toBeLessThan(80_000_000)
  })
})

async function allSessions(service: IngestService, externalId: string, limit: number) {
  const sessions: Session[] = []
  let cursor: string | null = null
  let pages = 0
  do {
    const query: string = cursor === null ? '' : `&cursor=${cursor}`
    const path = `/v1/persons/${externalId}/sessions?limit=${limit}${query}`
    const { status, json } = await service.send(path)
    expect(status).toBe(200)
    sessions.push(...json.sessions)
    cursor = json.nextCursor
    pages += 1
  } while (cursor !== null)
  return { sessions, pages }
}

/** Reads a response that may break off: what came, and whether its end came. */
function readBroken(service: IngestService, key: string, path: string) {
  return new Promise<{ status: number; text: string; isComplete: boolean }>((resolve) => {
    request(
      `${service.url}${path}`,
      { headers: { authorization: `Bearer ${key}` } },
      (response) => {
        const parts: Buffer[] = []
        response.on('data', (part) => parts.push(part))
        response.on('error', () => {})
        response.on('close', () =>
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(parts).toString(),
            isComplete: response.complete,
          }),
        )
      },
    ).end()
  })
}
