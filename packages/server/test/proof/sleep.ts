import { promisify } from 'node:util'
import { asSleep } from './scheduler.ts'

/*
 * Stands in for node:timers/promises in the suites that explore schedules: a sleep of an actor is
 * a place in which the others go on, not a time. Outside of a schedule nobody is waited for, and
 * the database's time is moved by the suite: there a sleep is only a turn of the event loop.
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
