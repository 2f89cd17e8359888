import { randomBytes } from 'node:crypto'
import {
  changePassword,
  confirmSecondFactor,
  getMe,
  proveIdentity,
  signIn,
  signInWithCode,
  startSecondFactor,
} from '@lethe/contract/dashboard-members.ts'
import { listProjects } from '@lethe/contract/dashboard-projects.ts'
import { listAuditEntries } from '@lethe/contract/dashboard-system.ts'
import { describe, expect } from 'vitest'
import { openSignIn } from '../src/members/open-sign-in.ts'
import { deleteMember, replacePassword } from '../src/members/store.ts'
import { type Db, openPool, type Sql } from '../src/sql.ts'
import { codeOf, holdTime, wrongCodeOf } from './authenticator.ts'
import {
  test as base,
  type Dashboard,
  eventually,
  newVisitor,
  password,
  refusalOf,
  startDashboard,
  type Visitor,
} from './dashboard-fixtures.ts'
import { shiftClock } from './recordings-fixtures.ts'

const wrong = 'wrong horse battery staple'

/** `proxied`: the dashboard behind a proxy whose word is taken, so that a test can be anywhere. */
const test = base.extend<{ proxied: Dashboard }>({
  proxied: async ({ recordings, address, project, signIn, db }, use) => {
    await db.sql`delete from auth.limits`
    const parts = { recordings, address, project, signIn }
    const dashboard = await startDashboard(parts, { app: { trustProxy: 1 } })
    await use(dashboard)
    await dashboard.close()
  },
})

/** Whether somebody at an address is let in: the code of the refusal, or `in`. */
async function tryFrom(
  visitor: Visitor,
  address: string,
  credentials: { email: string; password: string },
): Promise<string> {
  const answer = await visitor.fetch('/dashboard/v1/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify(credentials),
  })
  if (answer.ok) return 'in'
  return ((await answer.json()) as { error: { code: string } }).error.code
}

/**
 * Tries once, and counts it as so many tries wherever it is counted: each would take a processor for
 * a tenth of a second.
 */
async function times(sql: Sql, count: number, attempt: () => Promise<unknown>): Promise<void> {
  const before = await sql<{ row: string }>`select l::text as "row" from auth.limits as l`
  await attempt()
  await sql`
    update auth.limits as l set tries = tries + ${count - 1}
    where l::text <> all(${before.map(({ row }) => row)})`
}

describe('tries of passwords', () => {
  test('are counted for all processes together, by the network and the member', async ({
    proxied,
    recordings,
    address,
    project,
    signIn: auth,
  }) => {
    const parts = { recordings, address, project, signIn: auth }
    const other = await startDashboard(parts, { app: { trustProxy: 1 } })
    const credentials = { email: 'nobody@example.com', password: wrong }
    const tryAt = (dashboard: Dashboard) => tryFrom(dashboard.visitor(), '192.0.2.1', credentials)
    await times(recordings.db.sql, 4, () => tryAt(proxied))
    await times(recordings.db.sql, 5, () => tryAt(other))
    expect(await tryAt(proxied)).toBe('credentials_wrong')
    expect(await tryAt(other)).toBe('rate_limited')
    expect(await tryAt(proxied)).toBe('rate_limited')
    await shiftClock(address, 901)
    expect(await tryAt(other)).toBe('credentials_wrong')
    await shiftClock(address, 0)
    await other.close()
  })

  test('of one IPv6 network count as one, whatever the addresses', async ({ proxied, db }) => {
    const { email } = await proxied.member('viewer')
    const tryAt = (n: number) =>
      tryFrom(proxied.visitor(), `2001:db8:1:2:${n}::${n}`, { email, password: wrong })
    await times(db.sql, 9, () => tryAt(1))
    expect(await tryAt(2)).toBe('credentials_wrong')
    expect(await tryAt(3)).toBe('rate_limited')
    const next = await tryFrom(proxied.visitor(), '2001:db8:1:3::1', { email, password })
    expect(next).toBe('in')
  })

  test('thirty from one address lock out nobody else at that address, for any member', async ({
    proxied,
    db,
  }) => {
    const at = '198.51.100.7'
    const [victim, colleague] = [await proxied.member('viewer'), await proxied.member('viewer')]
    for (const email of [victim.email, 'guess@example.com']) {
      await times(db.sql, 30, () => tryFrom(proxied.visitor(), at, { email, password: wrong }))
      expect(await tryFrom(proxied.visitor(), at, { email, password })).toBe('rate_limited')
    }
    expect(await tryFrom(proxied.visitor(), at, { email: colleague.email, password })).toBe('in')
    expect(await tryFrom(colleague, at, { email: colleague.email, password })).toBe('in')
  })

  test('by strangers, however many and from wherever, lock no member out of a known browser', async ({
    proxied,
    db,
  }) => {
    const member = await proxied.member('owner')
    const { email } = member
    const guess = (n: number) =>
      tryFrom(proxied.visitor(), `203.0.113.${n}`, { email, password: wrong })
    await db.sql`delete from auth.limits`
    await times(db.sql, 59, () => guess(1))
    expect(await guess(2)).toBe('credentials_wrong')
    expect(await guess(3)).toBe('rate_limited')
    const at = '203.0.113.200'
    expect(await tryFrom(proxied.visitor(), at, { email, password })).toBe('rate_limited')
    expect(await tryFrom(member, at, { email, password: wrong })).toBe('credentials_wrong')
    expect(await tryFrom(member, at, { email, password })).toBe('in')

    // The cookie that says so cannot be forged, is of one member, and signs nobody in.
    const [name = '', value = ''] =
      [...member.cookies].find(([one]) => one.includes('browser')) ?? []
    for (const forged of [
      `${value}x`,
      `x${value}`,
      value.split('.')[0],
      `${value.split('.')[0]}.`,
    ]) {
      const thief = proxied.visitor()
      thief.cookies.set(name, forged as string)
      expect(await tryFrom(thief, at, { email, password })).toBe('rate_limited')
    }
    const other = await proxied.member('viewer')
    const visitor = newVisitor(proxied.url)
    visitor.cookies.set(name, value)
    expect(await refusalOf(visitor.call(listProjects, {}))).toMatchObject({ status: 401 })
    const guessOther = () => tryFrom(visitor, at, { email: other.email, password: wrong })
    await times(db.sql, 9, guessOther)
    expect(await guessOther()).toBe('credentials_wrong')
    expect(await guessOther()).toBe('rate_limited')
  })

  test('from a known browser are limited too', async ({ proxied, db }) => {
    const member = await proxied.member('viewer')
    const guess = () => tryFrom(member, '192.0.2.9', { email: member.email, password: wrong })
    await times(db.sql, 19, guess)
    expect(await guess()).toBe('credentials_wrong')
    expect(await guess()).toBe('rate_limited')
  })
})

describe('a sign-in that is under way', () => {
  /** Something happens to the member once the password was checked, before there is a sign-in. */
  async function meanwhile(
    { db, dashboard }: { db: Db; dashboard: Dashboard },
    change: (tx: Sql, memberId: string) => Promise<void>,
  ) {
    await db.sql`delete from auth.limits`
    const { memberId, email } = await dashboard.member('viewer')
    const visitor = dashboard.visitor()
    const signingIn = db.begin(async (tx) => {
      // Its row refers to the member's.
      await tx`select from auth.members where id = ${memberId} for update`
      const waiting = refusalOf(visitor.call(signIn, { body: { email, password } }))
      await eventually(
        async () =>
          (
            await db.sql`
            select from pg_stat_activity
            where wait_event_type = 'Lock' and query like '%"sign_ins"%'`
          ).length > 0,
      )
      await change(tx, memberId)
      return { waiting }
    })
    const refusal = await (await signingIn).waiting
    const { member } = (await visitor.call(getMe, {})).body
    return {
      refusal,
      member,
      kept: await db.sql`select from auth.sign_ins where member_id = ${memberId}`,
    }
  }
  const refused = { refusal: { status: 401, code: 'credentials_wrong' }, member: null, kept: [] }

  test('ends when the password is reset or changed', async ({ db, dashboard }) => {
    const reset = (tx: Sql, memberId: string) => replacePassword(tx, memberId, 'another hash')
    expect(await meanwhile({ db, dashboard }, reset)).toEqual(refused)
  })

  test('ends when the member is removed', async ({ db, dashboard }) => {
    expect(await meanwhile({ db, dashboard }, deleteMember)).toEqual(refused)
  })

  test('and waits for its code ends when the password is changed', async ({ db, dashboard }) => {
    holdTime()
    await db.sql`delete from auth.limits`
    const member = await dashboard.member('viewer')
    const { secret } = (await member.call(startSecondFactor, { body: { password } })).body
    await member.call(confirmSecondFactor, { body: { code: codeOf(secret, -1) } })
    const thief = dashboard.visitor()
    const { body } = await thief.call(signIn, { body: { email: member.email, password } })
    expect(body.next).toBe('code')
    await member.call(changePassword, {
      body: { currentPassword: password, newPassword: wrong, code: codeOf(secret) },
    })
    const code = codeOf(secret, 1)
    expect(await refusalOf(thief.call(signInWithCode, { body: { code } }))).toEqual(refused.refusal)
    const again = await member.call(signIn, { body: { email: member.email, password: wrong } })
    expect(again.body.next).toBe('code')
  })
})

describe('tries of codes', () => {
  test('by somebody who knows the password do not lock the member out of a known browser', async ({
    proxied,
    db,
  }) => {
    const member = await proxied.member('admin')
    const { email } = member
    const { secret } = (await member.call(startSecondFactor, { body: { password } })).body
    await member.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    await db.sql`delete from auth.limits`
    const guess = async (n: number) => {
      const thief = proxied.visitor()
      await tryFrom(thief, `203.0.113.${n}`, { email, password })
      const attempt = thief.call(signInWithCode, { body: { code: wrongCodeOf(secret, n) } })
      return (await refusalOf(attempt))?.code
    }
    await times(db.sql, 9, () => guess(1))
    expect(await guess(2)).toBe('credentials_wrong')
    expect(await guess(3)).toBe('rate_limited')
    await member.call(signIn, { body: { email, password } })
    await member.call(signInWithCode, { body: { code: codeOf(secret, 1) } })
    expect((await member.call(listProjects, {})).status).toBe(200)
  })
})

describe('the audit log', () => {
  test('has each failure of a password, a code and a proof, with its address', async ({
    dashboard,
    db,
  }) => {
    await db.sql`delete from auth.limits`
    const owner = await dashboard.member('owner')
    const member = await dashboard.member('member')
    const { email, memberId } = member
    const { secret } = (await member.call(startSecondFactor, { body: { password } })).body
    await member.call(confirmSecondFactor, { body: { code: codeOf(secret) } })
    const visitor = dashboard.visitor()
    const fail = (call: Promise<unknown>) => refusalOf(call)
    await fail(visitor.call(signIn, { body: { email, password: wrong } }))
    await visitor.call(signIn, { body: { email, password } })
    await fail(visitor.call(signInWithCode, { body: { code: wrongCodeOf(secret) } }))
    await fail(member.call(proveIdentity, { body: { password: wrong } }))
    await fail(member.call(proveIdentity, { body: { password, code: wrongCodeOf(secret, 1) } }))
    const { entries } = (await owner.call(listAuditEntries, { query: { limit: 4 } })).body
    const failure = {
      member: null,
      subject: { kind: 'member', id: memberId },
      addressRange: '127.0.0.0/24',
      details: { email },
    }
    expect(entries).toMatchObject([
      { ...failure, action: 'member.second_factor_failed' },
      { ...failure, action: 'member.password_failed' },
      { ...failure, action: 'member.second_factor_failed' },
      { ...failure, action: 'member.sign_in_failed' },
    ])
  })
})

describe('cookies', () => {
  const ask = (dashboard: Dashboard, email: string, headers: Record<string, string> = {}) =>
    dashboard.visitor().fetch('/dashboard/v1/sign-in', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ email, password }),
    })

  test('that no server has set are of nobody, and no fault', async ({ dashboard }) => {
    for (const value of ['%zz', '%00', '%ff.x', '%']) {
      const response = await fetch(`${dashboard.url}/dashboard/v1/sign-in/code`, {
        method: 'POST',
        headers: {
          origin: dashboard.url,
          cookie: `lethe.two_factor=${value}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ code: '123456' }),
      })
      expect(response.status).toBe(401)
    }
  })

  test('are HttpOnly and SameSite=Strict, and Secure where the page came by https', async ({
    dashboard,
  }) => {
    const { email } = await dashboard.member('viewer')
    const plain = (await ask(dashboard, email)).headers.getSetCookie()
    expect(plain.map((one) => one.split('=')[0])).toEqual([
      'lethe.session_token',
      expect.stringMatching(/^lethe\.browser_/),
    ])
    for (const cookie of plain) {
      expect(cookie).toMatch(/; HttpOnly/i)
      expect(cookie).toMatch(/; SameSite=Strict/i)
      expect(cookie).not.toMatch(/; Secure/i)
    }
    const origin = dashboard.url.replace('http:', 'https:')
    const https = (await ask(dashboard, email, { origin })).headers.getSetCookie()
    for (const cookie of https) expect(cookie).toMatch(/; Secure/)
  })

  test('are of this host alone and always Secure where PUBLIC_URL is https, also behind plain http', async ({
    recordings,
    address,
    project,
    db,
    dashboard: plain,
  }) => {
    const publicUrl = 'https://lethe.example.com'
    const pool = openPool(address, 2)
    const auth = openSignIn(pool, randomBytes(32).toString('base64url'), publicUrl)
    const parts = { recordings, address, project, signIn: auth }
    const dashboard = await startDashboard(parts, { dashboard: { publicUrl } })
    const headers = { 'content-type': 'application/json', origin: publicUrl }
    const send = (visitor: Visitor, path: string, body: object) =>
      visitor.fetch(`/dashboard/v1/${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
    const cookies: string[] = []
    const noting = async (answer: Promise<Response>) => {
      cookies.push(...(await answer).headers.getSetCookie())
      return answer
    }
    const { email } = await plain.member('admin')
    const visitor = dashboard.visitor()
    await noting(send(visitor, 'sign-in', { email, password }))
    const started = await noting(send(visitor, 'me/second-factor/start', { password }))
    const { secret } = (await started.json()) as { secret: string }
    await noting(send(visitor, 'me/second-factor/confirm', { code: codeOf(secret) }))
    await noting(send(visitor, 'sign-out', {}))
    await noting(send(visitor, 'sign-in', { email, password }))
    await noting(send(visitor, 'sign-in/code', { code: codeOf(secret, 1) }))
    // Prolonged by a GET, which says no origin.
    await db.sql`
      update auth.sign_ins
      set updated_at = updated_at - interval '2 hours', expires_at = expires_at - interval '2 hours'`
    expect((await noting(visitor.fetch('/dashboard/v1/projects'))).status).toBe(200)
    expect(cookies.length).toBeGreaterThan(7)
    for (const cookie of cookies) {
      expect(cookie).toMatch(/^__Host-lethe\./)
      expect(cookie).toMatch(/; Secure/i)
      expect(cookie).toMatch(/; Path=\//i)
      expect(cookie).not.toMatch(/Domain/i)
    }
    await dashboard.close()
    await pool.end()
  })

  test('of two sign-ins are refused: another host of the domain may have set one of them', async ({
    dashboard,
  }) => {
    const [victim, thief] = [await dashboard.member('owner'), await dashboard.member('viewer')]
    const name = 'lethe.session_token'
    const ask = (...signIns: Visitor[]) => {
      const cookie = signIns.map(({ cookies }) => `${name}=${cookies.get(name)}`).join('; ')
      return dashboard.visitor().fetch('/dashboard/v1/projects', { headers: { cookie } })
    }
    for (const response of [await ask(thief, victim), await ask(victim, thief)]) {
      expect(response.status).toBe(401)
      expect(await response.text()).toContain('Delete the cookies of this site')
    }
    expect((await ask(victim, victim)).status).toBe(200)
  })

  test('and responses are never cached and never sniffed, refusals too', async ({ dashboard }) => {
    const member = await dashboard.member('viewer')
    const paths = ['me', 'projects', 'members', 'projects/0/persons', 'nothing', 'sign-in']
    for (const visitor of [member, dashboard.visitor()]) {
      for (const path of paths) {
        for (const method of ['GET', 'DELETE']) {
          const { status, headers } = await visitor.fetch(`/dashboard/v1/${path}`, { method })
          const found = { status, cache: headers.get('cache-control') }
          expect(found, `${method} ${path}`).toMatchObject({ cache: 'no-store' })
          expect(headers.get('x-content-type-options')).toBe('nosniff')
        }
      }
    }
  })
})
