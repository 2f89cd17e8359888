import { hash } from 'node:crypto'
import { ApiError } from '../api-error.ts'
import { networkOf } from '../http/network.ts'
import type { Sql } from '../sql.ts'
import { countTry } from './store.ts'

interface Limit {
  tries: number
  seconds: number
}

/**
 * How often passwords, codes and links can be tried, right or wrong, over all processes. A browser that
 * a member has signed in with before has its own limit, so that others cannot lock the member out of
 * it. All other attempts count per network and member, per member, and per network.
 */
const limits = {
  browser: { tries: 20, seconds: 900 },
  'network and member': { tries: 10, seconds: 900 },
  member: { tries: 60, seconds: 900 },
  network: { tries: 120, seconds: 60 },
  'code of a member': { tries: 10, seconds: 900 },
  'sign-in': { tries: 20, seconds: 900 },
  'challenge of a sign-in': { tries: 60, seconds: 900 },
  'challenge of a member': { tries: 60, seconds: 900 },
  link: { tries: 60, seconds: 60 },
} satisfies Record<string, Limit>

/** Counts an attempt to sign in with a password. */
export async function limitSignIns(
  sql: Sql,
  { address, email, browser }: { address: string; email: string; browser: string | undefined },
): Promise<void> {
  if (browser !== undefined) return limitTries(sql, 'browser', browser)
  const network = networkOf(address)
  await limitTries(sql, 'network and member', `${network} ${email}`)
  await limitTries(sql, 'member', email)
  await limitTries(sql, 'network', network)
}

/** Counts an attempt with a second factor's code at a sign-in. */
export async function limitCodes(
  sql: Sql,
  { memberId, browser }: { memberId: string; browser: string | undefined },
): Promise<void> {
  if (browser !== undefined) return limitTries(sql, 'browser', browser)
  await limitTries(sql, 'code of a member', memberId)
}

/** Counts an attempt in a sign-in: a stolen sign-in cannot block other sign-ins. */
export function limitProofs(sql: Sql, signInId: string): Promise<void> {
  return limitTries(sql, 'sign-in', signInId)
}

/** Counts a challenge for a passkey: each is a row in the database until it expires. */
export function limitChallenges(
  sql: Sql,
  { signInId, memberId }: { signInId: string | undefined; memberId: string },
): Promise<void> {
  if (signInId !== undefined) return limitTries(sql, 'challenge of a sign-in', signInId)
  return limitTries(sql, 'challenge of a member', memberId)
}

export function limitLinks(sql: Sql, address: string): Promise<void> {
  return limitTries(sql, 'link', networkOf(address))
}

/** Refuses with rate_limited if this attempt is over the limit. */
async function limitTries(sql: Sql, kind: keyof typeof limits, name: string): Promise<void> {
  const { tries, seconds } = limits[kind]
  const counted = await countTry(sql, bucketOf(kind, name), seconds)
  if (counted.tries <= tries) return
  throw new ApiError('rate_limited', 'Too many attempts; wait a little and try again.', {
    headers: { 'retry-after': String(Math.max(1, counted.secondsLeft)) },
  })
}

/** Names are hashed, so that the database stores neither addresses nor emails here. */
export function bucketOf(kind: string, name: string): Buffer {
  return hash('sha256', `${kind} ${name}`, 'buffer')
}
