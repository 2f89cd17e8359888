import { defineConfig } from 'vitest/config'

/** The SDK's tests alone: they need no database. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    globalSetup: ['test/built.ts'],
    include: ['test/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
