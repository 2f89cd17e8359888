/**
 * Builds the npm package `lethe`: `npm run package` leaves lethe-VERSION.tgz in the folder it is
 * called in. It has the server as JavaScript, because Node runs no TypeScript below node_modules, the
 * built dashboard and recorder, and the dependencies in the versions that were tested. Only the
 * embedded PostgreSQL comes from the registry, for the platform that it is installed on. With
 * `--unpacked` it stays a folder, dist/package.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

const root = join(import.meta.dirname, '..')
const stage = join(root, 'dist/package')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const write = (path: string, value: unknown) =>
  writeFileSync(join(stage, path), `${JSON.stringify(value, null, 2)}\n`)
const server = JSON.parse(read('packages/server/package.json'))

/** Ends this process with the status of a command that failed. */
function run(command: string, words: string[], cwd: string): void {
  const PATH = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`
  const { status } = spawnSync(command, words, {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, PATH },
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** The modules keep their places, as some of them find files from there. */
async function compile(): Promise<void> {
  const bundle = await rolldown({
    input: { 'server/bin/lethe': join(root, 'packages/server/bin/lethe.ts') },
    platform: 'node',
    external: (id) => !/^[./]|^@lethe\//.test(id),
  })
  await bundle.write({
    dir: stage,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: join(root, 'packages'),
    entryFileNames: '[name].js',
  })
}

const files = [
  'packages/server/migrations',
  'packages/server/src/recordings/demo-page.html',
  'packages/dashboard/dist',
  'packages/sdk-browser/dist',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'SECURITY.md',
  'docs',
]

function packageJson() {
  const contract = JSON.parse(read('packages/contract/package.json'))
  const { '@lethe/contract': _, ...dependencies } = {
    ...server.dependencies,
    ...contract.dependencies,
  }
  return {
    name: 'lethe',
    version: server.version,
    description: 'Person records and provable erasure for session recording. Self-hosted.',
    type: 'module',
    license: server.license,
    bin: { lethe: 'lethe.js' },
    engines: { node: '>=22' },
    dependencies,
    bundleDependencies: Object.keys(dependencies),
    optionalDependencies: server.optionalDependencies,
  }
}

/**
 * What is installed here for production, in its places; npm takes what the manifest leads to. Where
 * npm put a dependency of the server beside it alone, it goes to the others.
 */
function copyDependencies(): void {
  const { packages } = JSON.parse(read('package-lock.json'))
  for (const [place, entry] of Object.entries<Record<string, unknown>>(packages)) {
    // pg's own option: without it `npm ci` of a project with this package ends.
    const isOptional = entry.optional && place !== 'node_modules/pg-cloudflare'
    const isLeftOut = entry.dev || entry.devOptional || isOptional || entry.link
    const target = place.replace(/^packages\/(?:server|contract)\//, '')
    const isNode = /^node_modules\/node(?:-bin-setup)?$/.test(place)
    if (!target.startsWith('node_modules/') || isLeftOut || isNode) continue
    if (existsSync(join(stage, target))) throw new Error(`Two versions: ${place}`)
    // Those inside of another one have entries of their own. Types, maps, sources, tests and documents
    // are more than half of all files; licences stay.
    const filter = (path: string) =>
      !/\/node_modules(?:\/|$)|^\/(?:tests?|docs|examples?|benchmarks?|\.github)$|\.map$|\.[cm]?ts$|\/(?:changelog|history)\.md$/i.test(
        path.slice(join(root, place).length),
      )
    cpSync(join(root, place), join(stage, target), { recursive: true, filter })
  }
}

/** With the options of the engine that the real command has. */
function starter(): string {
  const [hashbang] = read('packages/server/bin/lethe.ts').split('\n')
  return read('scripts/package-start.js').replace(/^#!.*/, hashbang as string)
}

run('node', [join(root, 'scripts/build.ts'), '--missing'], root)
rmSync(stage, { recursive: true, force: true })
mkdirSync(stage, { recursive: true })
await compile()
for (const file of files) {
  cpSync(join(root, file), join(stage, file.replace('packages/', '')), { recursive: true })
}
const { name, version, type } = server
write('server/package.json', { name, version, type, private: true })
write('package.json', packageJson())
copyDependencies()
writeFileSync(join(stage, 'lethe.js'), starter(), { mode: 0o755 })
if (!process.argv.includes('--unpacked')) run('npm', ['pack', stage, '--silent'], process.cwd())
