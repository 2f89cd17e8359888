import { promisify } from 'node:util'
import { asSleep } from './scheduler.ts'

/*
 * Stands in for node:timers/promises in the suites that explore schedules: a sleep of an actor is
 * a place in which the others go on, not a time. Anybody else's sleep is a real one.
 */

const realSleep = promisify(setTimeout)

export async function setTimeout_<T>(
  milliseconds?: number,
  value?: T,
  options?: { signal?: AbortSignal },
): Promise<T | undefined> {
  options?.signal?.throwIfAborted()
  if (!(await asSleep())) await realSleep(milliseconds, undefined, options)
  options?.signal?.throwIfAborted()
  return value
}

export { setTimeout_ as setTimeout }
