import { describe, expect, vi } from 'vitest'
import type { ClaimedJob } from '../../src/erasure/claim.ts'
import { isDeep } from './deep.ts'
import { Caught } from './explorer.ts'
import { exploreScenario } from './exploring.ts'
import { stepsOf, unmet } from './faults.ts'
import { locksOfTheProduct, takesLock } from './locks.ts'
import { scenarios } from './scenarios.ts'
import { seeds, spares } from './seeds.ts'
import { test } from './world-fixture.ts'

vi.mock('node:timers/promises', () => import('./sleep.ts'))

// The list of steps is the product's own; a fault may be sown in it.
vi.mock('../../src/erasure/steps.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/erasure/steps.ts')>()
  return { ...original, stepsFor: (job: ClaimedJob) => stepsOf(original.stepsFor(job)) }
})

/** A seed that was given up would go on beside the next one, over the same rows. */
const seedMilliseconds = 1_800_000

describe('the exploration notices that', () => {
  for (const seed of seeds.filter(({ isShort }) => isDeep || isShort)) {
    test(seed.name, { timeout: seedMilliseconds }, async ({ world }) => {
      const scenario = scenarios.find(({ name }) => name.startsWith(seed.scenario))
      expect(scenario, 'the scenario of this seed').toBeDefined()
      let caught: unknown
      let schedules: number | undefined
      try {
        schedules = (await exploreScenario(world, scenario!, seed.bound ?? 1, seed)).schedules
      } catch (error) {
        caught = error
      }
      expect(unmet(seed), 'what was to be changed is not there').toEqual([])
      expect(caught, `not noticed in ${schedules} schedules`).toBeInstanceOf(Caught)
      const [reason, place] = (caught as Caught).message.split('\n', 2)
      console.log(`CAUGHT ${seed.name}: ${reason} ${place} of ${scenario?.name}`)
    })
  }
})

/** What is no part of an erasure, and explored nowhere here. */
const elsewhere = [/select from instance for update/]

test('every lock that the product takes is among what is taken away', async ({ world }) => {
  const locks = await locksOfTheProduct(world.eye)
  const ours = locks.filter(({ text }) => !elsewhere.some((one) => one.test(text)))
  expect(ours.length).toBeGreaterThan(10)
  const untouched = ours.filter(
    (lock) => ![...seeds, ...spares].some((one) => takesLock(one, lock)),
  )
  expect(untouched).toEqual([])
})

/** In a deep run alone: what is not there shows only after all schedules. */
const looked = isDeep ? spares : []
if (looked.length > 0) {
  describe('nothing notices, as something else holds the same, that no longer', () => {
    for (const spare of looked) {
      test(spare.name, { timeout: seedMilliseconds }, async ({ world }) => {
        const mine = scenarios.filter(({ name }) =>
          spare.scenarios.some((one) => name.startsWith(one)),
        )
        expect(mine.length).toBeGreaterThanOrEqual(spare.scenarios.length)
        for (const scenario of mine) {
          const { schedules } = await exploreScenario(world, scenario, 1, spare)
          expect(unmet(spare), `what was to be changed is not there in ${scenario.name}`).toEqual(
            [],
          )
          expect(schedules).toBeGreaterThan(1)
        }
      })
    }
  })
}
