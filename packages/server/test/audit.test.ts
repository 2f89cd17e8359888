import { pathOf } from '@lethe/contract/dashboard-client.ts'
import { exportDeletions, requestDeletions } from '@lethe/contract/dashboard-deletions.ts'
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
  createKey,
  createProject,
  makeIdentifySecret,
  removeIdentifySecret,
  revokeKey,
  rotateKey,
  updateKey,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { type AuditAction, listAuditEntries } from '@lethe/contract/dashboard-system.ts'
import {
  createWebhook,
  removeWebhook,
  resendDelivery,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@lethe/contract/dashboard-webhooks.ts'
import { describe, expect } from 'vitest'
import { eraseAll, erasureOptions, type SignedInVisitor, test } from './dashboard-fixtures.ts'

async function entriesOf(owner: SignedInVisitor, query: object = {}) {
  return (await owner.call(listAuditEntries, { query: { limit: 100, ...query } })).body.entries
}

describe('the audit log', () => {
  test('has an entry for whatever members do, with who, when and to what', async ({
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
    // Whoever reads it sees which key and which member it was, also when they are gone.
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

  test('cannot be changed by anything that a member can call', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await owner.fetch('/dashboard/v1/audit-log', { method })
      expect(answer.status).toBe(405)
    }
  })
})
