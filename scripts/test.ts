/**
 * Everything that has to hold, in one command: `npm test`. Lint, types, the builds, all tests on
 * the embedded PostgreSQL and those of the server again on an installed one. The last line counts.
 *
 * `npm test -- PATTERN…` runs only the test files whose path has a pattern in it.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { startInstalledPostgres } from './installed-postgres.ts'

const root = join(import.meta.dirname, '..')
const patterns = process.argv.slice(2)
const isCi = process.env.CI === 'true'
const total = { passed: 0, failed: 0, skipped: 0 }
/** What failed, told once more at the end: of a long run often only the end is kept. */
const failures: string[] = []

/** The part of vitest's JSON report that is read here. */
type Report = {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: {
    name: string
    status: string
    message: string
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[]
  }[]
}

function failuresOf(report: Report): string[] {
  return report.testResults.flatMap((file) => {
    const path = relative(root, file.name)
    const failed = file.assertionResults.filter(({ status }) => status === 'failed')
    if (failed.length === 0 && file.status === 'failed') return [`${path}\n${file.message}`]
    return failed.map((test) => `${path} > ${test.fullName}\n${test.failureMessages.join('\n')}`)
  })
}

function run(command: string, words: string[], environment: Record<string, string> = {}): boolean {
  const { status } = spawnSync(command, words, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...environment },
  })
  return status === 0
}

/** A step that is done or not, and counts as one. */
function check(title: string, command: string, ...words: string[]): void {
  console.log(`\n── ${title}`)
  if (run(command, words)) total.passed++
  else {
    total.failed++
    failures.push(title)
    console.log(`✗ ${title} failed`)
  }
}

function tests(title: string, words: string[], environment: Record<string, string> = {}): void {
  console.log(`\n── ${title}`)
  const folder = mkdtempSync(join(tmpdir(), 'lethe-report-'))
  const report = join(folder, 'report.json')
  const isDone = run(
    'vitest',
    ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...words],
    environment,
  )
  const counts: Report | undefined = existsSync(report)
    ? JSON.parse(readFileSync(report, 'utf8'))
    : undefined
  rmSync(folder, { recursive: true, force: true })
  total.passed += counts?.numPassedTests ?? 0
  total.skipped += (counts?.numPendingTests ?? 0) + (counts?.numTodoTests ?? 0)
  const failed = counts?.numFailedTests ?? 0
  // A run that broke outside of any test, or found none, is a failure too.
  total.failed += isDone ? failed : Math.max(1, failed)
  if (!isDone) failures.push(title, ...(counts ? failuresOf(counts) : []))
}

function onInstalledPostgres(): void {
  const installed = startInstalledPostgres()
  if (!installed) {
    console.log('\nSKIPPED: the tests on an installed PostgreSQL; there is none on this machine.')
    total.skipped++
    return
  }
  const words = ['persons', 'merge', 'search', 'deletion-jobs', 'erasure', 'chunks', 'identify']
  const environment = { LETHE_TEST_DATABASE_URL: installed.url }
  try {
    tests(`Tests of the server on an installed PostgreSQL ${installed.version}`, words, environment)
  } finally {
    installed.stop()
  }
}

if (patterns.length > 0) {
  tests('Tests', patterns)
} else {
  run('sh', ['scripts/prepare-tests.sh'])
  check('Lint and format', 'biome', 'ci', '--error-on-warnings', '.')
  for (const project of ['.', 'packages/sdk-browser', 'packages/dashboard']) {
    if (existsSync(join(root, project, 'tsconfig.json'))) {
      check(`Types of ${project}`, 'tsc', '-p', project)
    }
  }
  check('Build', 'node', 'scripts/build.ts')
  tests('Tests', [])
  onInstalledPostgres()
}

for (const failure of failures) console.log(`\n✗ ${failure}`)
const { passed, failed, skipped } = total
if (skipped > 0) {
  console.log(`\n${skipped} SKIPPED: what they need is not on this machine (see above).`)
  // What nobody looks at may not be skipped: there everything is to be had.
  if (isCi) total.failed += skipped
}
console.log(
  `\n${passed} passed, ${total.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
)
process.exitCode = total.failed > 0 || (passed === 0 && failed === 0) ? 1 : 0
