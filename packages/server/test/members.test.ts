import { randomBytes } from 'node:crypto'
import { pathOf } from '@lethe/contract/dashboard-client.ts'
import { exportDeletions } from '@lethe/contract/dashboard-deletions.ts'
import {
  acceptInvitation,
  changePassword,
  checkLink,
  confirmSecondFactor,
  endOtherSignIns,
  getMe,
  inviteMember,
  listMembers,
  listSignIns,
  makeResetLink,
  proveIdentity,
  removeMember,
  removeSecondFactor,
  resetPassword,
  setUp,
  signIn,
  signInWithCode,
  signOut,
  startSecondFactor,
  updateMe,
  updateMember,
  withdrawInvitation,
} from '@lethe/contract/dashboard-members.ts'
import { listProjects } from '@lethe/contract/dashboard-projects.ts'
import { getMigrations } from 'better-auth/db/migration'
import { beforeEach, describe, expect } from 'vitest'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { signInOptions } from '../src/members/better-auth.ts'
import { makeSetUpLink } from '../src/members/links.ts'
import { readInstanceSecrets } from '../src/members/secret.ts'
import { type Db, openPool } from '../src/sql.ts'
import { codeOf, holdTime, wrongCodeOf } from './authenticator.ts'
import { password, refusalOf, startDashboard, test, type Visitor } from './dashboard-fixtures.ts'
import { shiftClock } from './recordings-fixtures.ts'

const tokenOf = (link: string) => new URL(link).hash.slice(1)

const newMasterKey = (id: string) => `${id}:${randomBytes(32).toString('base64')}`

async function forgetMembers(db: Db) {
  await db.sql`delete from auth.members`
  await db.sql`delete from auth.links`
  await db.sql`delete from auth.limits`
}

describe('the first owner', () => {
  const owner = { name: 'Ada', email: 'Ada@Example.com', password, projectName: 'Shop' }

  test('comes by the link printed at the start, names the project, and is signed in', async ({
    db,
    dashboard,
  }) => {
    await forgetMembers(db)
    const visitor = dashboard.visitor()
    expect((await visitor.call(getMe, {})).body).toMatchObject({
      member: null,
      isSetUpNeeded: true,
      permissions: [],
      publicUrl: dashboard.url,
    })
    const link = (await makeSetUpLink(db, dashboard.url))!
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/setup#[\w-]{43}$/)
    const token = tokenOf(link)
    const checked = await visitor.call(checkLink, { body: { token } })
    expect(checked.body).toMatchObject({ kind: 'set_up', email: null, projectName: 'a project' })

    const made = await visitor.call(setUp, { body: { token, ...owner } })
    expect(made.status).toBe(201)
    expect(made.body.member).toMatchObject({ email: 'ada@example.com', role: 'owner' })
    const me = await visitor.call(getMe, {})
    expect(me.body).toMatchObject({ member: { name: 'Ada' }, isSetUpNeeded: false })
    expect(me.body.permissions).toContain('persons.delete')
    const { projects } = (await visitor.call(listProjects, {})).body
    expect(projects[0]?.name).toBe('Shop')
  })

  test('is only one, however many links there are', async ({ db, dashboard }) => {
    await forgetMembers(db)
    const links = [
      (await makeSetUpLink(db, dashboard.url))!,
      (await makeSetUpLink(db, dashboard.url))!,
    ]
    const tries = [links[0]!, links[0]!, links[1]!, links[1]!].map((link, i) =>
      refusalOf(
        dashboard.visitor().call(setUp, {
          body: { ...owner, token: tokenOf(link), email: `owner${i}@example.com` },
        }),
      ),
    )
    const refusals = (await Promise.all(tries)).filter((one) => one !== undefined)
    expect(refusals).toEqual(Array(3).fill({ status: 410, code: 'link_invalid' }))
    expect(await db.sql`select from auth.members where role = 'owner'`).toHaveLength(1)
    expect(await makeSetUpLink(db, dashboard.url)).toBeUndefined()
  })

  test('is refused when the link has expired', async ({ db, dashboard, address }) => {
    await forgetMembers(db)
    const token = tokenOf((await makeSetUpLink(db, dashboard.url))!)
    const visitor = dashboard.visitor()
    await shiftClock(address, 25 * 3_600)
    const refused = { status: 410, code: 'link_invalid' }
    expect(await refusalOf(visitor.call(checkLink, { body: { token } }))).toEqual(refused)
    expect(await refusalOf(visitor.call(setUp, { body: { token, ...owner } }))).toEqual(refused)
    await shiftClock(address, 0)
  })

  test('the token of a link is nowhere in the database', async ({ db, dashboard }) => {
    await forgetMembers(db)
    const token = tokenOf((await makeSetUpLink(db, dashboard.url))!)
    const [row] = await db.sql<{ text: string }>`
      select string_agg(l::text, ' ') as text from auth.links l`
    expect(row?.text).not.toContain(token)
    expect(row?.text).not.toContain(Buffer.from(token, 'base64url').toString('hex'))
  })

  test('a short password or an odd e-mail is refused, and the link still works', async ({
    db,
    dashboard,
  }) => {
    await forgetMembers(db)
    const token = tokenOf((await makeSetUpLink(db, dashboard.url))!)
    const visitor = dashboard.visitor()
    for (const wrong of [{ password: 'elevenchars' }, { email: 'ada' }, { email: 'a@localhost' }]) {
      const body = { token, ...owner, ...wrong }
      expect(await refusalOf(visitor.call(setUp, { body }))).toMatchObject({ status: 400 })
    }
    await visitor.call(setUp, { body: { token, ...owner } })
  })
})

describe('signing in', () => {
  test('a wrong password and an unknown e-mail are refused in the same words', async ({
    dashboard,
  }) => {
    const { email } = await dashboard.member('viewer')
    const visitor = dashboard.visitor()
    const answers = await Promise.all(
      [email, 'nobody@example.com', 'no e-mail at all'].map((one) =>
        visitor.fetch('/dashboard/v1/sign-in', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email: one, password: 'wrong horse battery staple' }),
        }),
      ),
    )
    const bodies = await Promise.all(
      answers.map((one) => one.json() as Promise<{ error: { code: string; message: string } }>),
    )
    for (const { error } of bodies) {
      expect(error.code).toBe('credentials_wrong')
      expect(error.message).toBe(bodies[0]?.error.message)
    }
    expect(visitor.cookies.size).toBe(0)
  })

  test('nobody can make a cookie from what the database holds of a sign-in', async ({
    db,
    dashboard,
  }) => {
    const member = await dashboard.member('admin')
    const [row] = await db.sql<{ token: string }>`
      select token from auth.sign_ins where member_id = ${member.memberId}`
    const thief = dashboard.visitor()
    for (const forged of [row!.token, `${row!.token}.${row!.token}`]) {
      thief.cookies.set('lethe.session_token', forged)
      expect(await refusalOf(thief.call(listProjects, {}))).toMatchObject({ status: 401 })
    }
    expect((await member.call(listProjects, {})).status).toBe(200)
  })

  test('signing out ends the sign-in for good', async ({ dashboard }) => {
    const member = await dashboard.member('viewer')
    const stolen = dashboard.visitor()
    for (const [name, value] of member.cookies) stolen.cookies.set(name, value)
    await member.call(signOut, { body: {} })
    // What is left lets nobody in: it says that the member was here before.
    expect([...member.cookies.keys()]).toEqual([expect.stringMatching(/^lethe\.browser_/)])
    expect(await refusalOf(stolen.call(listProjects, {}))).toMatchObject({ status: 401 })
  })

  test('a new password ends the other sign-ins, and the old password no longer works', async ({
    dashboard,
  }) => {
    const member = await dashboard.member('member')
    const elsewhere = dashboard.visitor()
    await elsewhere.call(signIn, { body: { email: member.email, password } })
    const newPassword = 'another horse battery staple'
    const wrong = { currentPassword: 'not this one', newPassword }
    expect(await refusalOf(member.call(changePassword, { body: wrong }))).toEqual({
      status: 401,
      code: 'credentials_wrong',
    })
    await member.call(changePassword, { body: { currentPassword: password, newPassword } })
    expect((await member.call(listProjects, {})).status).toBe(200)
    expect(await refusalOf(elsewhere.call(listProjects, {}))).toMatchObject({ status: 401 })
    const old = elsewhere.call(signIn, { body: { email: member.email, password } })
    expect((await refusalOf(old))?.code).toBe('credentials_wrong')
  })

  test('members see where they are signed in, and end the others', async ({ dashboard }) => {
    const member = await dashboard.member('member')
    const elsewhere = dashboard.visitor()
    await elsewhere.call(signIn, { body: { email: member.email, password } })
    const { signIns } = (await member.call(listSignIns, {})).body
    expect(signIns.map((one) => one.isCurrent)).toEqual([false, true])
    expect(signIns[0]?.address).toBe('127.0.0.1')
    await member.call(endOtherSignIns, { body: {} })
    expect((await member.call(listSignIns, {})).body.signIns).toHaveLength(1)
    expect(await refusalOf(elsewhere.call(listProjects, {}))).toMatchObject({ status: 401 })
  })

  test('members rename themselves', async ({ dashboard }) => {
    const member = await dashboard.member('viewer')
    const { body } = await member.call(updateMe, { body: { name: 'Grace' } })
    expect(body.member.name).toBe('Grace')
  })
})

describe('the second factor', () => {
  beforeEach(holdTime)

  async function withSecondFactor(visitor: Visitor) {
    const started = await visitor.call(startSecondFactor, { body: { password } })
    const { secret } = started.body
    await visitor.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    return started.body
  }

  test('is asked for at the sign-in once a code of it was seen', async ({ db, dashboard }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('admin')
    const wrongPassword = member.call(startSecondFactor, { body: { password: 'not this one' } })
    expect((await refusalOf(wrongPassword))?.code).toBe('credentials_wrong')
    const started = await member.call(startSecondFactor, { body: { password } })
    expect(started.body.uri).toMatch(/^otpauth:\/\/totp\/Lethe/)
    expect(started.body.recoveryCodes).toHaveLength(10)

    // Begun and not confirmed, nobody is locked out by it.
    const credentials = { email: member.email, password }
    expect((await dashboard.visitor().call(signIn, { body: credentials })).body.next).toBe('done')

    const { secret } = started.body
    const wrongCode = member.call(confirmSecondFactor, { body: { code: wrongCodeOf(secret) } })
    expect((await refusalOf(wrongCode))?.code).toBe('credentials_wrong')
    await member.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    expect((await member.call(getMe, {})).body.member?.hasSecondFactor).toBe(true)

    const visitor = dashboard.visitor()
    expect((await visitor.call(signIn, { body: credentials })).body.next).toBe('code')
    expect(await refusalOf(visitor.call(listProjects, {}))).toMatchObject({ status: 401 })
    const wrong = visitor.call(signInWithCode, { body: { code: wrongCodeOf(secret) } })
    expect(await refusalOf(wrong)).toEqual({ status: 401, code: 'credentials_wrong' })
    await visitor.call(signInWithCode, { body: { code: codeOf(secret, 1) } })
    expect((await visitor.call(listProjects, {})).status).toBe(200)
  })

  test('a code is good once, for the sign-in and for everything else together', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('admin')
    const { secret } = await withSecondFactor(member)
    const credentials = { email: member.email, password }
    const code = codeOf(secret, 1)
    const tries = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const visitor = dashboard.visitor()
        await visitor.call(signIn, { body: credentials })
        return refusalOf(visitor.call(signInWithCode, { body: { code } }))
      }),
    )
    expect(tries.filter((one) => one === undefined)).toHaveLength(1)
    expect(tries.filter((one) => one?.code === 'credentials_wrong')).toHaveLength(3)
    const proving = member.call(proveIdentity, { body: { password, code } })
    expect((await refusalOf(proving))?.code).toBe('credentials_wrong')
    await member.call(proveIdentity, { body: { password, code: codeOf(secret, -1) } })
  })

  test('a recovery code replaces it, once', async ({ db, dashboard }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('member')
    const { recoveryCodes } = await withSecondFactor(member)
    const code = recoveryCodes[3]!
    const credentials = { email: member.email, password }
    const visitor = dashboard.visitor()
    await visitor.call(signIn, { body: credentials })
    await visitor.call(signInWithCode, { body: { code } })
    expect((await visitor.call(listProjects, {})).status).toBe(200)
    const again = dashboard.visitor()
    await again.call(signIn, { body: credentials })
    expect((await refusalOf(again.call(signInWithCode, { body: { code } })))?.code).toBe(
      'credentials_wrong',
    )
  })

  test('a recovery code is good once, also in several sign-ins at the same moment', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('member')
    const { recoveryCodes } = await withSecondFactor(member)
    const code = recoveryCodes[0]!
    const visitors = Array.from({ length: 4 }, () => dashboard.visitor())
    for (const visitor of visitors) {
      await visitor.call(signIn, { body: { email: member.email, password } })
    }
    const tries = await Promise.all(
      visitors.map((visitor) => refusalOf(visitor.call(signInWithCode, { body: { code } }))),
    )
    expect(tries.filter((one) => one === undefined)).toHaveLength(1)
    expect(tries.filter((one) => one?.code === 'credentials_wrong')).toHaveLength(3)
  })

  test('codes cannot be guessed without limit: after five attempts the sign-in starts again', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('member')
    const { secret } = await withSecondFactor(member)
    const visitor = dashboard.visitor()
    await visitor.call(signIn, { body: { email: member.email, password } })
    for (let i = 0; i < 5; i++) {
      await refusalOf(visitor.call(signInWithCode, { body: { code: wrongCodeOf(secret, i) } }))
    }
    const right = visitor.call(signInWithCode, { body: { code: codeOf(secret, 1) } })
    expect((await refusalOf(right))?.code).toBe('credentials_wrong')
  })

  test('is removed with the password and a code, and cannot be changed without them', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('member')
    const { secret } = await withSecondFactor(member)
    const refused = { status: 401, code: 'credentials_wrong' }
    const wrong = wrongCodeOf(secret)
    for (const body of [
      { password },
      { password, code: wrong },
      { password: 'not this', code: wrong },
    ]) {
      expect(await refusalOf(member.call(removeSecondFactor, { body }))).toEqual(refused)
    }
    expect(await refusalOf(member.call(startSecondFactor, { body: { password } }))).toEqual(refused)
    const change = { currentPassword: password, newPassword: 'another horse battery staple' }
    expect(await refusalOf(member.call(changePassword, { body: change }))).toEqual(refused)
    const again = { password, code: codeOf(secret, -1) }
    expect((await refusalOf(member.call(startSecondFactor, { body: again })))?.status).toBe(400)

    await member.call(removeSecondFactor, { body: { password, code: codeOf(secret, 1) } })
    const credentials = { email: member.email, password }
    expect((await dashboard.visitor().call(signIn, { body: credentials })).body.next).toBe('done')
  })

  test('neither its secret nor the recovery codes can be read in the database', async ({
    db,
    dashboard,
  }) => {
    const member = await dashboard.member('member')
    const { secret, recoveryCodes } = await withSecondFactor(member)
    const [row] = await db.sql<{ text: string }>`
      select f::text as text from auth.second_factors f where member_id = ${member.memberId}`
    for (const word of [secret, ...recoveryCodes]) expect(row?.text).not.toContain(word)
  })
})

describe('members and invitations', () => {
  const invited = { email: 'grace@example.com', role: 'member', mayDeletePersons: false } as const

  test('the invited person joins with the link, once, with the given role', async ({
    db,
    dashboard,
  }) => {
    await forgetMembers(db)
    const owner = await dashboard.member('owner')
    const { invitation, link } = (await owner.call(inviteMember, { body: invited })).body
    const { members, invitations } = (await owner.call(listMembers, {})).body
    expect(members).toHaveLength(1)
    expect(invitations).toEqual([invitation])

    const visitor = dashboard.visitor()
    const token = tokenOf(link)
    const checked = (await visitor.call(checkLink, { body: { token } })).body
    expect(checked).toMatchObject({ kind: 'invitation', email: invited.email, role: 'member' })
    const body = { token, name: 'Grace', password }
    const joined = (await visitor.call(acceptInvitation, { body })).body
    expect(joined.member).toMatchObject({ ...invited, name: 'Grace' })
    expect((await visitor.call(getMe, {})).body.permissions).not.toContain('persons.delete')
    expect((await refusalOf(visitor.call(acceptInvitation, { body })))?.code).toBe('link_invalid')
    expect((await owner.call(listMembers, {})).body.invitations).toEqual([])
    const again = owner.call(inviteMember, { body: invited })
    expect((await refusalOf(again))?.code).toBe('member_exists')
  })

  test('a withdrawn or replaced invitation no longer works', async ({ db, dashboard }) => {
    await forgetMembers(db)
    const owner = await dashboard.member('owner')
    const first = (await owner.call(inviteMember, { body: invited })).body
    const second = (await owner.call(inviteMember, { body: invited })).body
    const visitor = dashboard.visitor()
    const gone = async (link: string) =>
      (await refusalOf(visitor.call(checkLink, { body: { token: tokenOf(link) } })))?.code
    expect(await gone(first.link)).toBe('link_invalid')
    expect(await gone(second.link)).toBeUndefined()
    await owner.call(withdrawInvitation, { params: { invitationId: second.invitation.id } })
    expect(await gone(second.link)).toBe('link_invalid')
  })

  test('a reset link resets the password, turns the second factor off and ends every sign-in', async ({
    db,
    dashboard,
  }) => {
    await db.sql`delete from auth.limits`
    const owner = await dashboard.member('owner')
    const member = await dashboard.member('member')
    const { secret } = (await member.call(startSecondFactor, { body: { password } })).body
    await member.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    const { memberId, email } = member
    const made = await owner.call(makeResetLink, { params: { memberId }, body: {} })
    const newPassword = 'yet another battery staple'
    const visitor = dashboard.visitor()
    const token = tokenOf(made.body.link)
    expect((await visitor.call(checkLink, { body: { token } })).body.email).toBe(email)
    await visitor.call(resetPassword, { body: { token, password: newPassword } })
    expect(await refusalOf(member.call(listProjects, {}))).toMatchObject({ status: 401 })
    const next = await visitor.call(signIn, { body: { email, password: newPassword } })
    expect(next.body.next).toBe('done')
    const again = visitor.call(resetPassword, { body: { token, password } })
    expect((await refusalOf(again))?.code).toBe('link_invalid')
  })

  test('a changed role applies to the next request, and a removed member is signed out at once', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const member = await dashboard.member('viewer')
    const { memberId } = member
    expect(await refusalOf(member.call(listMembers, {}))).toMatchObject({ status: 403 })
    await owner.call(updateMember, { params: { memberId }, body: { role: 'member' } })
    expect((await member.call(listMembers, {})).status).toBe(200)
    await owner.call(removeMember, { params: { memberId } })
    expect(await refusalOf(member.call(listMembers, {}))).toMatchObject({ status: 401 })
    const gone = owner.call(updateMember, { params: { memberId }, body: { role: 'admin' } })
    expect((await refusalOf(gone))?.code).toBe('member_not_found')
  })

  test('the last owner stays, also when two owners try to leave at the same time', async ({
    db,
    dashboard,
  }) => {
    await forgetMembers(db)
    const [first, second] = [await dashboard.member('owner'), await dashboard.member('owner')]
    const leave = (one: typeof first) =>
      refusalOf(
        one.call(updateMember, { params: { memberId: one.memberId }, body: { role: 'viewer' } }),
      )
    const refusals = await Promise.all([leave(first), leave(second)])
    expect(refusals.filter((one) => one?.code === 'last_owner')).toHaveLength(1)
    expect(await db.sql`select from auth.members where role = 'owner'`).toHaveLength(1)
  })

  test('nobody grants rights they do not have, and only owners change owners', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const admin = await dashboard.member('admin')
    const deletingAdmin = await dashboard.member('admin', { mayDeletePersons: true })
    const viewer = await dashboard.member('viewer')
    const forbidden = { status: 403, code: 'forbidden' }
    const change = (memberId: string, body: object) =>
      refusalOf(admin.call(updateMember, { params: { memberId }, body }))

    expect(await change(viewer.memberId, { role: 'owner' })).toEqual(forbidden)
    expect(await change(admin.memberId, { role: 'owner' })).toEqual(forbidden)
    expect(await change(admin.memberId, { mayDeletePersons: true })).toEqual(forbidden)
    expect(await change(owner.memberId, { role: 'viewer' })).toEqual(forbidden)
    expect(await change(deletingAdmin.memberId, { role: 'viewer' })).toEqual(forbidden)
    expect(await change(viewer.memberId, { role: 'admin' })).toBeUndefined()
    const invite = (body: object) =>
      refusalOf(
        admin.call(inviteMember, {
          body: { email: 'eve@example.com', role: 'viewer', mayDeletePersons: false, ...body },
        }),
      )
    expect(await invite({ role: 'owner' })).toEqual(forbidden)
    expect(await invite({ mayDeletePersons: true })).toEqual(forbidden)
    const coming = { email: 'coming@example.com', role: 'owner', mayDeletePersons: true } as const
    await owner.call(inviteMember, { body: coming })
    expect(await invite({ email: coming.email })).toEqual(forbidden)
    const { memberId } = owner
    const reset = admin.call(makeResetLink, { params: { memberId }, body: {} })
    expect(await refusalOf(reset)).toEqual(forbidden)
    expect(await refusalOf(admin.call(removeMember, { params: { memberId } }))).toEqual(forbidden)
  })
})

describe('where a request comes from', () => {
  test('only a page of this origin changes anything', async ({ dashboard }) => {
    const member = await dashboard.member('owner')
    const { host } = new URL(dashboard.url)
    const post = async (headers: Record<string, string>) => {
      const answer = await fetch(`${dashboard.url}/dashboard/v1/projects`, {
        method: 'POST',
        headers: {
          cookie: [...member.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify({ name: 'made from elsewhere' }),
      })
      return answer.status
    }
    expect(await post({})).toBe(403)
    expect(await post({ origin: 'null' })).toBe(403)
    expect(await post({ origin: 'https://evil.example' })).toBe(403)
    expect(await post({ origin: 'http://127.0.0.1' })).toBe(403)
    expect(await post({ origin: `http://evil.${host}` })).toBe(403)
    expect(await post({ origin: dashboard.url, 'sec-fetch-site': 'same-site' })).toBe(403)
    expect(await post({ origin: dashboard.url, 'sec-fetch-site': 'same-origin' })).toBe(201)
  })

  test('no page of another host has the audit log say that a member read something', async ({
    dashboard,
  }) => {
    const member = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    for (const [site, status] of [
      ['same-site', 403],
      ['cross-site', 403],
      ['same-origin', 200],
      ['none', 200],
    ] as const) {
      const headers = { 'sec-fetch-site': site }
      const answer = await member.fetch(pathOf(exportDeletions, { params }), { headers })
      expect([site, answer.status]).toEqual([site, status])
    }
  })

  test('with PUBLIC_URL only a page of that origin does', async ({
    recordings,
    address,
    project,
    signIn: auth,
  }) => {
    const publicUrl = 'https://lethe.example.com'
    const dashboard = await startDashboard(
      { recordings, address, project, signIn: auth },
      { dashboard: { publicUrl } },
    )
    const status = async (origin: string) =>
      (
        await dashboard.visitor().fetch('/dashboard/v1/sign-out', {
          method: 'POST',
          headers: { origin, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status
    expect(await status(dashboard.url)).toBe(403)
    expect(await status('http://lethe.example.com')).toBe(403)
    expect(await status(publicUrl)).toBe(200)
    expect((await dashboard.visitor().call(getMe, {})).body.publicUrl).toBe(publicUrl)
    await dashboard.close()
  })
})

describe('the library of the sign-in', () => {
  test('finds its tables as it needs them', async ({ address }) => {
    const pool = openPool(address, 1)
    const { toBeCreated, toBeAdded } = await getMigrations(
      signInOptions(pool, randomBytes(32).toString('hex')) as never,
    )
    expect({ toBeCreated, toBeAdded }).toEqual({ toBeCreated: [], toBeAdded: [] })
    await pool.end()
  })

  test('has no endpoint of its own that could be reached', async ({ dashboard }) => {
    const visitor = dashboard.visitor()
    for (const path of [
      '/sign-in/sign-up/email',
      '/api/auth/sign-up/email',
      '/dashboard/v1/sign-up/email',
      '/dashboard/v1/auth/ok',
    ]) {
      const answer = await visitor.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Eve', email: 'eve@example.com', password }),
      })
      expect(answer.status).toBe(404)
    }
  })

  test('makes no member by itself', async ({ signIn: auth }) => {
    const answer = await (await auth()).api.signUpEmail({
      body: { name: 'Eve', email: 'eve@example.com', password } as never,
      asResponse: true,
    })
    expect(answer.status).toBe(400)
  })
})

describe('the secret of the installation', () => {
  test('is the same at each start, and stays when the master key is changed', async ({ db }) => {
    const [old, next] = [newMasterKey('k1'), newMasterKey('k2')]
    const first = await readInstanceSecrets(db.sql, parseMasterKeys(old))
    expect(await readInstanceSecrets(db.sql, parseMasterKeys(old))).toEqual(first)
    expect(await readInstanceSecrets(db.sql, parseMasterKeys(`${next},${old}`))).toEqual(first)
    // It was rewrapped: the old key is no longer needed.
    expect(await readInstanceSecrets(db.sql, parseMasterKeys(next))).toEqual(first)
    await expect(readInstanceSecrets(db.sql, parseMasterKeys(old))).rejects.toThrow(
      expect.objectContaining({ name: 'SealBroken' }),
    )
  })
})
