import { generateKeyPairSync } from 'node:crypto'
import { pathOf } from '@lethe/contract/dashboard-client.ts'
import {
  exportDeletions,
  getReceipt,
  requestDeletions,
} from '@lethe/contract/dashboard-deletions.ts'
import {
  inviteMember,
  makeResetLink,
  removeMember,
  signIn,
  updateMember,
  withdrawInvitation,
} from '@lethe/contract/dashboard-members.ts'
import { listPersonActivity, updatePerson } from '@lethe/contract/dashboard-persons.ts'
import {
  addIdentityKey,
  createKey,
  createProject,
  makeIdentifySecret,
  removeIdentifySecret,
  removeIdentityKey,
  revokeKey,
  rotateKey,
  updateKey,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { getSessionEvents } from '@lethe/contract/dashboard-sessions.ts'
import {
  type AuditAction,
  exportAuditEntries,
  listAuditEntries,
} from '@lethe/contract/dashboard-system.ts'
import {
  createWebhook,
  removeWebhook,
  resendDelivery,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@lethe/contract/dashboard-webhooks.ts'
import { describe, expect } from 'vitest'
import { archiveAudit, readAuditArchive } from '../src/members/audit-archive.ts'
import { keepAudit } from '../src/members/audit-store.ts'
import {
  eraseAll,
  erasureOptions,
  refusalOf,
  type SignedInVisitor,
  test,
} from './dashboard-fixtures.ts'
import { shiftClock } from './recordings-fixtures.ts'

async function entriesOf(owner: SignedInVisitor, query: object = {}) {
  return (await owner.call(listAuditEntries, { query: { limit: 100, ...query } })).body.entries
}

describe('the audit log', () => {
  test('has an entry for everything members do: who did what to whom, and when', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const other = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const { memberId } = other
    const done: AuditAction[] = []
    const act = async <T>(action: AuditAction, call: Promise<T>): Promise<T> => {
      const result = await call
      done.push(action)
      const [entry] = await entriesOf(owner, { action, memberId: owner.memberId })
      expect(entry).toMatchObject({ action, member: { id: owner.memberId, name: 'The owner' } })
      return result
    }

    await act('project.created', owner.call(createProject, { body: { name: 'made' } }))
    await act('project.changed', owner.call(updateProject, { params, body: { masking: 'open' } }))
    await act('project.identify_secret_made', owner.call(makeIdentifySecret, { params, body: {} }))
    await act('project.identify_secret_removed', owner.call(removeIdentifySecret, { params }))
    const publicKey = String(
      generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }),
    )
    const added = await act(
      'project.identity_key_added',
      owner.call(addIdentityKey, { params, body: { publicKey } }),
    )
    const identityKey = { ...params, keyId: added.body.keys[0]?.id as string }
    await act(
      'project.identity_key_removed',
      owner.call(removeIdentityKey, { params: identityKey }),
    )

    const key = await act(
      'key.created',
      owner.call(createKey, { params, body: { kind: 'public', name: 'shop' } }),
    )
    const keyPath = { ...params, keyId: key.body.key.id }
    const origins = { allowedOrigins: ['https://shop.example'] }
    await act('key.changed', owner.call(updateKey, { params: keyPath, body: origins }))
    const overlap = { overlapSeconds: 60 }
    await act('key.rotated', owner.call(rotateKey, { params: keyPath, body: overlap }))
    await act('key.revoked', owner.call(revokeKey, { params: keyPath, body: {} }))

    const invited = await act(
      'member.invited',
      owner.call(inviteMember, {
        body: { email: 'eve@example.com', role: 'viewer', mayDeletePersons: false },
      }),
    )
    const invitationId = invited.body.invitation.id
    await act(
      'member.invitation_withdrawn',
      owner.call(withdrawInvitation, { params: { invitationId } }),
    )
    await act(
      'member.changed',
      owner.call(updateMember, { params: { memberId }, body: { role: 'member' } }),
    )
    await act(
      'member.reset_link_made',
      owner.call(makeResetLink, { params: { memberId }, body: {} }),
    )
    await act('member.removed', owner.call(removeMember, { params: { memberId } }))

    await dashboard.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    const personId = await dashboard.personId('ada')
    const edit = { properties: { plan: 'pro' } }
    await act(
      'person.edited',
      owner.call(updatePerson, { params: { ...params, personId }, body: edit }),
    )
    await act(
      'person.deletion_requested',
      owner.call(requestDeletions, {
        params,
        body: { personIds: [personId], keepRecordings: false },
      }),
    )
    await act('deletions.exported', owner.fetch(pathOf(exportDeletions, { params })))

    const url = 'https://hooks.example.com/secret-path'
    const hook = await act(
      'webhook.created',
      owner.call(createWebhook, { params, body: { url, events: ['person.deletion.failed'] } }),
    )
    const hookPath = { ...params, webhookId: hook.body.webhook.id }
    await act(
      'webhook.changed',
      owner.call(updateWebhook, { params: hookPath, body: { url: `${url}2` } }),
    )
    await act(
      'webhook.secret_rotated',
      owner.call(rotateWebhookSecret, { params: hookPath, body: {} }),
    )
    const sent = await act(
      'webhook.tested',
      owner.call(testWebhook, { params: hookPath, body: {} }),
    )
    const deliveryPath = { ...hookPath, deliveryId: sent.body.delivery.id }
    await act(
      'webhook.delivery_resent',
      owner.call(resendDelivery, { params: deliveryPath, body: {} }),
    )
    await act('webhook.removed', owner.call(removeWebhook, { params: hookPath }))

    // Each entry of what was done is there once, and none has a secret or a property in it.
    const entries = await entriesOf(owner, { memberId: owner.memberId })
    for (const action of done) {
      expect(entries.filter((one) => one.action === action)).toHaveLength(1)
    }
    const text = JSON.stringify(entries)
    expect(text).not.toMatch(/"plan"|"pro"|secret-path|whsec_|sk_|"ada"/)
    expect(entries.find((one) => one.action === 'member.removed')?.subject?.id).toBe(memberId)
    // The entry names the key and the member, also when they are gone.
    for (const entry of entries) {
      if (entry.action.startsWith('key.')) expect(entry.details).toMatchObject({ name: 'shop' })
      if (/^member\.(?:changed|removed|reset_link_made)$/.test(entry.action)) {
        expect(entry.details, entry.action).toMatchObject({ email: other.email })
      }
    }
  })

  test('notes sign-ins, and those that failed where there is such a member', async ({
    dashboard,
    db,
  }) => {
    await db.sql`delete from auth.limits`
    const owner = await dashboard.member('owner')
    const viewer = await dashboard.member('viewer')
    const before = await entriesOf(owner)
    for (const email of [viewer.email, 'nobody@example.com']) {
      await dashboard
        .visitor()
        .call(signIn, { body: { email, password: 'wrong horse battery' } })
        .catch(() => {})
    }
    const [failed, ...rest] = await entriesOf(owner)
    expect(rest).toEqual(before)
    expect(failed).toMatchObject({
      action: 'member.sign_in_failed',
      member: null,
      subject: { kind: 'member', id: viewer.memberId },
      details: { email: viewer.email },
    })
    const signedIn = before.filter((one) => one.action === 'member.signed_in')
    expect(signedIn.map((one) => one.member?.id)).toContain(viewer.memberId)
  })

  test('is paged and filtered, and keeps the entries of members who were removed', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const admin = await dashboard.member('admin')
    const params = { projectId: dashboard.projectId }
    for (const retentionDays of [1, 2, 3]) {
      await admin.call(updateProject, { params, body: { retentionDays } })
    }
    await owner.call(removeMember, { params: { memberId: admin.memberId } })
    const query = { ...params, action: 'project.changed' as const, limit: 2 }
    const first = (await owner.call(listAuditEntries, { query })).body
    expect(first.entries.map((one) => one.details)).toEqual([
      { retentionDays: 3 },
      { retentionDays: 2 },
    ])
    const rest = { ...query, cursor: first.nextCursor! }
    const second = (await owner.call(listAuditEntries, { query: rest })).body
    expect(second.entries).toMatchObject([
      { details: { retentionDays: 1 }, member: { id: admin.memberId, name: null } },
    ])
    expect(second.nextCursor).toBeNull()
    expect(await entriesOf(owner, { projectId: 'x' })).toEqual([])
    expect(await entriesOf(owner, { memberId: 'x' })).toEqual([])
  })

  test('forgets which person it was when the person is erased, and forgets nobody else', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const ids: string[] = []
    for (const externalId of ['ada', 'bob']) {
      await dashboard.send('/v1/persons', { method: 'POST', body: { externalId } })
      const personId = await dashboard.personId(externalId)
      ids.push(personId)
      const body = { properties: { plan: 'pro' } }
      await owner.call(updatePerson, { params: { ...params, personId }, body })
    }
    await owner.call(requestDeletions, {
      params,
      body: { personIds: [ids[0]!], keepRecordings: false },
    })
    await eraseAll(await erasureOptions(recordings))
    const edits = await entriesOf(owner, { ...params, action: 'person.edited' })
    expect(edits.map((one) => one.subject)).toEqual([
      { kind: 'person', id: ids[1] },
      { kind: 'person', id: null },
    ])
    const [row] = await db.sql<{ text: string }>`
      select string_agg(a::text, ' ') as text from audit_log a
      where project_id = ${dashboard.project.id}`
    expect(row?.text).not.toContain(ids[0])
    const { activity } = (
      await owner.call(listPersonActivity, { params: { ...params, personId: ids[1]! } })
    ).body
    expect(activity[0]?.kind).toBe('properties_edited')
  })

  test('has who watched a recording and who downloaded a receipt, members and keys', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const { sessionId } = await dashboard.record('ada')
    const anonymous = await dashboard.record()
    const personId = await dashboard.personId('ada')
    const watch = (id: string) =>
      viewer.fetch(
        pathOf(getSessionEvents, { params: { ...params, sessionId: id }, query: { tab: 'tab1' } }),
      )
    for (const id of [sessionId, sessionId, anonymous.sessionId, 'x']) await watch(id)
    const byKey = await dashboard.send(`/v1/sessions/${sessionId}/events`)
    expect(byKey.status).toBe(200)
    await dashboard.send('/v1/sessions/x/events')
    const watched = await entriesOf(owner, { ...params, action: 'session.watched' })
    const subject = { kind: 'session', id: sessionId }
    expect(watched).toMatchObject([
      { member: null, key: { name: 'secret' }, personId, subject, addressRange: '127.0.0.0/24' },
      { member: { id: viewer.memberId }, personId: null, subject: { id: anonymous.sessionId } },
      // The pages that follow are the same watching.
      { member: { id: viewer.memberId }, key: null, personId, subject },
    ])

    const { json } = await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
    const jobId = json.job.id
    const asked = { kind: 'deletion_job', id: jobId }
    const requested = await entriesOf(owner, { ...params, action: 'person.deletion_requested' })
    expect(requested).toMatchObject([
      { member: null, key: { name: 'secret' }, personId, subject: asked },
    ])
    expect(await entriesOf(owner, { ...params, personId })).toHaveLength(3)
    await eraseAll(await erasureOptions(recordings))
    // Nothing leads to the person any more, nor to what was recorded of them.
    expect(await entriesOf(owner, { ...params, personId })).toEqual([])
    const [row] = await db.sql<{ text: string }>`
      select string_agg(a::text, ' ') as text from audit_log a
      where project_id = ${dashboard.project.id}`
    for (const gone of [personId, sessionId]) expect(row?.text).not.toContain(gone)
    expect(row?.text).toContain(anonymous.sessionId)

    await viewer.call(getReceipt, { params: { ...params, jobId } })
    expect((await dashboard.send(`/v1/deletion-jobs/${jobId}/receipt`)).status).toBe(200)
    await dashboard.send(`/v1/deletion-jobs/${params.projectId}/receipt`)
    const downloaded = await entriesOf(owner, { ...params, action: 'receipt.downloaded' })
    expect(downloaded).toMatchObject([
      { member: null, key: { name: 'secret' }, personId: null, subject: asked },
      { member: { id: viewer.memberId }, key: null, personId: null, subject: asked },
    ])
  })

  test('is filtered by person and time, and exported as CSV', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    for (const externalId of ['ada', 'bob']) {
      await dashboard.send('/v1/persons', { method: 'POST', body: { externalId } })
      const personId = await dashboard.personId(externalId)
      const body = { properties: { plan: 'pro' } }
      await owner.call(updatePerson, { params: { ...params, personId }, body })
    }
    const personId = await dashboard.personId('bob')
    const [entry, ...others] = await entriesOf(owner, { ...params, personId })
    expect(others).toEqual([])
    expect(entry).toMatchObject({ action: 'person.edited', personId, subject: { id: personId } })
    const at = (entry as { at: string }).at
    const later = new Date(Date.parse(at) + 1).toISOString()
    expect(await entriesOf(owner, { ...params, personId, from: at, to: later })).toEqual([entry])
    expect(await entriesOf(owner, { ...params, personId, to: at })).toEqual([])
    expect(await entriesOf(owner, { ...params, personId, from: later })).toEqual([])
    expect(await entriesOf(owner, { personId: 'x' })).toEqual([])
    const refused = owner.call(listAuditEntries, { query: { limit: 1, from: 'yesterday' } })
    expect(await refusalOf(refused)).toMatchObject({ status: 400 })

    const path = pathOf(exportAuditEntries, { query: { ...params, action: 'person.edited' } })
    const answer = await owner.fetch(path)
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/)
    const [head = '', ...lines] = (await answer.text()).trimEnd().split('\r\n')
    expect(head).toBe(
      '"id","at","action","member_id","member_name","key_id","key_name","address_range","project_id","person_id","subject_kind","subject_id","details"',
    )
    expect(lines).toHaveLength(2)
    expect(lines[0]).toContain(`"${owner.memberId}","The owner","","","127.0.0.0/24"`)
    expect((await entriesOf(owner))[0]?.action).toBe('audit.exported')
  })

  test('keeps entries for the configured time, and names former members nowhere else', async ({
    dashboard,
    db,
    address,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const { sessionId } = await dashboard.record('ada')
    const personId = await dashboard.personId('ada')
    await dashboard.send(`/v1/sessions/${sessionId}/events`)
    const query = { ...params, action: 'session.watched' as const }
    await keepAudit(db.sql, 10)
    expect(await entriesOf(owner, query)).toMatchObject([{ personId, subject: { id: sessionId } }])

    // As by a retention, and by a backup that was brought back.
    await db.sql`delete from chunks where project_id = ${dashboard.project.id}`
    await db.sql`delete from sessions where id = ${sessionId}`
    await keepAudit(db.sql, 10)
    expect(await entriesOf(owner, query)).toMatchObject([{ subject: { id: null } }])

    await shiftClock(address, 9 * 86_400)
    await keepAudit(db.sql, 10)
    const count = async () => (await db.sql`select from audit_log`).length
    expect(await count()).toBeGreaterThan(0)
    await shiftClock(address, 11 * 86_400)
    await keepAudit(db.sql, 10)
    expect(await count()).toBe(0)
    await shiftClock(address, 0)
  })

  test('moves old entries to the blob store, sealed, without whom they were about', async ({
    dashboard,
    recordings,
    db,
    address,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const { sessionId } = await dashboard.record('ada')
    const personId = await dashboard.personId('ada')
    const body = { properties: { plan: 'pro' } }
    await owner.call(updatePerson, { params: { ...params, personId }, body })
    await dashboard.send(`/v1/sessions/${sessionId}/events`)
    const old = await entriesOf(owner)
    await shiftClock(address, 10 * 86_400)
    await owner.call(updatePerson, {
      params: { ...params, personId },
      body: { properties: { plan: 'free' } },
    })

    const store = { blobs: recordings.blobs, masterKeys: recordings.browserKeys.masterKeys }
    const count = async () => (await db.sql`select from audit_log`).length
    const before = await count()
    expect(await archiveAudit(db.sql, store, 5 * 86_400)).toBe(before - 1)
    expect(await archiveAudit(db.sql, store, 5 * 86_400)).toBe(0)
    expect(await entriesOf(owner)).toMatchObject([{ action: 'person.edited', personId }])

    const text = (await Array.fromAsync(readAuditArchive(store))).join('')
    const archived = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(archived).toHaveLength(before - 1)
    const ids = archived.map(({ id }) => id)
    expect(old.map(({ id }) => id).filter((id) => !ids.includes(id))).toEqual([])
    expect(archived.find(({ action }) => action === 'person.edited')).toMatchObject({
      memberId: owner.memberId,
      projectId: dashboard.projectId,
      subjectKind: 'person',
      subjectId: null,
    })
    for (const gone of [`"${personId}"`, sessionId]) expect(text).not.toContain(gone)
    for await (const key of recordings.blobs.list('audit/archive/')) {
      const bytes = Buffer.from(await recordings.blobs.get(key)).toString('latin1')
      expect(bytes).not.toContain(owner.memberId)
    }
    await shiftClock(address, 0)
  })

  test('cannot be changed by anything that a member can call', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await owner.fetch('/dashboard/v1/audit-log', { method })
      expect(answer.status).toBe(405)
    }
  })
})
