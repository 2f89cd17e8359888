import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * These begin first, whether they work or wait for what they start: a long one that begins last runs
 * alone at the end. vitest itself knows what is long only where it has run before.
 */
const longest = [
  'proof/interleavings',
  'dashboard-accessibility',
  'store-faults',
  'package',
  'replay-seal',
  'sdk-',
  'erasure-residue',
  'backup',
  'command',
  'embedded',
  'dashboard-deletions',
  'members',
  'ledger',
  'blobs-s3',
  'high-availability',
  'set-ups',
  'webhooks',
  'search',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const rank = longest.findIndex((name) => moduleId.includes(`/${name}`))
      return rank < 0 ? longest.length : rank
    }
    return (await super.sort(files)).sort((a, b) => rankOf(a) - rankOf(b))
  }
}

const include = ['packages/*/test/**/*.test.ts', 'acceptance/**/*.test.ts']
/** They put something in the place of a module, which has to be nowhere else. */
const replacing = 'packages/server/test/proof/*.test.ts'

const each = {
  setupFiles: ['packages/server/test/each-file.ts'],
  // The machine is shared: a time-out is there to end what hangs, not to measure.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // Of an `expect.poll` too, which otherwise gives up after a second.
  expect: { poll: { timeout: 30_000 } },
  sequence: { sequencer: LongestFirst },
}

export default defineConfig({
  test: {
    globalSetup: ['packages/sdk-browser/test/built.ts', 'packages/server/test/global-setup.ts'],
    // Most tests wait for a database, a disk or a browser: four workers leave two cores idle for a
    // sixth of the time, and with six, requests wait longer than they may on a slow machine.
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        // A worker loads the server once for all of its files: that is half of the time of a short one.
        test: { ...each, name: 'all', isolate: false, include, exclude: [replacing] },
      },
      { test: { ...each, name: 'proof', include: [replacing] } },
    ],
  },
})
