import { hash, randomBytes } from 'node:crypto'
import { linkPaths } from '@lethe/contract/dashboard-members.ts'
import type { Db, Sql } from '../sql.ts'
import { hasOwner, insertResetLink, insertSetUpLink } from './store.ts'

export const setUpHours = 24
export const invitationHours = 7 * 24
export const resetHours = 24

/** A new token and its hash. 256 random bits need no slow hash. */
export function newToken(): { token: string; tokenHash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, tokenHash: hashOfToken(token) }
}

export function hashOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The token is the fragment of the link, so no server, proxy or log sees it. */
export function linkTo(publicUrl: string, kind: keyof typeof linkPaths, token: string): string {
  return `${publicUrl}${linkPaths[kind]}#${token}`
}

/** Creates a link for the first owner to sign up; returns undefined once there is an owner. */
export async function makeSetUpLink(db: Db, publicUrl: string): Promise<string | undefined> {
  if (await hasOwner(db.sql)) return undefined
  const { token, tokenHash } = newToken()
  await insertSetUpLink(db.sql, tokenHash, setUpHours)
  return linkTo(publicUrl, 'set_up', token)
}

/**
 * Creates a link to reset a member's password; an earlier link stops working. The caller has checked
 * the rights of `madeBy` (null for the command line) in the same transaction.
 */
export async function makeResetLink(
  tx: Sql,
  publicUrl: string,
  who: { memberId: string; madeBy: string | null },
): Promise<{ link: string; expiresAt: string }> {
  const { token, tokenHash } = newToken()
  const { expiresAt } = await insertResetLink(tx, who, tokenHash, resetHours)
  return { link: linkTo(publicUrl, 'reset', token), expiresAt }
}
