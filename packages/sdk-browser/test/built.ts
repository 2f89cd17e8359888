import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Before all tests of a run: they load what was built, which is no older than its sources then. */
export default function buildWhatIsMissing() {
  const script = join(import.meta.dirname, '../../../scripts/build.ts')
  execFileSync(process.execPath, [script, '--missing'], { stdio: 'inherit' })
}
