import { promisify } from 'node:util'
import { asSleep } from './scheduler.ts'

/*
 * Replaces node:timers/promises in the suites that explore schedules: while an actor sleeps, the
 * others continue, and no time passes. Outside a schedule a sleep is only a turn of the event loop:
 * the suite itself moves the database's time.
 */

const nextTurn = promisify(setImmediate)

export async function setTimeout_<T>(
  _milliseconds?: number,
  value?: T,
  options?: { signal?: AbortSignal },
): Promise<T | undefined> {
  options?.signal?.throwIfAborted()
  if (!(await asSleep())) await nextTurn()
  options?.signal?.throwIfAborted()
  return value
}

export { setTimeout_ as setTimeout }
