import { pathOf } from '@lethe/contract/dashboard-client.ts'
import { requestDeletions } from '@lethe/contract/dashboard-deletions.ts'
import { getSession, getSessionEvents, listSessions } from '@lethe/contract/dashboard-sessions.ts'
import { describe, expect } from 'vitest'
import { listSessions as listRows, type SessionPage } from '../src/dashboard/session-store.ts'
import { eraseAll, erasureOptions, refusalOf, test } from './dashboard-fixtures.ts'
import { newProject } from './fixtures.ts'
import { plainEvents } from './recordings-fixtures.ts'

describe('the list of sessions', () => {
  test('has those of known and anonymous browsers, newest first, filtered and paged', async ({
    dashboard,
    db,
  }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const ada = await dashboard.record('ada')
    const anonymous = await dashboard.record()
    const bob = await dashboard.record('bob')
    await dashboard.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'ada', properties: { name: 'Ada' } },
    })
    await db.sql`
      update sessions set started_at = later(started_at, -600000)
      where id = ${ada.sessionId}`
    const list = async (query: object = {}) =>
      (await viewer.call(listSessions, { params, query })).body
    const { sessions, nextCursor } = await list()
    expect(nextCursor).toBeNull()
    expect(sessions.map((one) => one.id)).toEqual([
      bob.sessionId,
      anonymous.sessionId,
      ada.sessionId,
    ])
    expect(sessions[2]).toMatchObject({
      browserId: ada.browserId,
      chunks: 1,
      url: 'https://shop.example/',
      userAgent: 'Mozilla/5.0 (test)',
      isLive: true,
      isBeforeIdentification: true,
      person: { externalId: 'ada', name: 'Ada', isBeingDeleted: false },
    })
    expect(sessions[2]?.seconds).toBeGreaterThanOrEqual(600)
    expect(sessions[1]?.person).toBeNull()

    const idsOf = async (query: object) => (await list(query)).sessions.map((one) => one.id)
    const personId = await dashboard.personId('ada')
    expect(await idsOf({ personId })).toEqual([ada.sessionId])
    expect(await idsOf({ browserId: anonymous.browserId })).toEqual([anonymous.sessionId])
    expect(await idsOf({ isIdentified: false })).toEqual([anonymous.sessionId])
    expect(await idsOf({ isIdentified: true })).toEqual([bob.sessionId, ada.sessionId])
    expect(await idsOf({ minimumSeconds: 300 })).toEqual([ada.sessionId])
    await db.sql`
      update sessions set errors = 3, rage_clicks = 1, pages = 9, url = 'https://shop.example/Pay',
        user_agent = 'Mozilla/5.0 (iPhone) AppleWebKit/605 Version/18.0 Mobile/15E Safari/604'
      where id = ${ada.sessionId}`
    await dashboard.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'bob', properties: { plan: 'pro', seats: 3 } },
    })
    for (const filter of [
      { with: 'errors' },
      { with: 'rage_clicks' },
      { page: '/pay' },
      { device: 'mobile' },
      { browser: 'safari' },
      { with: 'errors', page: 'PAY', device: 'mobile' },
    ]) {
      expect(await idsOf(filter), JSON.stringify(filter)).toEqual([ada.sessionId])
    }
    expect(await idsOf({ property: 'plan=pro' })).toEqual([bob.sessionId])
    expect(await idsOf({ property: 'seats=3' })).toEqual([bob.sessionId])
    for (const filter of [
      { with: 'failed_requests' },
      { property: 'plan=PRO' },
      { property: 'plan=' },
      { page: '%' },
      { browser: 'chrome' },
    ]) {
      expect(await idsOf(filter), JSON.stringify(filter)).toEqual([])
    }
    for (const sort of ['longest', 'most_pages', 'most_errors']) {
      expect((await idsOf({ sort }))[0], sort).toBe(ada.sessionId)
    }
    expect(await idsOf({ sort: 'longest', isIdentified: false })).toEqual([anonymous.sessionId])
    expect(await idsOf({ sort: 'longest', personId })).toEqual([ada.sessionId])
    const isBefore = (await idsOf({ isBeforeIdentification: true })).length
    const isAfter = (await idsOf({ isBeforeIdentification: false })).length
    expect(isBefore + isAfter).toBe(2)
    expect(await idsOf({ from: sessions[1]!.startedAt })).toEqual([
      bob.sessionId,
      anonymous.sessionId,
    ])
    expect(await idsOf({ to: sessions[1]!.startedAt })).toEqual([ada.sessionId])
    expect(await idsOf({ personId: 'x' })).toEqual([])
    const first = await list({ limit: 2 })
    const second = await list({ limit: 2, cursor: first.nextCursor })
    expect(second.sessions.map((one) => one.id)).toEqual([ada.sessionId])
  })

  test('the sessions of a person with many browsers come in one order, page by page', async ({
    dashboard,
    db,
  }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    await dashboard.send('/v1/persons', { method: 'POST', body: { externalId: 'busy' } })
    const personId = await dashboard.personId('busy')
    const { id } = dashboard.project
    await db.sql`
      with made as (
        insert into browsers (project_id) select ${id} from generate_series(1, 20)
        returning id
      ), linked as (
        insert into person_browsers (project_id, browser_id, person_id)
        select ${id}, id, ${personId}::bigint from made
        returning browser_id
      )
      select from linked`
    await db.sql`
      insert into sessions (project_id, browser_id, started_at)
      select ${id}, l.browser_id, app_now() - random() * interval '1 day'
      from person_browsers l, generate_series(1, 15)
      where l.project_id = ${id} and l.person_id = ${personId}`
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const query = { personId, limit: 37, ...(cursor !== undefined && { cursor }) }
      const page = (await viewer.call(listSessions, { params, query })).body
      seen.push(...page.sessions.map((one) => one.startedAt))
      cursor = page.nextCursor ?? undefined
    } while (cursor)
    expect(seen).toHaveLength(300)
    expect(seen).toEqual([...seen].sort().reverse())
  })
})

test('what is rare is found however many sessions are passed over for it', async ({
  dashboard,
  db,
}) => {
  const { id } = dashboard.project
  const known = await dashboard.record('ada')
  const { browserId } = await dashboard.record()
  await db.sql`
    insert into sessions (project_id, browser_id, started_at)
    select ${id}, ${browserId}, app_now() + i * interval '1 second' from generate_series(1, 25) i`
  const seen: string[] = []
  let after: SessionPage['next'] = null
  let pages = 0
  do {
    // The window is made small, so that a few rows are many.
    const page: SessionPage = await listRows(db.sql, id, { isIdentified: true }, after, 5, 10)
    seen.push(...page.sessions.map((one) => one.id))
    after = page.next
    pages++
  } while (after !== null)
  expect(seen).toEqual([known.sessionId])
  expect(pages).toBe(3)
})

describe('a session', () => {
  test('has its tabs, its neighbours of the same person, and its events', async ({ dashboard }) => {
    const viewer = await dashboard.member('viewer')
    const { projectId } = dashboard
    const first = await dashboard.record('ada')
    await dashboard.record('bob')
    const chunks = [plainEvents(3), plainEvents(2, 100), '{"type":3,"timestamp":200}']
    const second = await dashboard.record('ada', { one: chunks, two: [plainEvents(1, 7)] })
    const third = await dashboard.record('ada')
    const params = { projectId, sessionId: second.sessionId }
    const { session, tabs, previousId, nextId } = (await viewer.call(getSession, { params })).body
    expect(session).toMatchObject({ id: second.sessionId, chunks: 4 })
    expect(tabs.map((tab) => [tab.id, tab.chunks])).toEqual([
      ['one', 3],
      ['two', 1],
    ])
    expect([previousId, nextId]).toEqual([first.sessionId, third.sessionId])

    const eventsOf = async (query: { tab: string; fromChunk?: number }) => {
      const answer = await viewer.fetch(pathOf(getSessionEvents, { params, query }))
      expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      const lines = (await answer.text()).trimEnd().split('\n')
      return lines.map((line) => (JSON.parse(line) as { timestamp: number }).timestamp)
    }
    expect(await eventsOf({ tab: 'one' })).toEqual([0, 1, 2, 100, 101, 200])
    expect(await eventsOf({ tab: 'one', fromChunk: 1 })).toEqual([100, 101, 200])
    expect(await eventsOf({ tab: 'two' })).toEqual([7])
  })

  test('its events are compressed on the way, and have a gap where a chunk is lost', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const viewer = await dashboard.member('viewer')
    const { sessionId } = await dashboard.record('ada', {
      one: [plainEvents(50_000), plainEvents(10, 50_000)],
    })
    const params = { projectId: dashboard.projectId, sessionId }
    const path = pathOf(getSessionEvents, { params, query: { tab: 'one' } })
    const answer = await viewer.fetch(path)
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect((await answer.text()).split('\n')).toHaveLength(50_011)
    const plain = await viewer.fetch(path, { headers: { 'accept-encoding': 'identity' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect((await plain.text()).split('\n')).toHaveLength(50_011)

    const [chunk] = await db.sql<{ key: string }>`
      select blob_key as key from chunks where session_id = ${sessionId} and number = 1`
    await recordings.blobs.delete([chunk!.key])
    for (const encoding of ['gzip', 'identity']) {
      const holed = await viewer.fetch(path, { headers: { 'accept-encoding': encoding } })
      const lines = (await holed.text()).split('\n')
      expect(lines).toHaveLength(50_002)
      expect(JSON.parse(lines.at(-2) ?? '')).toMatchObject({ data: { tag: 'lethe.gap' } })
    }
  })

  test('an anonymous one has the neighbours of its browser', async ({ dashboard, db }) => {
    const viewer = await dashboard.member('viewer')
    const { sessionId, browserId } = await dashboard.record()
    await dashboard.record()
    const [later] = await db.sql<{ id: string }>`
      insert into sessions (project_id, browser_id, started_at)
      values (${dashboard.project.id}, ${browserId}, app_now() + interval '1 hour')
      returning id`
    const params = { projectId: dashboard.projectId, sessionId }
    const answer = (await viewer.call(getSession, { params })).body
    expect([answer.previousId, answer.nextId]).toEqual([null, later!.id])
  })

  test('is a 404 for another project, an unknown id, or when it was erased', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    const { sessionId } = await dashboard.record('ada')
    const params = { projectId: dashboard.projectId, sessionId }
    const gone = { status: 404, code: 'session_not_found' }
    const other = await newProject(db)
    const elsewhere = { projectId: String(other.id), sessionId }
    expect(await refusalOf(owner.call(getSession, { params: elsewhere }))).toEqual(gone)
    const odd = { ...params, sessionId: 'x' }
    expect(await refusalOf(owner.call(getSession, { params: odd }))).toEqual(gone)
    const personIds = [await dashboard.personId('ada')]
    await owner.call(requestDeletions, { params, body: { personIds, keepRecordings: false } })
    await eraseAll(await erasureOptions(recordings))
    expect(await refusalOf(owner.call(getSession, { params }))).toEqual(gone)
    const events = await owner.fetch(pathOf(getSessionEvents, { params, query: { tab: 'tab1' } }))
    expect(events.status).toBe(404)
  })

  test('that was kept without its person says nothing of the person', async ({
    dashboard,
    recordings,
  }) => {
    const owner = await dashboard.member('owner')
    const { sessionId } = await dashboard.record('ada')
    const params = { projectId: dashboard.projectId, sessionId }
    const personIds = [await dashboard.personId('ada')]
    await owner.call(requestDeletions, { params, body: { personIds, keepRecordings: true } })
    await eraseAll(await erasureOptions(recordings))
    const { session } = (await owner.call(getSession, { params })).body
    expect(session).toMatchObject({ person: null, isBeforeIdentification: false, isLive: false })
    const events = await owner.fetch(pathOf(getSessionEvents, { params, query: { tab: 'tab1' } }))
    expect(await events.text()).toContain('"type":4')
  })
})
