/** All benchmarks, one after the other: `npm run bench`. Each prints its table; bench/README.md keeps them. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
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
  const file = join(import.meta.dirname, name)
  if (!existsSync(file)) continue
  console.log(`\n## ${name.replace('.ts', '')}\n`)
  const { status } = spawnSync(process.execPath, [file], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
