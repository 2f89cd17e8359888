import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'acceptance/**/*.test.ts'],
    globalSetup: ['packages/server/test/global-setup.ts'],
    setupFiles: ['packages/server/test/each-file.ts'],
    // The machine is shared: a time-out is there to end what hangs, not to measure.
    testTimeout: 120_000,
    // Most tests wait for a database, a disk or a browser: on two cores two workers left a quarter of them idle.
    maxWorkers: 3,
    hookTimeout: 120_000,
    // Of an `expect.poll` too, which otherwise gives up after a second.
    expect: { poll: { timeout: 30_000 } },
  },
})
