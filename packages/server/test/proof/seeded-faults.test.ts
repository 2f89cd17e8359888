import { describe, expect, vi } from 'vitest'
import type { ClaimedJob } from '../../src/erasure/attempts.ts'
import { test as base } from '../fixtures.ts'
import { isDeep } from './deep.ts'
import { Caught } from './explorer.ts'
import { exploreScenario } from './exploring.ts'
import { stepsOf, unmet } from './faults.ts'
import { scenarios } from './scenarios.ts'
import { seeds } from './seeds.ts'
import { openWorld, type World } from './world.ts'

vi.mock('node:timers/promises', () => import('./sleep.ts'))

// The list of steps is the product's own; a fault may be sown in it.
vi.mock('../../src/erasure/steps.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/erasure/steps.ts')>()
  return { ...original, stepsFor: (job: ClaimedJob) => stepsOf(original.stepsFor(job)) }
})

const test = base.extend<{ world: World }>({
  world: [
    async ({ address }, use) => {
      const world = await openWorld(address)
      await use(world)
      await world.close()
    },
    { scope: 'file' },
  ],
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
