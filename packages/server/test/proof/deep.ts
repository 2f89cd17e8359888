import { randomInt } from 'node:crypto'

/**
 * `LETHE_DEEP=1` runs the same suites with wider bounds: more preemptions, more deaths, more rows,
 * and tests that take minutes.
 */
export const isDeep = process.env.LETHE_DEEP === '1'

/** The first in a normal run, the second in a deep one. */
export function byDepth<T>(normal: T, deep: T): T {
  return isDeep ? deep : normal
}

export interface Chance {
  seed: number
  /** An integer from 0 to below `limit`. */
  below(limit: number): number
}

/**
 * Reproducible random numbers: the seed is printed and can be set with `LETHE_SEED`. (mulberry32,
 * because it is short and deterministic.)
 */
export function chanceOf(suite: string): Chance {
  const seed = process.env.LETHE_SEED ? Number(process.env.LETHE_SEED) : randomInt(2 ** 31)
  console.log(`${suite}: LETHE_SEED=${seed}`)
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { seed, below: (limit) => Math.floor(next() * limit) }
}

/** The preemptions of a schedule. `LETHE_BOUND` overrides them, to investigate one scenario. */
export function boundOf([normal, deep]: [normal: number, deep: number]): number {
  const { LETHE_BOUND } = process.env
  return LETHE_BOUND ? Number(LETHE_BOUND) : byDepth(normal, deep)
}
