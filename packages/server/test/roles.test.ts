import { randomUUID } from 'node:crypto'
import * as deletions from '@lethe/contract/dashboard-deletions.ts'
import * as home from '@lethe/contract/dashboard-home.ts'
import type { Role } from '@lethe/contract/dashboard-members.ts'
import * as members from '@lethe/contract/dashboard-members.ts'
import * as moments from '@lethe/contract/dashboard-moments.ts'
import * as persons from '@lethe/contract/dashboard-persons.ts'
import * as projects from '@lethe/contract/dashboard-projects.ts'
import * as sessions from '@lethe/contract/dashboard-sessions.ts'
import * as system from '@lethe/contract/dashboard-system.ts'
import * as webhooks from '@lethe/contract/dashboard-webhooks.ts'
import { describe, expect } from 'vitest'
import { access } from '../src/members/access.ts'
import { type Dashboard, test, type Visitor } from './dashboard-fixtures.ts'

interface Endpoint {
  method: string
  url: string
  schema: { operationId: string; body?: unknown }
}

const endpoints = [deletions, home, members, moments, persons, projects, sessions, system, webhooks]
  .flatMap((module) => Object.values(module) as unknown[])
  .filter((one): one is Endpoint => typeof one === 'object' && one !== null && 'url' in one)

/**
 * What each role may do, written down a second time and by hand: the server's own table is not
 * asked. `D` is for members who may delete people.
 */
const expected: Record<string, string> = {
  // Everybody who is signed in.
  updateMe: 'owner admin member viewer',
  changePassword: 'owner admin member viewer',
  startSecondFactor: 'owner admin member viewer',
  confirmSecondFactor: 'owner admin member viewer',
  removeSecondFactor: 'owner admin member viewer',
  listPasskeys: 'owner admin member viewer',
  startPasskey: 'owner admin member viewer',
  addPasskey: 'owner admin member viewer',
  removePasskey: 'owner admin member viewer',
  listSignIns: 'owner admin member viewer',
  endOtherSignIns: 'owner admin member viewer',
  checkProof: 'owner admin member viewer',
  proveIdentity: 'owner admin member viewer',
  listProjects: 'owner admin member viewer',
  getProject: 'owner admin member viewer',
  getProjectSummary: 'owner admin member viewer',
  getHome: 'owner admin member viewer',
  getInstallState: 'owner admin member viewer',
  listPersonSummaries: 'owner admin member viewer',
  getPersonDetail: 'owner admin member viewer',
  listPersonBrowsers: 'owner admin member viewer',
  listPersonActivity: 'owner admin member viewer',
  listDeletions: 'owner admin member viewer',
  getDeletion: 'owner admin member viewer',
  getReceipt: 'owner admin member viewer',
  exportDeletions: 'owner admin member viewer',
  listSessions: 'owner admin member viewer',
  getSession: 'owner admin member viewer',
  getSessionEvents: 'owner admin member viewer',
  listMoments: 'owner admin member viewer',
  // Those who work with persons.
  updatePersonDetail: 'owner admin member',
  addNote: 'owner admin member',
  removeNote: 'owner admin member',
  listKeys: 'owner admin member',
  listMembers: 'owner admin member',
  // Those who may delete persons, whatever their role.
  previewDeletion: 'D',
  requestDeletions: 'D',
  // Those who run the installation.
  makeSessionLink: 'owner admin',
  withdrawSessionLink: 'owner admin',
  createProject: 'owner admin',
  updateProject: 'owner admin',
  makeIdentifySecret: 'owner admin',
  removeIdentifySecret: 'owner admin',
  listIdentityKeys: 'owner admin member',
  addIdentityKey: 'owner admin',
  removeIdentityKey: 'owner admin',
  createKey: 'owner admin',
  rotateKey: 'owner admin',
  revokeKey: 'owner admin',
  updateKey: 'owner admin',
  inviteMember: 'owner admin',
  withdrawInvitation: 'owner admin',
  updateMember: 'owner admin',
  removeMember: 'owner admin',
  makeResetLink: 'owner admin',
  listWebhooks: 'owner admin',
  createWebhook: 'owner admin',
  updateWebhook: 'owner admin',
  removeWebhook: 'owner admin',
  rotateWebhookSecret: 'owner admin',
  testWebhook: 'owner admin',
  listDeliveries: 'owner admin',
  resendDelivery: 'owner admin',
  listAuditEntries: 'owner admin',
  exportAuditEntries: 'owner admin',
  getSystem: 'owner admin',
}

/** What a sign-in alone is not enough for, written down a second time too. */
const needsProof = [
  'confirmSecondFactor',
  'makeSessionLink',
  'createProject',
  'updateProject',
  'makeIdentifySecret',
  'removeIdentifySecret',
  'addIdentityKey',
  'removeIdentityKey',
  'startPasskey',
  'addPasskey',
  'removePasskey',
  'createKey',
  'rotateKey',
  'revokeKey',
  'updateKey',
  'inviteMember',
  'withdrawInvitation',
  'updateMember',
  'removeMember',
  'makeResetLink',
  'createWebhook',
  'updateWebhook',
  'removeWebhook',
  'rotateWebhookSecret',
  'exportDeletions',
  'exportAuditEntries',
]
/** These take the password and the code in the request itself. */
const provesByItself = [
  'changePassword',
  'startSecondFactor',
  'removeSecondFactor',
  'proveIdentity',
]
/** These need a proof for more than one person: see step-up.test.ts. */
const needsProofForSeveral = ['requestDeletions']

const forAnyone = [
  'getMe',
  'checkLink',
  'setUp',
  'acceptInvitation',
  'resetPassword',
  'signIn',
  'signInWithCode',
  'startPasskeyUse',
  'signOut',
  'openShared',
  'getSharedEvents',
]

/**
 * Tries an action on a project that is there and things in it that are not, with a body that no
 * endpoint takes: a member who may do it gets past the check of permissions, and nothing happens.
 */
async function tryAction(visitor: Visitor, { projectId }: Dashboard, endpoint: Endpoint) {
  const ids: Record<string, string> = { projectId, personId: '1' }
  const path = endpoint.url.replace(/:(\w+)/g, (_, name) => ids[name] ?? randomUUID())
  const answer = await visitor.fetch(path, {
    method: endpoint.method,
    ...(endpoint.schema.body !== undefined && {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ unknown: true }),
    }),
  })
  const text = await answer.text()
  const code = answer.ok ? undefined : (JSON.parse(text) as { error: { code: string } }).error.code
  return { status: answer.status, code }
}

describe('who may do what', () => {
  test('is written down for every endpoint of the contract', () => {
    const operations = endpoints.map((one) => one.schema.operationId).sort()
    expect(operations.length).toBeGreaterThan(55)
    expect(new Set(operations).size).toBe(operations.length)
    expect(Object.keys(access).sort()).toEqual(operations)
    expect([...Object.keys(expected), ...forAnyone].sort()).toEqual(operations)
  })

  for (const role of ['owner', 'admin', 'member', 'viewer'] as Role[]) {
    for (const mayDeletePersons of role === 'owner' ? [true] : [false, true]) {
      const may = mayDeletePersons ? 'who may delete persons' : 'who may not delete persons'
      test(`each action is tried by a ${role} ${may}`, async ({ dashboard }) => {
        const visitor = await dashboard.member(role, { mayDeletePersons })
        for (const endpoint of endpoints) {
          const { operationId } = endpoint.schema
          const who = expected[operationId]
          if (who === undefined) continue
          const isAllowed = who === 'D' ? mayDeletePersons : who.split(' ').includes(role)
          const { status, code } = await tryAction(visitor, dashboard, endpoint)
          const refused = status === 403 && code === 'forbidden'
          expect({ operationId, isAllowed: !refused }).toEqual({ operationId, isAllowed })
          expect(status, operationId).not.toBe(401)
          expect(status, operationId).toBeLessThan(500)
        }
        expect((await visitor.call(members.getMe, {})).body.member?.role).toBe(role)
      })
    }
  }

  test('a sign-in that is older than its last proof is enough for the rest alone', async ({
    dashboard,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    await db.sql`update auth.sign_ins set proven_at = proven_at - interval '601 seconds'`
    for (const endpoint of endpoints) {
      const { operationId } = endpoint.schema
      const { status, code } = await tryAction(owner, dashboard, endpoint)
      const refused = status === 403 && code === 'reauthentication_required'
      expect({ operationId, refused }).toEqual({
        operationId,
        refused: needsProof.includes(operationId),
      })
    }
    const written = Object.entries(access).filter(([, rule]) => typeof rule !== 'string')
    expect(written.map(([operationId]) => operationId).sort()).toEqual(
      [...needsProof, ...needsProofForSeveral].sort(),
    )
    for (const operationId of [...provesByItself, ...needsProof, ...needsProofForSeveral]) {
      expect(expected, operationId).toHaveProperty(operationId)
    }
  })

  test('nobody who is not signed in may do any of it', async ({ dashboard }) => {
    const visitor = dashboard.visitor()
    for (const endpoint of endpoints) {
      const { operationId } = endpoint.schema
      const { status, code } = await tryAction(visitor, dashboard, endpoint)
      if (forAnyone.includes(operationId)) expect(code, operationId).not.toBe('unauthorized')
      else
        expect({ operationId, status, code }).toMatchObject({ status: 401, code: 'unauthorized' })
    }
  })

  test('a secret key is not accepted here, and a sign-in is not accepted by the server API', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const byKey = await dashboard.send('/dashboard/v1/projects')
    expect(byKey.status).toBe(401)
    expect((await owner.fetch('/v1/persons')).status).toBe(401)
  })

  test('the dashboard shows actions by the same rules as the server enforces', async ({
    dashboard,
  }) => {
    const viewer = await dashboard.member('viewer', { mayDeletePersons: true })
    const { permissions } = (await viewer.call(members.getMe, {})).body
    expect(permissions).toEqual([
      'projects.read',
      'persons.read',
      'persons.delete',
      'sessions.read',
      'deletions.read',
    ])
  })

  test('nothing of a project is returned under another one', async ({ db, dashboard }) => {
    const owner = await dashboard.member('owner')
    const other = await owner.call(projects.createProject, { body: { name: 'another' } })
    const otherId = other.body.project.id
    const key = (
      await owner.call(projects.createKey, {
        params: { projectId: otherId },
        body: { kind: 'secret', name: 'its key' },
      })
    ).body.key
    const wrong = { projectId: dashboard.projectId, keyId: key.id }
    const refused = await owner.fetch(
      `/dashboard/v1/projects/${wrong.projectId}/keys/${wrong.keyId}/revoke`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    )
    expect(refused.status).toBe(404)
    const [row] = await db.sql<{ revoked: boolean }>`
      select revoked_at is not null as revoked from keys where id = ${key.id}`
    expect(row?.revoked).toBe(false)
    for (const projectId of ['0', '999999', '1e3', '-1', 'x', '99999999999999999999']) {
      const answer = await owner.fetch(`/dashboard/v1/projects/${projectId}/persons`)
      expect(answer.status).toBe(404)
    }
  })
})
