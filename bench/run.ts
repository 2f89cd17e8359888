/** Runs the benchmarks one after the other: `npm run bench`. Their tables are kept in README.md. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const benches = [
  'persons.ts',
  'search.ts',
  'sealing.ts',
  'ingest.ts',
  'processes.ts',
  'attacks.ts',
  'erasure.ts',
  'sdk.ts',
  'dashboard.ts',
]
for (const name of benches) {
  console.log(`\n## ${name.replace('.ts', '')}\n`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, name)], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exitCode = 1
}
