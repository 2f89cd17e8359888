import {
  addPasskey,
  checkProof,
  confirmSecondFactor,
  getMe,
  listPasskeys,
  proveIdentity,
  removePasskey,
  removeSecondFactor,
  signIn,
  signInWithCode,
  startPasskey,
  startPasskeyUse,
  startSecondFactor,
} from '@lethe/contract/dashboard-members.ts'
import { describe, expect } from 'vitest'
import { codeOf } from './authenticator.ts'
import {
  test as base,
  type Dashboard,
  newVisitor,
  password,
  refusalOf,
  type SignedInVisitor,
  type Visitor,
} from './dashboard-fixtures.ts'
import { newPasskey } from './passkey.ts'

const wrong = { status: 401, code: 'credentials_wrong' }
const refused = { status: 400, code: 'invalid_request' }

interface Keyed {
  member: SignedInVisitor
  passkey: ReturnType<typeof newPasskey>
  secret: string
  recoveryCodes: string[]
  /** Where browsers have passkeys: the service by a name. */
  origin: string
}

const originOf = ({ url }: Dashboard) => url.replace('127.0.0.1', 'localhost')

/** `keyed`: a member with an authenticator and a passkey beside it. */
const test = base.extend<{ keyed: Keyed }>({
  keyed: async ({ dashboard, db }, use) => {
    await db.sql`delete from auth.limits`
    const origin = originOf(dashboard)
    const { cookies, ...rest } = await dashboard.member('member')
    const member = { ...rest, ...newVisitor(origin) }
    for (const [name, value] of cookies) member.cookies.set(name, value)
    const begun = (await member.call(startSecondFactor, { body: { password } })).body
    await member.call(confirmSecondFactor, { body: { code: codeOf(begun.secret) } })
    const passkey = newPasskey(origin)
    const { options } = (await member.call(startPasskey, { body: {} })).body
    await member.call(addPasskey, { body: { name: 'Laptop', passkey: passkey.create(options) } })
    await use({ member, passkey, origin, ...begun })
  },
})

/** A browser that gave the password, and what it is to sign. */
async function waiting({ member, origin }: Keyed) {
  const visitor = newVisitor(origin)
  const body = { email: member.email, password }
  expect((await visitor.call(signIn, { body })).body.next).toBe('code')
  return { visitor, options: await asked(visitor) }
}

async function asked(visitor: Visitor): Promise<Record<string, unknown>> {
  const { options } = (await visitor.call(startPasskeyUse, { body: {} })).body
  if (!options) throw new Error('There is no passkey to ask for.')
  return options
}

const memberOf = async (visitor: Visitor) => (await visitor.call(getMe, {})).body.member

describe('a passkey', () => {
  test('signs in after the password, instead of a code, and can be used for a proof', async ({
    keyed,
    db,
  }) => {
    const { member, passkey } = keyed
    const { visitor, options } = await waiting(keyed)
    expect(await memberOf(visitor)).toBeNull()
    await visitor.call(signInWithCode, { body: { passkey: passkey.use(options) } })
    expect((await memberOf(visitor))?.id).toBe(member.memberId)

    await db.sql`update auth.sign_ins set proven_at = proven_at - interval '601 seconds'`
    const proof = passkey.use(await asked(visitor))
    await visitor.call(proveIdentity, { body: { password, passkey: proof } })
    expect((await visitor.call(checkProof, {})).body.isRecent).toBe(true)
    const [listed] = (await visitor.call(listPasskeys, {})).body.passkeys
    expect(listed).toMatchObject({ id: passkey.id, name: 'Laptop' })
    expect(listed?.lastUsedAt).not.toBeNull()
  })

  test('proves nothing by another challenge, key, page or member, nor a second time', async ({
    keyed,
    dashboard,
    db,
  }) => {
    const { member, passkey } = keyed
    const { visitor, options } = await waiting(keyed)
    const answer = passkey.use(options)
    const [head = '', ...rest] = answer.response.signature
    const bent = [head === 'A' ? 'B' : 'A', ...rest].join('')
    const stranger = await dashboard.member('member')
    for (const given of [
      {},
      { passkey: passkey.use({ ...options, challenge: 'bm90IG9uZSBvZiBvdXJz' }) },
      { passkey: newPasskey(keyed.origin).use(await asked(visitor)) },
      { passkey: { ...answer, response: { ...answer.response, signature: bent } } },
      // Each challenge is good once, also for one who got it wrong.
      { passkey: answer },
    ]) {
      const attempt = visitor.call(signInWithCode, { body: given })
      expect(await refusalOf(attempt)).toEqual(wrong)
    }
    expect(await memberOf(visitor)).toBeNull()
    const other = { body: { password, passkey: passkey.use(await asked(member)) } }
    await refusalOf(stranger.call(proveIdentity, other))
    // It has no second factor: its password is all that is asked for, and the passkey stays unused.
    const elsewhere = newPasskey('http://evil.example')
    const phished = { ...elsewhere.use(await asked(visitor)), id: passkey.id, rawId: passkey.id }
    expect(await refusalOf(visitor.call(signInWithCode, { body: { passkey: phished } }))).toEqual(
      wrong,
    )
    // The password has to be right too.
    const guess = { password: 'a guess', passkey: passkey.use(await asked(member)) }
    expect(await refusalOf(member.call(proveIdentity, { body: guess }))).toEqual(wrong)

    const used = passkey.use(await asked(visitor))
    await visitor.call(signInWithCode, { body: { passkey: used } })
    const again = visitor.call(proveIdentity, { body: { password, passkey: used } })
    expect(await refusalOf(again)).toEqual(wrong)
    const failures = await db.sql`
      select from audit_log
      where action = 'member.second_factor_failed' and subject_id = ${member.memberId}`
    expect(failures.length).toBeGreaterThanOrEqual(7)
  })

  test('is added only with an authenticator, after a recent proof and by a host name', async ({
    keyed,
    dashboard,
    db,
  }) => {
    const { member } = keyed
    const without = await dashboard.member('member')
    expect(await refusalOf(without.call(startPasskey, { body: {} }))).toEqual(refused)
    // A challenge to sign in with is none to add a key by.
    const passkey = newPasskey(keyed.origin).create(await asked(member))
    const attempt = member.call(addPasskey, { body: { name: 'Mine', passkey } })
    expect(await refusalOf(attempt)).toEqual(refused)
    const byAddress = dashboard.visitor()
    for (const [name, value] of member.cookies) byAddress.cookies.set(name, value)
    expect(await refusalOf(byAddress.call(startPasskey, { body: {} }))).toEqual(refused)
    await db.sql`update auth.sign_ins set proven_at = proven_at - interval '601 seconds'`
    const stolen = [
      () => member.call(startPasskey, { body: {} }),
      () => member.call(addPasskey, { body: { name: 'Mine', passkey } }),
      () => member.call(removePasskey, { params: { passkeyId: keyed.passkey.id } }),
    ]
    for (const attempt of stolen) {
      expect((await refusalOf(attempt()))?.code).toBe('reauthentication_required')
    }
  })

  test('challenges are limited, for a sign-in and for somebody who gave the password', async ({
    keyed,
  }) => {
    const { member } = keyed
    const { visitor } = await waiting(keyed)
    for (const one of [member, visitor]) {
      const seen = new Set<number>()
      for (let n = 0; n < 62; n++) {
        const asking = one.call(startPasskeyUse, { body: {} })
        seen.add((await asking.catch((error) => error)).status)
      }
      expect([...seen]).toEqual([200, 429])
    }
  })

  test('that was removed is no longer accepted; all are removed with the second factor, and each change is in the audit log', async ({
    keyed,
    db,
  }) => {
    const { member, passkey, recoveryCodes, origin } = keyed
    await member.call(removePasskey, { params: { passkeyId: passkey.id } })
    const visitor = newVisitor(origin)
    await visitor.call(signIn, { body: { email: member.email, password } })
    expect((await visitor.call(startPasskeyUse, { body: {} })).body.options).toBeNull()

    const second = newPasskey(origin)
    const { options } = (await member.call(startPasskey, { body: {} })).body
    await member.call(addPasskey, { body: { name: 'Key', passkey: second.create(options) } })
    const code = recoveryCodes[0] as string
    await member.call(removeSecondFactor, { body: { password, code } })
    expect((await member.call(listPasskeys, {})).body.passkeys).toEqual([])
    const written = await db.sql<{ action: string; name: string }>`
      select action, details ->> 'name' as name from audit_log
      where member_id = ${member.memberId} and action like 'member.passkey%' order by id`
    expect(written.map(({ action, name }) => `${action} ${name}`)).toEqual([
      'member.passkey_added Laptop',
      'member.passkey_removed Laptop',
      'member.passkey_added Key',
    ])
  })
})
