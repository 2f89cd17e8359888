import { afterAll, describe, expect, vi } from 'vitest'
import { boundOf, byDepth, chanceOf, isDeep } from './deep.ts'
import { exploreScenario } from './exploring.ts'
import { scenarios } from './scenarios.ts'
import { test } from './world-fixture.ts'

vi.mock('node:timers/promises', () => import('./sleep.ts'))

/** A scenario that was given up would go on beside the next one, over the same rows. */
const scenarioMilliseconds = 1_800_000

/**
 * In a normal run all scenarios whose actors interrupt each other, and of the others, whose actors then
 * only take turns, some of each kind, others each time.
 */
const stride = byDepth(4, 1)
const turn = isDeep ? 0 : chanceOf('scenarios').below(stride)
const others = scenarios.filter(({ bounds: [normal] }) => normal === 0)
const explored = scenarios.filter(
  (one) => one.bounds[0] > 0 || others.indexOf(one) % stride === turn,
)

const total = { schedules: 0, steps: 0, blocked: 0 }

describe('whichever way they meet', () => {
  for (const scenario of explored) {
    test(
      scenario.name,
      async ({ world }) => {
        const bound = boundOf(scenario.bounds)
        const begun = performance.now()
        const found = await exploreScenario(world, scenario, bound)
        const milliseconds = Math.round(performance.now() - begun)
        console.log(
          `${found.schedules - found.repeated} schedules (${bound} preemptions), ` +
            `${found.repeated} once more, ${found.steps} steps, ${found.blocked} waits, ` +
            `${milliseconds} ms: ${scenario.name}`,
        )
        if (!process.env.LETHE_BOUND) {
          expect(found.schedules - found.repeated).toBeGreaterThanOrEqual(
            byDepth(...scenario.schedulesMinimum),
          )
        }
        for (const name of ['schedules', 'steps', 'blocked'] as const) total[name] += found[name]
      },
      scenarioMilliseconds,
    )
  }
})

afterAll(() => {
  console.log(`in all ${total.schedules} schedules, ${total.steps} steps, ${total.blocked} waits`)
})
