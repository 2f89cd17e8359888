/**
 * Everything that has to hold, in one command: `npm test`. Lint, types, the builds, all tests on
 * the embedded PostgreSQL, and a short list of them on an installed one. The last line counts.
 *
 * `npm test -- PATTERN…` runs only the test files whose path has a pattern in it, and
 * `npm test -- --changed` those that import what differs from the last commit.
 * `LETHE_DEEP=1` (`npm run test:deep`) runs what explores with wider bounds, and the installed
 * PostgreSQL with all tests of the server's noun, and a Citus cluster with many of them.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { isCovered } from '../packages/server/test/proof/covered.ts'
import { startCitus } from './citus.ts'
import { startInstalledPostgres } from './installed-postgres.ts'

const root = join(import.meta.dirname, '..')
const words = process.argv.slice(2)
/** Not only some of the tests. */
const isWhole = words.length === 0
const isCi = process.env.CI === 'true'
const isDeep = process.env.LETHE_DEEP === '1'
const total = { passed: 0, failed: 0, skipped: 0 }
/** Repeated at the end: of a long run often only the end is kept. */
const failures: string[] = []
/** Tests that failed and passed when their file was run once more. */
const unsteady: string[] = []
const durations: { title: string; seconds: number }[] = []

/** The part of vitest's JSON report that is read here. */
type Report = {
  testResults: {
    name: string
    status: string
    message: string
    startTime: number
    endTime: number
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

interface Ended {
  isDone: boolean
  /** What it wrote, if it was not shown meanwhile. */
  output: string
}

function run(
  command: string,
  words: string[],
  { environment = {}, isShown = true }: { environment?: Environment; isShown?: boolean } = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const pipe = isShown ? 'inherit' : 'pipe'
    const child = spawn(command, words, {
      cwd: root,
      stdio: ['ignore', pipe, pipe],
      env: { ...process.env, ...environment },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (part) => {
        output += part
      })
    }
    child.once('error', reject)
    child.once('close', (code) => resolve({ isDone: code === 0, output }))
  })
}

type Environment = Record<string, string>

/** A step that is done or not, and counts as one. Several run at once, so each is shown at its end. */
async function check(title: string, command: string, ...words: string[]): Promise<void> {
  const begin = Date.now()
  const { isDone, output } = await run(command, words, { isShown: false })
  const seconds = Math.round((Date.now() - begin) / 1_000)
  console.log(`${isDone ? '✓' : '✗'} ${title}: ${seconds} s`)
  if (isDone) total.passed++
  else {
    total.failed++
    failures.push(title)
    console.log(output)
  }
}

interface Ran {
  /** False too where a run broke outside of any test, or found none. */
  isDone: boolean
  report: Report | undefined
  /** The errors outside of any test: a run has them whatever passes when run again. */
  outside: string | undefined
}

async function vitest(words: string[], environment: Environment): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-report-'))
  const file = join(folder, 'report.json')
  const LETHE_OUTSIDE_FILE = join(folder, 'outside')
  const reporters = ['default', 'json', join(root, 'scripts/outside.ts')].map(
    (one) => `--reporter=${one}`,
  )
  const { isDone } = await run(
    'vitest',
    ['run', ...reporters, `--outputFile.json=${file}`, ...words],
    { environment: { ...environment, LETHE_OUTSIDE_FILE } },
  )
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
  const [text, outside] = [read(file), read(LETHE_OUTSIDE_FILE)]
  rmSync(folder, { recursive: true, force: true })
  return { isDone, report: text ? JSON.parse(text) : undefined, outside }
}

/**
 * More files that fail than this are no accident. Fewer are run once more, with nothing beside them:
 * a machine that is shared can stand still for seconds. What passes only then is listed at the end.
 */
const runAgainMaximum = 5

async function tests(title: string, words: string[], environment: Environment = {}): Promise<void> {
  console.log(`\n── ${title}`)
  const first = await vitest(words, environment)
  const files = first.report?.testResults ?? []
  const failed = files.filter(({ status }) => status === 'failed')
  let last = first
  const isFew = failed.length > 0 && failed.length <= runAgainMaximum
  if (isWhole && isFew && !first.outside) {
    const paths = failed.map(({ name }) => relative(root, name))
    console.log(`\n── Once more, alone: ${paths.join(', ')}`)
    last = await vitest(['--maxWorkers', '1', ...paths], environment)
    if (last.isDone && first.report) unsteady.push(...failuresOf(first.report))
  }
  count(title, last, last === first ? [] : files.filter((file) => !failed.includes(file)))
  const place = environment.LETHE_TEST_DATABASE_URL ? ' (installed PostgreSQL)' : ''
  for (const { name, startTime, endTime } of files) {
    durations.push({
      title: `${relative(root, name)}${place}`,
      seconds: (endTime - startTime) / 1_000,
    })
  }
}

/** `before`: files that passed in an earlier run. */
function count(
  title: string,
  { isDone, report, outside }: Ran,
  before: Report['testResults'],
): void {
  const results = [...before, ...(report?.testResults ?? [])].flatMap(
    ({ assertionResults }) => assertionResults,
  )
  const having = (status: string) => results.filter((test) => test.status === status).length
  total.passed += having('passed')
  total.skipped += results.length - having('passed') - having('failed')
  if (isDone) return
  total.failed += Math.max(1, having('failed'))
  failures.push(title, ...(report ? failuresOf(report) : []), ...(outside ? [outside] : []))
}

/**
 * What may behave differently on the oldest PostgreSQL that is supported: its functions, the plans,
 * the search with its collations, and the locks of an erasure.
 */
const onOldest = ['persons-create', 'merge', 'search', 'query-plans', 'erasure.test', 'identify']
const onOldestDeep = [...onOldest, 'persons', 'deletion-jobs', 'erasure', 'chunks']

/** Others have the built-in database in any case. */
const ofServer = (names: string[]) => names.map((one) => `server/test/${one}`)

async function onInstalledPostgres(): Promise<void> {
  const installed = startInstalledPostgres()
  if (!installed) {
    console.log('\nSKIPPED: the tests on an installed PostgreSQL; there is none on this machine.')
    total.skipped++
    return
  }
  const environment = { LETHE_TEST_DATABASE_URL: installed.url }
  try {
    await tests(
      `Tests of the server on an installed PostgreSQL ${installed.version}`,
      // Few files: more workers would load the server more often than it is worth.
      ['--maxWorkers', '2', ...ofServer(isDeep ? onOldestDeep : onOldest)],
      environment,
    )
  } finally {
    installed.stop()
  }
}

/**
 * Whose statements have to be the same ones on a cluster. Left out is what plants broken rows for
 * checks that are triggers.
 */
const onCluster = [
  'persons-create',
  'persons-read',
  'persons-update',
  'persons-list.test',
  'persons-delete',
  'search.test',
  'sessions.test',
  'chunks',
  'identify',
  'withdrawal',
  'upload-races',
  'packs',
  'retention',
  'suppressions',
  'erasure.test',
  'erasure-together',
  'erasure-processes',
  'deletion-jobs',
  'dashboard-persons',
  'dashboard-deletions',
  'dashboard-sessions',
  'dashboard-projects',
  'webhooks',
  'receipts',
  'citus',
]

async function onCitus(): Promise<void> {
  const cluster = startCitus()
  if (!cluster) {
    console.log('\nSKIPPED: the tests on a Citus cluster; no PostgreSQL of this machine has Citus.')
    total.skipped++
    return
  }
  try {
    await tests(
      `Tests of the server on Citus, a coordinator and two workers (PostgreSQL ${cluster.version})`,
      // A statement takes several times longer there, and what is looked for needs no more rounds.
      ['--maxWorkers', '1', '--testTimeout', '300000', ...ofServer(onCluster)],
      { LETHE_TEST_DATABASE_URL: cluster.url, LETHE_DEEP: '0' },
    )
  } finally {
    cluster.stop()
  }
}

/** The longest first, so that who wants a quicker run knows where to look. */
function printSlowest(): void {
  console.log('\nThe slowest test files:')
  for (const { title, seconds } of durations.sort((a, b) => b.seconds - a.seconds).slice(0, 10)) {
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${title}`)
  }
}

/** Names what a deep run belongs to, if it differs from the last commit. */
async function askForDeepRun(): Promise<void> {
  const { isDone, output } = await run('git', ['diff', '--name-only', 'HEAD'], { isShown: false })
  const files = isDone ? output.split('\n').filter(isCovered) : []
  if (files.length === 0) return
  console.log(`\nA deep run belongs to these changes (npm run test:deep -- proof):`)
  for (const file of files) console.log(`  ${file}`)
}

if (!isWhole) {
  await tests('Tests', words)
} else {
  await run('sh', ['scripts/prepare-tests.sh'])
  console.log('\n── Lint, types and builds')
  await Promise.all([
    check('Lint and format', 'biome', 'ci', '--error-on-warnings', '.'),
    check('Build', 'node', 'scripts/build.ts'),
    ...['.', 'packages/sdk-browser', 'packages/dashboard'].map((project) =>
      check(`Types of ${project}`, 'tsc', '-p', project),
    ),
  ])
  await tests('Tests', [])
  await onInstalledPostgres()
  if (isDeep) await onCitus()
}

if (durations.length > 1) printSlowest()
if (!isDeep) await askForDeepRun()
for (const one of unsteady) console.log(`\nUNSTEADY, passed only when run again: ${one}`)
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
