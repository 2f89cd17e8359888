import { hash, randomBytes } from 'node:crypto'
import { linkPaths } from '@lethe/contract/dashboard-members.ts'
import type { Db, Sql } from '../sql.ts'
import { hasOwner, insertResetLink, insertSetUpLink } from './store.ts'

export const setUpHours = 24
export const invitationHours = 7 * 24
export const resetHours = 24

/** A new token, 256 random bits, and what is stored of it: that many need no slow hash. */
export function newToken(): { token: string; tokenHash: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, tokenHash: hashOfToken(token) }
}

export function hashOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The token is the fragment of the link: no server, proxy or log ever sees it. */
export function linkTo(publicUrl: string, kind: keyof typeof linkPaths, token: string): string {
  return `${publicUrl}${linkPaths[kind]}#${token}`
}

/** A new link by which the first owner signs up; undefined once there is an owner. */
export async function makeSetUpLink(db: Db, publicUrl: string): Promise<string | undefined> {
  if (await hasOwner(db.sql)) return undefined
  const { token, tokenHash } = newToken()
  await insertSetUpLink(db.sql, tokenHash, setUpHours)
  return linkTo(publicUrl, 'set_up', token)
}

/**
 * A new link for resetting a member's password; an earlier one no longer works. It is made in
 * the transaction that has looked whether its maker may; null is the command line.
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
