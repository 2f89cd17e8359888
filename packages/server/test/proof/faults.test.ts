import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, vi } from 'vitest'
import type { ClaimedJob } from '../../src/erasure/job-leases.ts'
import {
  anchoredLines,
  lockingLines,
  locksOfFunctions,
  namedStatements,
  removesLock,
} from './anchors.ts'
import { covered, isCovered } from './covered.ts'
import { isDeep } from './deep.ts'
import { Caught } from './explorer.ts'
import { exploreScenario } from './exploring.ts'
import { stepsOf, unmet } from './faults.ts'
import { scenarios } from './scenarios.ts'
import { noticedFaults, redundantFaults } from './sown-faults.ts'
import { test } from './world-fixture.ts'

vi.mock('node:timers/promises', () => import('./sleep.ts'))

// The list of steps is the product's own; a fault may be sown in it.
vi.mock('../../src/erasure/steps.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/erasure/steps.ts')>()
  return { ...original, stepsFor: (job: ClaimedJob) => stepsOf(original.stepsFor(job)) }
})

/** A run that was given up would go on beside the next one, over the same rows. */
const faultMilliseconds = 1_800_000

describe('the exploration notices that', () => {
  for (const fault of noticedFaults.filter(({ isShort }) => isDeep || isShort)) {
    test(fault.name, { timeout: faultMilliseconds }, async ({ world }) => {
      const scenario = scenarios.find(({ name }) => name.startsWith(fault.scenario))
      expect(scenario, 'the scenario of this fault').toBeDefined()
      let caught: unknown
      let schedules: number | undefined
      try {
        schedules = (await exploreScenario(world, scenario!, fault.bound ?? 1, fault)).schedules
      } catch (error) {
        caught = error
      }
      expect(unmet(fault), 'the fault was not sown').toEqual([])
      expect(caught, `not noticed in ${schedules} schedules`).toBeInstanceOf(Caught)
      const [reason, place] = (caught as Caught).message.split('\n', 2)
      console.log(`CAUGHT ${fault.name}: ${reason} ${place} of ${scenario?.name}`)
    })
  }
})

const allFaults = [...noticedFaults, ...redundantFaults]
const allClauses = allFaults.flatMap(({ clauses = [] }) => clauses)

test('every fault has its anchor in the SQL of the product', () => {
  const anchors = new Set(anchoredLines().map(({ anchor }) => anchor))
  const statements = new Set(namedStatements())
  const missing = allClauses.flatMap(({ name, within }) => [
    ...(anchors.has(name) ? [] : [`-- fault: ${name}`]),
    ...(within === undefined || statements.has(within) ? [] : [`-- statement: ${within}`]),
  ])
  expect(missing, 'comments that are no longer in packages/server/src').toEqual([])
})

test('every anchor has a fault that uses it', () => {
  const used = new Set(allClauses.map(({ name }) => name))
  const unused = anchoredLines().filter(({ anchor }) => !used.has(anchor as string))
  expect(unused.map(({ place }) => place)).toEqual([])
  const within = new Set(allClauses.map((clause) => clause.within))
  expect(namedStatements().filter((name) => !within.has(name))).toEqual([])
})

test('every file with an anchor is on the list of what is covered, and all of the list is there', () => {
  const files = anchoredLines().map(({ place }) => `packages/server/src/${place.split(':')[0]}`)
  expect([...new Set(files)].filter((file) => !isCovered(file))).toEqual([])
  const root = join(import.meta.dirname, '../../../..')
  expect(covered.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('every lock of the product is removed by one of the faults', async ({ world }) => {
  const removed = new Set(
    allClauses.filter(({ instead }) => instead === undefined).map(({ name }) => name),
  )
  const lines = lockingLines(['erasure', 'persons', 'recordings', 'retention']).filter(
    // Takes no part in an erasure.
    ({ text }) => text !== 'select from instance for update',
  )
  const locks = await locksOfFunctions(world.eye, ['chunk_intend', 'person_write', 'persons_write'])
  expect(lines.length).toBeGreaterThan(10)
  expect(locks.length).toBeGreaterThan(2)
  const kept = [
    ...lines.filter(({ anchor }) => !removed.has(anchor as string)).map(({ place }) => place),
    ...locks.filter((lock) => !allFaults.some((fault) => removesLock(fault, lock))),
  ]
  expect(kept).toEqual([])
})

/** In a deep run alone: what is not there shows only after all schedules. */
const redundant = isDeep ? redundantFaults : []
if (redundant.length > 0) {
  describe('nothing breaks, because something else holds the same, without', () => {
    for (const fault of redundant) {
      test(fault.name, { timeout: faultMilliseconds }, async ({ world }) => {
        const mine = scenarios.filter(({ name }) =>
          fault.scenarios.some((one) => name.startsWith(one)),
        )
        expect(mine.length).toBeGreaterThanOrEqual(fault.scenarios.length)
        for (const scenario of mine) {
          const { schedules } = await exploreScenario(world, scenario, 1, fault)
          expect(unmet(fault), `the fault was not sown in ${scenario.name}`).toEqual([])
          expect(schedules).toBeGreaterThan(1)
        }
      })
    }
  })
}
