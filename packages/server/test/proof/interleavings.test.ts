import { afterAll, describe, expect, vi } from 'vitest'
import { boundOf, byDepth } from './deep.ts'
import { exploreScenario } from './exploring.ts'
import { scenarios } from './scenarios.ts'
import { test } from './world-fixture.ts'

vi.mock('node:timers/promises', () => import('./sleep.ts'))

/** A scenario that was given up would go on beside the next one, over the same rows. */
const scenarioMilliseconds = 1_800_000

const total = { schedules: 0, steps: 0, blocked: 0 }

describe('whichever way they meet', () => {
  for (const scenario of scenarios) {
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
