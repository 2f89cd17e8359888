import { randomBytes } from 'node:crypto'
import { pathOf } from '@lethe/contract/dashboard-client.ts'
import { exportDeletions, requestDeletions } from '@lethe/contract/dashboard-deletions.ts'
import {
  acceptInvitation,
  changePassword,
  checkLink,
  checkProof,
  confirmSecondFactor,
  inviteMember,
  makeResetLink,
  proveIdentity,
  removeMember,
  removeSecondFactor,
  resetPassword,
  signIn,
  signInWithCode,
  startSecondFactor,
  updateMember,
} from '@lethe/contract/dashboard-members.ts'
import { createKey, listProjects } from '@lethe/contract/dashboard-projects.ts'
import { describe, expect, onTestFinished } from 'vitest'
import { openSignIn as openAuth } from '../src/members/open-sign-in.ts'
import { connectOne, type Db, openPool } from '../src/sql.ts'
import { codeOf } from './authenticator.ts'
import {
  type Dashboard,
  password,
  refusalOf,
  type SignedInVisitor,
  startDashboard,
  test,
  type Visitor,
} from './dashboard-fixtures.ts'

const needsProof = { status: 403, code: 'reauthentication_required' }
const linkInvalid = { status: 410, code: 'link_invalid' }
const tokenOf = (link: string) => new URL(link).hash.slice(1)
const invited = { role: 'admin', mayDeletePersons: false } as const

/** A copy of somebody's cookies, from which the last proof has passed. */
async function stolenFrom(db: Db, dashboard: Dashboard, member: SignedInVisitor): Promise<Visitor> {
  await db.sql`
    update auth.sign_ins set proven_at = proven_at - interval '601 seconds'
    where member_id = ${member.memberId}`
  const thief = dashboard.visitor()
  for (const [name, value] of member.cookies) thief.cookies.set(name, value)
  return thief
}

describe('a stolen sign-in', () => {
  test('reads what its member may read, and takes over nothing', async ({ db, dashboard }) => {
    await db.sql`delete from auth.limits`
    const admin = await dashboard.member('admin')
    const { secret } = (await admin.call(startSecondFactor, { body: { password } })).body
    await admin.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    // Who has just proved both is not asked again.
    expect((await admin.call(checkProof, {})).body.isRecent).toBe(true)
    const thief = await stolenFrom(db, dashboard, admin)
    const params = { projectId: dashboard.projectId }
    const { memberId } = await dashboard.member('viewer')

    expect((await thief.call(listProjects, {})).status).toBe(200)
    expect((await thief.call(checkProof, {})).body.isRecent).toBe(false)
    for (const attempt of [
      () => thief.call(makeResetLink, { params: { memberId }, body: {} }),
      () => thief.call(inviteMember, { body: { ...invited, email: 'eve@example.com' } }),
      () => thief.call(removeMember, { params: { memberId } }),
      () => thief.call(createKey, { params, body: { kind: 'secret', name: 'mine' } }),
    ]) {
      expect(await refusalOf(attempt())).toEqual(needsProof)
    }
    expect((await thief.fetch(pathOf(exportDeletions, { params }))).status).toBe(403)
    const newPassword = 'the horse of the thief'
    for (const attempt of [
      () => thief.call(changePassword, { body: { currentPassword: 'a guess', newPassword } }),
      () => thief.call(removeSecondFactor, { body: { password: 'a guess' } }),
      () => thief.call(startSecondFactor, { body: { password: 'a guess' } }),
      () => thief.call(proveIdentity, { body: { password: 'a guess', code: codeOf(secret, 1) } }),
      // What the password alone does not prove.
      () => thief.call(proveIdentity, { body: { password } }),
      () => thief.call(changePassword, { body: { currentPassword: password, newPassword } }),
    ]) {
      expect((await refusalOf(attempt()))?.code).toBe('credentials_wrong')
    }
    // A code alone proves nothing either, and is no way around the question.
    expect(
      (await refusalOf(thief.call(signInWithCode, { body: { code: codeOf(secret, -1) } })))?.code,
    ).toBe('credentials_wrong')
    expect((await thief.call(checkProof, {})).body.isRecent).toBe(false)
  })

  test('cannot create a link for its own member even within the ten minutes of a proof', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const { memberId } = owner
    const attempt = owner.call(makeResetLink, { params: { memberId }, body: {} })
    expect(await refusalOf(attempt)).toEqual({ status: 403, code: 'forbidden' })
  })

  test('can try twenty passwords, and does not lock out proofs elsewhere', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('member')
    const thief = await stolenFrom(db, dashboard, member)
    const codes: (string | undefined)[] = []
    for (let n = 0; n < 21; n++) {
      const attempt = thief.call(proveIdentity, { body: { password: `guess ${n}` } })
      codes.push((await refusalOf(attempt))?.code)
    }
    expect(codes).toEqual([...Array(20).fill('credentials_wrong'), 'rate_limited'])
    const elsewhere = dashboard.visitor()
    await elsewhere.call(signIn, { body: { email: member.email, password } })
    await elsewhere.call(proveIdentity, { body: { password } })
  })

  test('deletes one person, not two, in one request or in many at once', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const owner = await dashboard.member('owner')
    const thief = await stolenFrom(db, dashboard, owner)
    const ids: string[] = []
    for (const externalId of ['a', 'b', 'c', 'd', 'e']) {
      await dashboard.send('/v1/persons', { method: 'POST', body: { externalId } })
      ids.push(await dashboard.personId(externalId))
    }
    const remove = (visitor: Visitor, personIds: string[]) =>
      refusalOf(
        visitor.call(requestDeletions, {
          params: { projectId: dashboard.projectId },
          body: { personIds, keepRecordings: false },
        }),
      )
    expect(await remove(thief, ids.slice(0, 2))).toEqual(needsProof)
    const each = await Promise.all(ids.slice(0, 4).map((id) => remove(thief, [id])))
    expect(each.filter((one) => one === undefined)).toHaveLength(1)
    expect(each.filter((one) => one?.code === needsProof.code)).toHaveLength(3)
    const jobs = await db.sql`select from deletion_jobs where project_id = ${dashboard.project.id}`
    expect(jobs).toHaveLength(1)
    await owner.call(proveIdentity, { body: { password } })
    expect(await remove(owner, ids)).toBeUndefined()
  })
})

describe('a proof', () => {
  test('is the password, holds for ten minutes, and for this sign-in alone', async ({
    db,
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const make = (visitor: Visitor) =>
      refusalOf(visitor.call(createKey, { params, body: { kind: 'public', name: 'shop' } }))
    expect(await make(owner)).toBeUndefined()
    const other = dashboard.visitor()
    await other.call(signIn, { body: { email: owner.email, password } })
    await stolenFrom(db, dashboard, owner)
    expect(await make(owner)).toEqual(needsProof)
    await owner.call(proveIdentity, { body: { password } })
    expect(await make(owner)).toBeUndefined()
    expect(await make(other)).toEqual(needsProof)
    await db.sql`
      update auth.sign_ins set proven_at = app_now() - interval '590 seconds'
      where member_id = ${owner.memberId}`
    expect(await make(owner)).toBeUndefined()
  })
})

describe('a link', () => {
  /** What is tried with the links of an admin, after something happened to the admin. */
  async function madeLinks(db: Db, dashboard: Dashboard) {
    await db.sql`delete from auth.limits`
    const admin = await dashboard.member('admin', { mayDeletePersons: true })
    const victim = await dashboard.member('viewer')
    const email = `${admin.memberId}@invited.example.com`
    const invitation = await admin.call(inviteMember, { body: { ...invited, email } })
    const { memberId } = victim
    const reset = await admin.call(makeResetLink, { params: { memberId }, body: {} })
    const tokens = [tokenOf(invitation.body.link), tokenOf(reset.body.link)] as const
    const visitor = dashboard.visitor()
    const use = async () => [
      await refusalOf(visitor.call(checkLink, { body: { token: tokens[0] } })),
      await refusalOf(
        visitor.call(acceptInvitation, { body: { token: tokens[0], name: 'Eve', password } }),
      ),
      await refusalOf(visitor.call(resetPassword, { body: { token: tokens[1], password } })),
    ]
    return { admin, use }
  }
  const dead = [linkInvalid, linkInvalid, linkInvalid]

  test('works while its creator has the rights', async ({ db, dashboard }) => {
    const { use } = await madeLinks(db, dashboard)
    expect(await use()).toEqual([undefined, undefined, undefined])
  })

  test('ends when its creator is removed', async ({ db, dashboard }) => {
    const { admin, use } = await madeLinks(db, dashboard)
    const owner = await dashboard.member('owner')
    await owner.call(removeMember, { params: { memberId: admin.memberId } })
    expect(await use()).toEqual(dead)
  })

  test('ends when its creator loses a right', async ({ db, dashboard }) => {
    for (const body of [{ role: 'member' as const }, { mayDeletePersons: false }]) {
      const { admin, use } = await madeLinks(db, dashboard)
      const owner = await dashboard.member('owner')
      await owner.call(updateMember, { params: { memberId: admin.memberId }, body })
      expect(await use()).toEqual(dead)
    }
  })

  test('ends when the password of its creator is reset or changed', async ({ db, dashboard }) => {
    const first = await madeLinks(db, dashboard)
    const owner = await dashboard.member('owner')
    const { memberId } = first.admin
    const reset = await owner.call(makeResetLink, { params: { memberId }, body: {} })
    const token = tokenOf(reset.body.link)
    await dashboard.visitor().call(resetPassword, { body: { token, password: 'a new battery' } })
    expect(await first.use()).toEqual(dead)

    const second = await madeLinks(db, dashboard)
    const body = { currentPassword: password, newPassword: 'another horse battery staple' }
    await second.admin.call(changePassword, { body })
    expect(await second.use()).toEqual(dead)
  })

  test('to reset a password ends when its member gets another right or password', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const owner = await dashboard.member('owner')
    const admin = await dashboard.member('admin')
    const victim = await dashboard.member('viewer')
    const { memberId } = victim
    const params = { memberId }
    const link = async () =>
      tokenOf((await admin.call(makeResetLink, { params, body: {} })).body.link)
    const use = (token: string) =>
      refusalOf(dashboard.visitor().call(resetPassword, { body: { token, password } }))

    const ofPassword = await link()
    const body = { currentPassword: password, newPassword: 'another horse battery staple' }
    await victim.call(changePassword, { body })
    expect(await use(ofPassword)).toEqual(linkInvalid)
    // Nobody becomes an owner by a link that was made for a viewer.
    const ofRights = await link()
    await owner.call(updateMember, { params, body: { role: 'owner' } })
    expect(await use(ofRights)).toEqual(linkInvalid)
  })

  test('cannot be created by somebody who loses the rights meanwhile', async ({
    db,
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const email = (n: number) => `late${n}@example.com`
    for (let round = 0; round < 3; round++) {
      const admin = await dashboard.member('admin')
      const { memberId } = admin
      // Both at the same time: whichever is first, no link outlives the rights.
      await Promise.all([
        owner.call(updateMember, { params: { memberId }, body: { role: 'viewer' } }),
        ...[0, 1, 2].map((n) =>
          refusalOf(
            admin.call(inviteMember, { body: { ...invited, email: email(round * 3 + n) } }),
          ),
        ),
      ])
      expect(await db.sql`select from auth.links where made_by = ${memberId}`).toEqual([])
    }
  })
})

test('no sign-in is over, and no password or code wrong, because the database does not respond', async ({
  recordings,
  address,
  project,
  db,
}) => {
  const pool = openPool(address, 2, 1)
  const other = await connectOne(address)
  const auth = await openAuth(pool, randomBytes(32).toString('base64url'))()
  // The table of the sign-ins cannot be read: for the cookie of the request, or after it was let in.
  let usesLeft = 0
  const dashboard = await startDashboard({
    recordings,
    address,
    project,
    signIn: async () => {
      if (--usesLeft === 0) await other.client.query('begin; lock table auth.sign_ins')
      return auth
    },
  })
  onTestFinished(async () => {
    await dashboard.close()
    await other.end()
    await pool.end()
  })
  const admin = await dashboard.member('admin')
  const failures = () => db.sql`
    select from audit_log where action like 'member.%failed' and subject_id = ${admin.memberId}`
  const amidFault = async (use: number, call: () => Promise<unknown>) => {
    usesLeft = use
    expect(await refusalOf(call())).toEqual({ status: 503, code: 'unavailable' })
    await other.client.query('rollback')
  }
  await amidFault(1, () => admin.call(listProjects, {}))
  await amidFault(2, () => admin.call(proveIdentity, { body: { password } }))
  await admin.call(startSecondFactor, { body: { password } })
  await amidFault(2, () => admin.call(confirmSecondFactor, { body: { code: '123456' } }))
  const { email } = admin
  const visitor = dashboard.visitor()
  await amidFault(1, () => visitor.call(signIn, { body: { email, password } }))
  expect(await failures()).toEqual([])
  const wrong = admin.call(proveIdentity, { body: { password: 'another password' } })
  expect(await refusalOf(wrong)).toMatchObject({ code: 'credentials_wrong' })
  expect(await failures()).toHaveLength(1)
})
