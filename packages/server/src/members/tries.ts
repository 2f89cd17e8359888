import { hash } from 'node:crypto'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import { countTry } from './store.ts'

interface Limit {
  tries: number
  seconds: number
}

/**
 * How often passwords, codes and links can be tried, right or wrong, in all processes together.
 * The limit of a member holds however many addresses somebody has; it is wide, so that who fills it
 * on purpose keeps the member out for minutes and not for days.
 */
const limits = {
  address: { tries: 30, seconds: 60 },
  member: { tries: 60, seconds: 900 },
  account: { tries: 30, seconds: 900 },
} satisfies Record<string, Limit>

/** Counts a try and refuses it with rate_limited where it is one too many. */
export async function limitTries(sql: Sql, kind: keyof typeof limits, name: string): Promise<void> {
  const { tries, seconds } = limits[kind]
  const counted = await countTry(sql, hash('sha256', `${kind} ${name}`, 'buffer'), seconds)
  if (counted.tries <= tries) return
  throw new ApiError('rate_limited', 'Too many tries; wait a little and try again.', {
    headers: { 'retry-after': String(Math.max(1, counted.secondsLeft)) },
  })
}
