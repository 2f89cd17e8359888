import { randomUUID } from 'node:crypto'
import { removeMember, updateMember } from '@lethe/contract/dashboard-members.ts'
import {
  addNote,
  getSharedEvents,
  listMoments,
  makeSessionLink,
  openShared,
  removeNote,
  withdrawSessionLink,
} from '@lethe/contract/dashboard-moments.ts'
import { listAuditEntries } from '@lethe/contract/dashboard-system.ts'
import { describe, expect } from 'vitest'
import { type Dashboard, eraseAll, erasureOptions, refusalOf, test } from './dashboard-fixtures.ts'
import { databaseZones, newCanary, scanZones } from './residue-fixtures.ts'

const events = '{"type":4,"timestamp":1}\n'

async function recorded(dashboard: Dashboard, externalId: string = randomUUID()) {
  const { sessionId } = await dashboard.record(externalId, { one: [events], two: [events] })
  return { externalId, params: { projectId: dashboard.projectId, sessionId } }
}

const tokenOf = (link: string) => new URL(link).hash.slice(1)

describe('a note at a moment of a recording', () => {
  test('has its time, text and author, and notes are in the order of their moments', async ({
    dashboard,
  }) => {
    const { params } = await recorded(dashboard)
    const member = await dashboard.member('member')
    const note = (at: number, text: string) => member.call(addNote, { params, body: { at, text } })
    await note(9_000, 'then this')
    const { status, body } = await note(1_500, 'first this')
    expect([status, body.text, body.at, body.member]).toEqual([
      201,
      'first this',
      1_500,
      { id: member.memberId, name: 'The member' },
    ])
    const { notes } = (await member.call(listMoments, { params })).body
    expect(notes.map(({ at, text }) => [at, text])).toEqual([
      [1_500, 'first this'],
      [9_000, 'then this'],
    ])
  })

  test('can be removed by its author or by who manages members; the audit log says so, without its text', async ({
    dashboard,
  }) => {
    const { externalId, params } = await recorded(dashboard)
    const [member, other, owner] = await Promise.all([
      dashboard.member('member'),
      dashboard.member('member'),
      dashboard.member('owner'),
    ])
    const text = newCanary()
    const write = async () =>
      (await member.call(addNote, { params, body: { at: 0, text } })).body.id
    const remove = (who: typeof member, noteId: string) =>
      who.call(removeNote, { params: { ...params, noteId } })
    const [first, second] = [await write(), await write()]
    expect(await refusalOf(remove(other, first))).toEqual({ status: 404, code: 'not_found' })
    await remove(member, first)
    await remove(owner, second)
    const { entries } = (
      await owner.call(listAuditEntries, {
        query: { projectId: params.projectId, personId: await dashboard.personId(externalId) },
      })
    ).body
    const said = entries.filter(({ action }) => action.startsWith('session.note_'))
    expect(said.map(({ action }) => action)).toEqual([
      'session.note_removed',
      'session.note_removed',
      'session.note_added',
      'session.note_added',
    ])
    expect(JSON.stringify(said)).not.toContain(text)
    expect(dashboard.logged()).not.toContain(text)
  })

  test('is refused if there is no such recording, or if it has too many notes', async ({
    dashboard,
    db,
  }) => {
    const { params } = await recorded(dashboard)
    const owner = await dashboard.member('owner')
    const body = { at: 0, text: 'x' }
    const nowhere = { ...params, sessionId: randomUUID() }
    const refusal = await refusalOf(owner.call(addNote, { params: nowhere, body }))
    expect(refusal).toEqual({ status: 404, code: 'session_not_found' })
    await db.sql`
      insert into session_notes (project_id, session_id, at_milliseconds, text, member_id)
      select ${params.projectId}, ${params.sessionId}, n, 'x', ${owner.memberId}
      from generate_series(1, 500) n`
    const full = await refusalOf(owner.call(addNote, { params, body }))
    expect(full).toEqual({ status: 400, code: 'invalid_request' })
  })
})

describe('a link to a moment', () => {
  test('shows the recording to anyone who has it, and nothing about its person', async ({
    dashboard,
  }) => {
    const { externalId, params } = await recorded(dashboard)
    const owner = await dashboard.member('owner')
    const { body } = await owner.call(makeSessionLink, { params, body: { at: 4_000, days: 7 } })
    expect(body.link).toMatch(/\/shared#[1-9]\d*\.[\w-]{43}$/)
    const stranger = dashboard.visitor()
    const token = tokenOf(body.link)
    const shown = (await stranger.call(openShared, { body: { token } })).body
    expect([shown.at, shown.tabs.map(({ id }) => id)]).toEqual([4_000, ['one', 'two']])
    const secrets = [externalId, await dashboard.personId(externalId), params.sessionId]
    for (const secret of secrets) expect(JSON.stringify(shown)).not.toContain(secret)
    const read = (tab: string, which = token) =>
      stranger.fetch(getSharedEvents.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: which, tab }),
      })
    expect(await (await read('one')).text()).toBe(events)
    expect((await read('one', `${token}x`)).status).toBe(410)
    expect(dashboard.logged()).not.toContain(token)

    const query = { projectId: params.projectId, action: 'session.watched' as const }
    const [watched] = (await owner.call(listAuditEntries, { query })).body.entries
    expect([watched?.member, watched?.details]).toEqual([null, { link: body.id }])
  })

  test.for<[string, (dashboard: Dashboard, made: Made) => Promise<unknown>]>([
    [
      'is withdrawn',
      (_, { owner, params, linkId }) =>
        owner.call(withdrawSessionLink, { params: { ...params, linkId } }),
    ],
    [
      'ends by itself',
      (_, { sql }) => sql`update session_links set expires_at = app_now() where project_id > 0`,
    ],
    [
      'loses its maker',
      (_, { owner, maker }) => owner.call(removeMember, { params: { memberId: maker.memberId } }),
    ],
    [
      'has a maker with other rights',
      (_, { owner, maker }) =>
        owner.call(updateMember, {
          params: { memberId: maker.memberId },
          body: { role: 'member' },
        }),
    ],
    [
      'has a person who is erased',
      async (dashboard, { externalId, options }) => {
        await dashboard.send(`/v1/persons/${externalId}`, { method: 'DELETE' })
        await eraseAll(options)
      },
    ],
    [
      'has a person who is erased, and keeps its recording',
      async (dashboard, made) => {
        await dashboard.send(`/v1/persons/${made.externalId}?keepRecordings=true`, {
          method: 'DELETE',
        })
        await eraseAll(made.options)
      },
    ],
  ])('works no more once it %s', async ([, end], { dashboard, db, recordings }) => {
    const { externalId, params } = await recorded(dashboard)
    const owner = await dashboard.member('owner')
    const maker = await dashboard.member('admin')
    const made = await maker.call(makeSessionLink, { params, body: { at: 0, days: 1 } })
    const token = tokenOf(made.body.link)
    const open = () => dashboard.visitor().call(openShared, { body: { token } })
    expect((await open()).status).toBe(200)
    const options = await erasureOptions(recordings)
    await end(dashboard, {
      owner,
      maker,
      params,
      externalId,
      options,
      linkId: made.body.id,
      sql: db.sql,
    })
    expect(await refusalOf(open())).toEqual({ status: 410, code: 'link_invalid' })
  })
})

interface Made {
  owner: Awaited<ReturnType<Dashboard['member']>>
  maker: Awaited<ReturnType<Dashboard['member']>>
  params: { projectId: string; sessionId: string }
  externalId: string
  linkId: string
  options: Awaited<ReturnType<typeof erasureOptions>>
  sql: import('../src/sql.ts').Sql
}

test.for([
  ['with the recordings', ''],
  ['and keeps the recordings', '?keepRecordings=true'],
])(
  'an erasure %s leaves no notes or links, and no new ones can be made',
  async ([, query], { dashboard, db, recordings }) => {
    const { externalId, params } = await recorded(dashboard)
    const other = await recorded(dashboard)
    const owner = await dashboard.member('owner')
    const [text, kept] = [newCanary(), newCanary()]
    await owner.call(addNote, { params, body: { at: 0, text: `She said ${text}` } })
    await owner.call(addNote, { params: other.params, body: { at: 0, text: kept } })
    await owner.call(makeSessionLink, { params, body: { at: 0, days: 1 } })
    await dashboard.send(`/v1/persons/${externalId}${query}`, { method: 'DELETE' })
    await eraseAll(await erasureOptions(recordings))
    const hits = scanZones(await databaseZones('database', db.sql), [text, kept])
    expect(hits.map(({ zone, text }) => [zone, text])).toEqual([
      ['database public.session_notes', kept],
    ])
    expect(
      await db.sql`
    select from session_links
    where project_id = ${params.projectId} and session_id = ${params.sessionId}`,
    ).toEqual([])
    const late = await refusalOf(owner.call(addNote, { params, body: { at: 0, text: 'late' } }))
    expect(late?.code).toBe(query ? 'person_being_deleted' : 'session_not_found')
  },
)
