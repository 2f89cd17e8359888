import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * These begin first, as they take the longest: one that begins last runs alone at the end. vitest
 * itself knows what is long only where it has run before.
 */
const longest = [
  'interleavings',
  'backup',
  'store-faults',
  'blobs-s3',
  'dashboard-player',
  'embedded',
  'erasure-processes',
  'high-availability',
  'command',
  'dashboard-awkward',
  'erasure-blob-faults',
  'erasure-postgres-crash',
  'upgrade-database',
  'sdk-visit',
  'signals',
]

/** What draws pages keeps a processor busy, so it runs beside others, which mostly wait. */
const isDrawing = ({ moduleId }: TestSpecification) => moduleId.includes('/acceptance/')

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) =>
      longest.findIndex((name) => basename(moduleId).startsWith(name))
    const bySize = await super.sort(files)
    const first = bySize.filter((file) => rankOf(file) >= 0)
    const rest = bySize.filter((file) => rankOf(file) < 0)
    const drawing = rest.filter(isDrawing)
    const others = rest.filter((file) => !isDrawing(file))
    return [
      ...first.sort((a, b) => rankOf(a) - rankOf(b)),
      ...others.flatMap((file, index) =>
        index % 3 === 0 ? [...drawing.splice(0, 1), file] : [file],
      ),
      ...drawing,
    ]
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
