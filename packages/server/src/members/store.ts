import type { Invitation, Member, Role, SignIn } from '@lethe/contract/dashboard-members.ts'
import { fragment, type Sql } from '../sql.ts'
import type { Rights } from './access.ts'

const memberColumns = fragment`
  id, name, email, role, may_delete_persons as "mayDeletePersons",
  has_second_factor as "hasSecondFactor", created_at as "createdAt",
  last_sign_in_at as "lastSignInAt"`

export async function hasOwner(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ has: boolean }>`
    select exists (select from auth.members where role = 'owner') as has`
  return row?.has ?? false
}

/** Prevents other changes of members until the transaction ends. */
export async function lockMembers(tx: Sql): Promise<void> {
  await tx`lock table auth.members in share row exclusive mode`
}

/** In the order they joined. */
export function listMembers(sql: Sql): Promise<Member[]> {
  return sql<Member>`select ${memberColumns} from auth.members order by created_at, id`
}

export async function findMember(sql: Sql, id: string): Promise<Member | undefined> {
  const [member] = await sql<Member>`
    select ${memberColumns} from auth.members where id = ${id}`
  return member
}

export async function findMemberByEmail(sql: Sql, email: string): Promise<Member | undefined> {
  const [member] = await sql<Member>`
    select ${memberColumns} from auth.members where email = ${email}`
  return member
}

export interface NewMember extends Rights {
  name: string
  email: string
  passwordHash: string
}

/** Creates a member with a password; returns undefined if the email is taken. */
export async function insertMember(tx: Sql, member: NewMember): Promise<Member | undefined> {
  const [inserted] = await tx<Member>`
    insert into auth.members (name, email, role, may_delete_persons)
    values (${member.name}, ${member.email}, ${member.role}, ${member.mayDeletePersons})
    on conflict (email) do nothing
    returning ${memberColumns}`
  if (!inserted) return undefined
  await tx`
    insert into auth.credentials (account_id, provider_id, member_id, password)
    values (${inserted.id}, 'credential', ${inserted.id}, ${member.passwordHash})`
  return inserted
}

export async function updateMember(
  tx: Sql,
  id: string,
  { role, mayDeletePersons }: Rights,
): Promise<Member | undefined> {
  const [member] = await tx<Member>`
    update auth.members
    set role = ${role}, may_delete_persons = ${mayDeletePersons}, updated_at = app_now()
    where id = ${id}
    returning ${memberColumns}`
  return member
}

export async function renameMember(
  sql: Sql,
  id: string,
  name: string,
): Promise<Member | undefined> {
  const [member] = await sql<Member>`
    update auth.members set name = ${name}, updated_at = app_now()
    where id = ${id}
    returning ${memberColumns}`
  return member
}

/** Deletes a member with their sign-ins, password and links. */
export async function deleteMember(tx: Sql, id: string): Promise<void> {
  await deleteLinksOf(tx, id)
  await tx`delete from auth.members where id = ${id}`
}

export async function countOwners(tx: Sql): Promise<number> {
  const [row] = await tx<{ count: number }>`
    select count(*)::integer as count from auth.members where role = 'owner'`
  return row?.count ?? 0
}

export async function noteSignIn(sql: Sql, id: string): Promise<void> {
  await sql`update auth.members set last_sign_in_at = app_now() where id = ${id}`
}

/** The member whose sign-in waits for a code, by the identifier in its cookie. */
export async function findWaitingMember(sql: Sql, identifier: string): Promise<Member | undefined> {
  const [member] = await sql<Member>`
    select ${memberColumns}
    from auth.members
    where id::text = (select value from auth.verifications where identifier = ${identifier})`
  return member
}

/** The hash of a member's password. It changes with each password that is set. */
export async function readPasswordHash(sql: Sql, email: string): Promise<string | undefined> {
  const [credential] = await sql<{ password: string }>`
    select c.password
    from auth.members m
    join auth.credentials c on c.member_id = m.id and c.provider_id = 'credential'
    where m.email = ${email}`
  return credential?.password
}

/**
 * Deletes a new sign-in if the member's password has changed since it began; returns whether it was
 * kept. (A change of the password deletes the existing sign-ins; this waits for a change in progress.)
 */
export async function keepSignIn(
  sql: Sql,
  { email, passwordHash, token }: { email: string; passwordHash: string; token: string },
): Promise<boolean> {
  const [same] = await sql`
    select
    from auth.members m
    join auth.credentials c on c.member_id = m.id and c.provider_id = 'credential'
    where m.email = ${email} and c.password = ${passwordHash}
    for share of c`
  if (!same) await sql`delete from auth.sign_ins where token = ${token}`
  return same !== undefined
}

/** Deletes sign-ins that wait for the second factor, after a change of the password. */
export async function deleteWaitingSignIns(tx: Sql, memberId: string): Promise<void> {
  await tx`delete from auth.verifications where value = ${memberId}`
}

/** Locks a member's row, so that their rights do not change until the transaction ends. */
export async function lockMember(tx: Sql, id: string): Promise<Rights | undefined> {
  const [rights] = await tx<Rights>`
    select role, may_delete_persons as "mayDeletePersons"
    from auth.members
    where id = ${id}
    for share`
  return rights
}

/** Resets a password: removes the second factor and ends all sign-ins and links. */
export async function replacePassword(tx: Sql, id: string, passwordHash: string): Promise<void> {
  await tx`
    update auth.credentials set password = ${passwordHash}, updated_at = app_now()
    where member_id = ${id} and provider_id = 'credential'`
  await tx`delete from auth.second_factors where member_id = ${id}`
  await tx`delete from auth.passkeys where member_id = ${id}`
  await tx`
    update auth.members set has_second_factor = false, updated_at = app_now() where id = ${id}`
  await tx`delete from auth.sign_ins where member_id = ${id}`
  await deleteLinksOf(tx, id)
}

/**
 * Deletes the links that a member created, when their rights change, and reset links for the member:
 * their creators had permission only for the member's rights at that time.
 */
export async function deleteLinksOf(tx: Sql, memberId: string): Promise<void> {
  // Waits for links that are being created, so that they are deleted too.
  await tx`select from auth.members where id = ${memberId} for update`
  await tx`delete from auth.links where made_by = ${memberId} or member_id = ${memberId}`
  await tx`delete from session_links where made_by = ${memberId}`
}

/** Newest first. */
export function listSignIns(sql: Sql, memberId: string, currentId: string): Promise<SignIn[]> {
  return sql<SignIn>`
    select id, created_at as "createdAt", updated_at as "lastUsedAt", address,
      user_agent as "userAgent", id = ${currentId} as "isCurrent"
    from auth.sign_ins
    where member_id = ${memberId} and expires_at > app_now()
    order by created_at desc, id desc`
}

export async function endOtherSignIns(
  sql: Sql,
  memberId: string,
  currentId: string,
): Promise<void> {
  await sql`delete from auth.sign_ins where member_id = ${memberId} and id <> ${currentId}`
}

export type Link = { id: string; expiresAt: string } & (
  | { kind: 'set_up' }
  | { kind: 'invitation'; email: string; role: Role; mayDeletePersons: boolean }
  | { kind: 'reset'; memberId: string; email: string; role: Role }
)

const linkColumns = fragment`
  l.id, l.kind, l.expires_at as "expiresAt", l.member_id as "memberId",
  coalesce(l.email, m.email) as email, coalesce(l.role, m.role) as role,
  l.may_delete_persons as "mayDeletePersons"`

/** A valid link, by the hash of its token. */
export async function findLink(sql: Sql, tokenHash: Buffer): Promise<Link | undefined> {
  const [link] = await sql<Link>`
    select ${linkColumns}
    from auth.links l left join auth.members m on m.id = l.member_id
    where l.token_hash = ${tokenHash} and l.expires_at > app_now()`
  return link
}

/** Uses a link. Of several concurrent requests only one succeeds. */
export async function takeLink(
  tx: Sql,
  tokenHash: Buffer,
  kind: Link['kind'],
): Promise<Link | undefined> {
  const [link] = await tx<Link>`
    with taken as (
      delete from auth.links
      where token_hash = ${tokenHash} and kind = ${kind} and expires_at > app_now()
      returning *
    )
    select ${linkColumns} from taken l left join auth.members m on m.id = l.member_id`
  return link
}

export async function insertSetUpLink(sql: Sql, tokenHash: Buffer, hours: number): Promise<void> {
  await sql`
    insert into auth.links (kind, token_hash, expires_at)
    values ('set_up', ${tokenHash}, app_now() + ${hours} * interval '1 hour')`
}

/** Deletes all set-up links: several processes may have printed one. */
export async function deleteSetUpLinks(tx: Sql): Promise<void> {
  await tx`delete from auth.links where kind = 'set_up'`
}

const invitationColumns = fragment`
  id, email, role, may_delete_persons as "mayDeletePersons", created_at as "createdAt",
  expires_at as "expiresAt"`

/** Replaces an earlier invitation of the same email. */
export async function insertInvitation(
  tx: Sql,
  invitation: Rights & { email: string; tokenHash: Buffer; hours: number; madeBy: string },
): Promise<Invitation> {
  const { email, role, mayDeletePersons, tokenHash, hours, madeBy } = invitation
  await tx`delete from auth.links where kind = 'invitation' and email = ${email}`
  const [inserted] = await tx<Invitation>`
    insert into auth.links (kind, token_hash, email, role, may_delete_persons, made_by, expires_at)
    values ('invitation', ${tokenHash}, ${email}, ${role}, ${mayDeletePersons}, ${madeBy},
      app_now() + ${hours} * interval '1 hour')
    returning ${invitationColumns}`
  return inserted as Invitation
}

/** Newest first, without expired ones. */
export function listInvitations(sql: Sql): Promise<Invitation[]> {
  return sql<Invitation>`
    select ${invitationColumns}
    from auth.links
    where kind = 'invitation' and expires_at > app_now()
    order by created_at desc, id desc`
}

export async function findInvitation(sql: Sql, id: string): Promise<Invitation | undefined> {
  const [invitation] = await sql<Invitation>`
    select ${invitationColumns} from auth.links where id = ${id} and kind = 'invitation'`
  return invitation
}

export async function deleteInvitation(sql: Sql, id: string): Promise<void> {
  await sql`delete from auth.links where id = ${id} and kind = 'invitation'`
}

/** Replaces an earlier reset link of the same member. */
export async function insertResetLink(
  tx: Sql,
  { memberId, madeBy }: { memberId: string; madeBy: string | null },
  tokenHash: Buffer,
  hours: number,
): Promise<{ expiresAt: string }> {
  await tx`delete from auth.links where kind = 'reset' and member_id = ${memberId}`
  const [link] = await tx<{ expiresAt: string }>`
    insert into auth.links (kind, token_hash, member_id, made_by, expires_at)
    values ('reset', ${tokenHash}, ${memberId}, ${madeBy}, app_now() + ${hours} * interval '1 hour')
    returning expires_at as "expiresAt"`
  return link as { expiresAt: string }
}

/**
 * Counts an attempt in a bucket, which is reset `seconds` after its first attempt. Returns the number
 * of attempts, including this one, and the time until the reset.
 */
export async function countTry(
  sql: Sql,
  bucket: Buffer,
  seconds: number,
): Promise<{ tries: number; secondsLeft: number }> {
  const [row] = await sql<{ tries: number; secondsLeft: number }>`
    insert into auth.limits as l (bucket, tries, ends_at)
    values (${bucket}, 1, app_now() + ${seconds} * interval '1 second')
    on conflict (bucket) do update
    set tries = case when l.ends_at <= app_now() then 1 else l.tries + 1 end,
        ends_at = case when l.ends_at <= app_now() then excluded.ends_at else l.ends_at end
    returning tries, ceil(extract(epoch from ends_at - app_now()))::integer as "secondsLeft"`
  return row as { tries: number; secondsLeft: number }
}

/** Deletes expired sign-ins, links, limits, and sign-ins that waited for a code. */
export async function deleteEnded(sql: Sql): Promise<void> {
  await sql`delete from auth.limits where ends_at <= app_now()`
  await sql`delete from auth.sign_ins where expires_at <= app_now()`
  await sql`delete from auth.verifications where expires_at <= app_now()`
  await sql`delete from auth.links where expires_at <= app_now()`
  await sql`delete from session_links where expires_at <= app_now()`
}

/** Records a proof of the member of a sign-in, which is named by its id or token. */
export async function noteProof(
  sql: Sql,
  signIn: { id: string } | { token: string },
): Promise<void> {
  const { id = null, token = null } = signIn as { id?: string; token?: string }
  await sql`
    update auth.sign_ins
    set proven_at = app_now()
    where id = ${id}::uuid or token = ${token}`
}

export async function isProvenWithin(
  sql: Sql,
  signInId: string,
  seconds: number,
): Promise<boolean> {
  const [row] = await sql<{ isProven: boolean }>`
    select proven_at > app_now() - ${seconds} * interval '1 second' as "isProven"
    from auth.sign_ins
    where id = ${signInId}`
  return row?.isProven ?? false
}
