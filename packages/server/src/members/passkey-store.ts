import type { Passkey } from '@lethe/contract/dashboard-members.ts'
import { fragment, type Sql } from '../sql.ts'

/** The credential of a passkey, as WebAuthn describes it. */
export interface PasskeyKey {
  id: string
  publicKey: Buffer
  counter: number
}

const challengeSeconds = 300

interface Challenge {
  challenge: string
  memberId: string
  purpose: 'add' | 'use'
}

/** Stores a challenge for an authenticator to sign, and deletes expired ones. */
export async function keepChallenge(
  sql: Sql,
  { challenge, memberId, purpose }: Challenge,
): Promise<void> {
  await sql`delete from auth.passkey_challenges where expires_at < app_now()`
  await sql`
    insert into auth.passkey_challenges (challenge, member_id, purpose, expires_at)
    values (${challenge}, ${memberId}, ${purpose},
      app_now() + ${challengeSeconds} * interval '1 second')`
}

/** Uses a challenge: returns whether this member got it for this purpose. True only once. */
export async function takeChallenge(
  sql: Sql,
  { challenge, memberId, purpose }: Challenge,
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

/** Returns undefined if the passkey is already in use. */
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

/** Returns the passkey's name; undefined if the member has no such passkey. */
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
