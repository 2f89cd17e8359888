import { writeFileSync } from 'node:fs'
import type { Reporter } from 'vitest/node'

/** Writes down the errors outside of any test, which the report in JSON leaves out, for test.ts. */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by it
export default class implements Reporter {
  onTestRunEnd(...[, errors]: Parameters<NonNullable<Reporter['onTestRunEnd']>>): void {
    const file = process.env.LETHE_OUTSIDE_FILE
    if (!file || errors.length === 0) return
    writeFileSync(file, errors.map(({ message, stack }) => stack ?? message).join('\n'))
  }
}
