import type { Passkey } from '@lethe/contract/dashboard-members.ts'
import { fragment, type Sql } from '../sql.ts'

/** A passkey that signed, or is to sign, as WebAuthn describes it. */
export interface PasskeyKey {
  id: string
  publicKey: Buffer
  counter: number
}

const challengeSeconds = 300

type Purpose = 'add' | 'use'

/** Keeps what an authenticator is asked to sign, and forgets those whose time is over. */
export async function keepChallenge(
  sql: Sql,
  { challenge, memberId, purpose }: { challenge: string; memberId: string; purpose: Purpose },
): Promise<void> {
  await sql`delete from auth.passkey_challenges where expires_at < app_now()`
  await sql`
    insert into auth.passkey_challenges (challenge, member_id, purpose, expires_at)
    values (${challenge}, ${memberId}, ${purpose},
      app_now() + ${challengeSeconds} * interval '1 second')`
}

/** Whether this challenge was given to this member for that, a moment ago; true once. */
export async function takeChallenge(
  sql: Sql,
  { challenge, memberId, purpose }: { challenge: string; memberId: string; purpose: Purpose },
): Promise<boolean> {
  const rows = await sql`
    delete from auth.passkey_challenges
    where challenge = ${challenge} and member_id = ${memberId} and purpose = ${purpose}
      and expires_at > app_now()
    returning challenge`
  return rows.length > 0
}

const passkeyColumns = fragment`
  id, name, created_at as "createdAt", last_used_at as "lastUsedAt"`

/** Oldest first. */
export function listPasskeys(sql: Sql, memberId: string): Promise<Passkey[]> {
  return sql<Passkey>`
    select ${passkeyColumns} from auth.passkeys
    where member_id = ${memberId} order by created_at, id`
}

export async function findPasskey(
  sql: Sql,
  memberId: string,
  id: string,
): Promise<PasskeyKey | undefined> {
  const [key] = await sql<PasskeyKey>`
    select id, public_key as "publicKey", counter::float8 as counter
    from auth.passkeys where member_id = ${memberId} and id = ${id}`
  return key
}

/** undefined: somebody has that passkey already. */
export async function insertPasskey(
  sql: Sql,
  memberId: string,
  name: string,
  { id, publicKey, counter }: PasskeyKey,
): Promise<Passkey | undefined> {
  const [passkey] = await sql<Passkey>`
    insert into auth.passkeys (id, member_id, name, public_key, counter)
    values (${id}, ${memberId}, ${name}, ${publicKey}, ${counter})
    on conflict do nothing
    returning ${passkeyColumns}`
  return passkey
}

export async function notePasskeyUse(sql: Sql, id: string, counter: number): Promise<void> {
  await sql`
    update auth.passkeys set counter = ${counter}, last_used_at = app_now() where id = ${id}`
}

/** Returns its name; undefined where the member has no such passkey. */
export async function deletePasskey(
  sql: Sql,
  memberId: string,
  id: string,
): Promise<string | undefined> {
  const [passkey] = await sql<{ name: string }>`
    delete from auth.passkeys where member_id = ${memberId} and id = ${id} returning name`
  return passkey?.name
}

export async function deletePasskeysOf(sql: Sql, memberId: string): Promise<void> {
  await sql`delete from auth.passkeys where member_id = ${memberId}`
}
