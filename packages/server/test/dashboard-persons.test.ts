import { requestDeletions } from '@lethe/contract/dashboard-deletions.ts'
import {
  getPerson,
  listPersonActivity,
  listPersonBrowsers,
  listPersons,
  updatePerson,
} from '@lethe/contract/dashboard-persons.ts'
import { describe, expect } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import {
  type Dashboard,
  eraseAll,
  erasureOptions,
  refusalOf,
  startDashboard,
  test,
} from './dashboard-fixtures.ts'
import { overBlobs } from './erasure-faults.ts'
import { newProject } from './fixtures.ts'

async function put(dashboard: Dashboard, externalId: string, properties: object = {}) {
  const { status } = await dashboard.send('/v1/persons', {
    method: 'POST',
    body: { externalId, properties },
  })
  expect([200, 201]).toContain(status)
  return dashboard.personId(externalId)
}

describe('the list of persons', () => {
  test('shows name, e-mail, sessions, last seen and state, newest created first', async ({
    dashboard,
  }) => {
    const viewer = await dashboard.member('viewer')
    const { projectId } = dashboard
    await put(dashboard, 'ada', { name: 'Ada Lovelace', email: 'ada@example.com', plan: 'pro' })
    await put(dashboard, 'odd', { name: { first: 'Odd' }, email: 7 })
    await dashboard.record('ada')
    await dashboard.record('ada')
    await dashboard.record('late')
    const { persons, nextCursor } = (await viewer.call(listPersons, { params: { projectId } })).body
    expect(nextCursor).toBeNull()
    expect(persons).toMatchObject([
      { externalId: 'late', name: null, email: null, sessions: 1, state: 'present' },
      { externalId: 'odd', name: null, email: null, sessions: 0, lastSeenAt: null },
      { externalId: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', sessions: 2 },
    ])
    expect(persons[2]?.lastSeenAt).toMatch(/^\d{4}-.*Z$/)
  })

  test('is paged, searched and filtered, and a cursor is good for its own list only', async ({
    dashboard,
  }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    for (let i = 0; i < 7; i++) await put(dashboard, `p${i}`, { name: i % 2 ? 'Émile' : 'Zoë' })
    const first = (await viewer.call(listPersons, { params, query: { limit: 3 } })).body
    const cursor = first.nextCursor!
    const second = (await viewer.call(listPersons, { params, query: { limit: 3, cursor } })).body
    const rest = { limit: 3, cursor: second.nextCursor! }
    const third = (await viewer.call(listPersons, { params, query: rest })).body
    const ids = [first, second, third].flatMap(({ persons }) => persons.map((p) => p.externalId))
    expect(ids).toEqual(['p6', 'p5', 'p4', 'p3', 'p2', 'p1', 'p0'])
    expect(third.nextCursor).toBeNull()

    const found = await viewer.call(listPersons, { params, query: { search: 'éMILE', limit: 2 } })
    expect(found.body.persons.map((p) => p.externalId)).toEqual(['p5', 'p3'])
    const foreign = { search: 'zoë', limit: 2, cursor: found.body.nextCursor! }
    const refused = viewer.call(listPersons, { params, query: foreign })
    expect(await refusalOf(refused)).toEqual({ status: 400, code: 'invalid_request' })
  })

  test('the filters find who is being deleted and whose deletion failed, the search within them', async ({
    dashboard,
    recordings,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const ids = new Map<string, string>()
    for (const one of ['calm', 'failing', 'open', 'erased']) {
      ids.set(one, await put(dashboard, one, { name: `${one} person` }))
    }
    const ask = (one: string) =>
      owner.call(requestDeletions, {
        params,
        body: { personIds: [ids.get(one)!], keepRecordings: false },
      })
    await dashboard.record('failing')
    await ask('failing')
    const failing = await erasureOptions(recordings, {
      blobs: overBlobs(recordings.blobs, async () => {
        throw new BlobFault('unreachable', 'The store is away.')
      }),
    })
    expect((await eraseAll(failing)).at(-1)).toBe('failed')
    await ask('erased')
    await eraseAll(await erasureOptions(recordings))
    await ask('open')

    const list = async (query: object) =>
      (await owner.call(listPersons, { params, query })).body.persons.map((p) => [
        p.externalId,
        p.state,
      ])
    expect(await list({})).toEqual([
      ['open', 'deleting'],
      ['failing', 'deletion_failed'],
      ['calm', 'present'],
    ])
    expect(await list({ state: 'deleting' })).toEqual([['open', 'deleting']])
    expect(await list({ state: 'deletion_failed' })).toEqual([['failing', 'deletion_failed']])
    expect(await list({ state: 'deletion_failed', search: 'FAILING p' })).toHaveLength(1)
    expect(await list({ state: 'deletion_failed', search: 'calm' })).toEqual([])
    expect(await list({ state: 'deleting', search: 'open' })).toHaveLength(1)

    // Somebody new under the id of a person that was erased has nothing to do with a job before.
    await eraseAll(await erasureOptions(recordings))
    await ask('failing')
    await eraseAll(await erasureOptions(recordings))
    await put(dashboard, 'failing')
    expect(await list({ state: 'deletion_failed' })).toEqual([])
  })
})

describe('the page of a person', () => {
  test('has the properties as they are stored, digit by digit', async ({ dashboard }) => {
    const viewer = await dashboard.member('viewer')
    await dashboard.send('/v1/persons', {
      method: 'POST',
      rawBody: '{"externalId":"exact","properties":{"big":12345678901234567890,"__proto__":1}}',
    })
    const id = await dashboard.personId('exact')
    const path = `/dashboard/v1/projects/${dashboard.projectId}/persons/${id}`
    const text = await (await viewer.fetch(path)).text()
    expect(text).toContain('12345678901234567890')
    expect(text).toContain('"__proto__"')
  })

  test('edits are those of PATCH: the same merge, the same refusals', async ({ dashboard }) => {
    const member = await dashboard.member('member')
    const id = await put(dashboard, 'ada', { plan: 'free', seats: 1, note: 'x' })
    const params = { projectId: dashboard.projectId, personId: id }
    const edit = (properties: Record<string, unknown>) =>
      member.call(updatePerson, { params, body: { properties } })
    const { person } = (await edit({ plan: 'pro', note: null, tags: ['a'] })).body
    expect(person.properties).toEqual({ plan: 'pro', seats: 1, tags: ['a'] })
    expect((await dashboard.send('/v1/persons/ada')).json.person.properties).toEqual(
      person.properties,
    )
    const wrong = { status: 400, code: 'invalid_request' }
    const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`k${i}`, i]))
    expect(await refusalOf(edit(many))).toEqual(wrong)
    expect(await refusalOf(edit({ long: 'x'.repeat(262_144) }))).toEqual(wrong)
    expect(await refusalOf(edit({ ['k'.repeat(201)]: 1 }))).toEqual(wrong)
    expect(await refusalOf(edit({ nul: '\0' }))).toEqual(wrong)
    const missing = { ...params, personId: '123' }
    expect(
      await refusalOf(member.call(updatePerson, { params: missing, body: { properties: {} } })),
    ).toEqual({ status: 404, code: 'person_not_found' })
  })

  test('tells of browsers, of sessions before identification, and of what happened', async ({
    dashboard,
  }) => {
    const member = await dashboard.member('member')
    const { browserId, sessionId } = await dashboard.record('ada')
    const personId = await dashboard.personId('ada')
    const params = { projectId: dashboard.projectId, personId }
    await member.call(updatePerson, { params, body: { properties: { plan: 'pro' } } })
    const { browsers } = (await member.call(listPersonBrowsers, { params })).body
    expect(browsers).toMatchObject([
      { id: browserId, sessions: 1, userAgent: 'Mozilla/5.0 (test)' },
    ])
    const { activity } = (await member.call(listPersonActivity, { params })).body
    expect(activity).toContainEqual(expect.objectContaining({ kind: 'session', sessionId }))
    expect(activity).toContainEqual(expect.objectContaining({ kind: 'browser_linked', browserId }))
    expect(activity[0]).toMatchObject({ kind: 'properties_edited', memberName: 'The member' })
    expect(activity.at(-1)?.kind).toBe('session')
    const detail = (await member.call(getPerson, { params })).body
    expect(detail).toMatchObject({ person: { browsers: 1, sessions: 1 }, deletion: null })
  })

  test('of browsers says where their limit is reached', async ({
    dashboard: { project },
    recordings,
    address,
    signIn,
  }) => {
    const ingestLimits = { perAddress: 0, perProject: 0, browsersPerPerson: 2 }
    const parts = { recordings, address, project, signIn }
    const dashboard = await startDashboard(parts, { app: { ingestLimits } })
    const viewer = await dashboard.member('viewer')
    const limits: (number | null)[] = []
    for (let n = 0; n < 2; n++) {
      await dashboard.record('ada')
      const params = { projectId: dashboard.projectId, personId: await dashboard.personId('ada') }
      limits.push((await viewer.call(listPersonBrowsers, { params })).body.limitReached)
    }
    expect(limits).toEqual([null, 2])
    await dashboard.close()
  })

  test('while deleting: who asked, which step, which attempt, when the next one starts', async ({
    dashboard,
    recordings,
  }) => {
    const owner = await dashboard.member('owner')
    await dashboard.record('ada')
    const personId = await dashboard.personId('ada')
    const params = { projectId: dashboard.projectId, personId }
    await owner.call(requestDeletions, {
      params,
      body: { personIds: [personId], keepRecordings: false },
    })
    const options = await erasureOptions(recordings, {
      retryDelaysSeconds: [30, 60, 120, 240],
      blobs: overBlobs(recordings.blobs, async () => {
        throw new BlobFault('unreachable', 'The store is away.')
      }),
    })
    expect(await eraseAll(options)).toEqual(['failed'])
    const { person, deletion } = (await owner.call(getPerson, { params })).body
    expect(person?.state).toBe('deleting')
    expect(deletion).toMatchObject({
      job: { status: 'running', externalId: 'ada', keepRecordings: false },
      personId,
      requestedBy: { kind: 'member', id: owner.memberId, name: 'The owner' },
      attempts: 1,
      attemptsMaximum: 5,
      step: expect.any(String),
      lastErrorCode: expect.stringMatching(/unreachable/),
      failedAt: null,
      hasReceipt: false,
      purgedAt: null,
    })
    expect(Date.parse(deletion!.nextAttemptAt!)).toBeGreaterThan(Date.now())
    const edit = owner.call(updatePerson, { params, body: { properties: { a: 1 } } })
    expect(await refusalOf(edit)).toEqual({ status: 409, code: 'person_being_deleted' })
  })

  test('a person that is gone has a page that says so, and a stranger has none', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    await dashboard.record('ada')
    const personId = await dashboard.personId('ada')
    const params = { projectId: dashboard.projectId, personId }
    await owner.call(requestDeletions, {
      params,
      body: { personIds: [personId], keepRecordings: true },
    })
    await eraseAll(await erasureOptions(recordings))
    const { person, deletion } = (await owner.call(getPerson, { params })).body
    expect(person).toBeNull()
    expect(deletion).toMatchObject({
      job: { status: 'completed', externalId: 'ada', keepRecordings: true },
      personId: null,
      hasReceipt: true,
      purgedAt: null,
    })
    // A new person under the same externalId is somebody else, with a page of its own.
    const again = await put(dashboard, 'ada')
    expect(again).not.toBe(personId)
    const page = (await owner.call(getPerson, { params: { ...params, personId: again } })).body
    expect(page).toMatchObject({ person: { state: 'present' }, deletion: null })

    const nobody = { status: 404, code: 'person_not_found' }
    for (const stranger of ['1', String(BigInt(personId) + 1n), '9223372036854775808', 'x', '-1']) {
      const asked = owner.call(getPerson, { params: { ...params, personId: stranger } })
      expect(await refusalOf(asked)).toEqual(nobody)
    }
    const other = await newProject(db)
    const elsewhere = { projectId: String(other.id), personId }
    expect(await refusalOf(owner.call(getPerson, { params: elsewhere }))).toEqual(nobody)
  })

  test('no path of the dashboard and no line of its log has an externalId or a property', async ({
    dashboard,
  }) => {
    const member = await dashboard.member('member')
    const personId = await put(dashboard, 'ada@secret.example', {
      name: 'Lovelace',
      city: 'Xanadu',
    })
    const params = { projectId: dashboard.projectId, personId }
    await member.call(getPerson, { params })
    await member.call(listPersons, { params, query: { search: 'lovelace' } })
    await member.call(updatePerson, { params, body: { properties: { city: 'Kubla' } } })
    expect(dashboard.logged()).toContain('/dashboard/v1/projects/:projectId/persons/:personId')
    expect(dashboard.logged()).not.toMatch(/secret\.example|lovelace|xanadu|kubla/i)
  })
})

describe('what is asked again', () => {
  test('is a 304 until it changes, and never cached', async ({ dashboard }) => {
    const viewer = await dashboard.member('viewer')
    const personId = await put(dashboard, 'ada', { plan: 'free' })
    const path = `/dashboard/v1/projects/${dashboard.projectId}/persons/${personId}`
    const first = await viewer.fetch(path)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(first.headers.get('cross-origin-resource-policy')).toBe('same-origin')
    const etag = first.headers.get('etag')!
    const same = await viewer.fetch(path, { headers: { 'if-none-match': etag } })
    expect(same.status).toBe(304)
    expect(await same.text()).toBe('')
    await put(dashboard, 'ada', { plan: 'pro' })
    const changed = await viewer.fetch(path, { headers: { 'if-none-match': etag } })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
  })
})
