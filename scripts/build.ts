/**
 * Builds what browsers load: the SDK and the dashboard. With `--missing`, as before `npm start`,
 * only what has not been built yet or has changed since, and nothing where the tools for it are not
 * installed: the service starts without, and says what it lacks.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const steps: [folder: string, command: string, ...words: string[]][] = [
  ['packages/sdk-browser', 'node', 'build.ts'],
  ['packages/dashboard', 'vite', 'build', '--logLevel', 'warn'],
]
const isMissingOnly = process.argv.includes('--missing')
// Not rolldown: npm may install it for something else.
const canBuild = existsSync(join(root, 'node_modules/@rrweb/record'))
for (const [folder, command, ...words] of steps) {
  if (isMissingOnly && isFresh(join(root, folder))) continue
  if (isMissingOnly && !canBuild) {
    console.log(`${folder} is not built or older than its sources, and the tools to build it are
not installed. To have it: npm install (without --omit=dev), npm run build.`)
    continue
  }
  console.log(`Building ${folder} …`)
  const { status } = spawnSync(command, words, {
    cwd: join(root, folder),
    stdio: 'inherit',
    env: {
      ...process.env,
      // Not that of the tests which have it built: what they load is what is delivered.
      NODE_ENV: 'production',
      PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
    },
  })
  if (status !== 0) process.exit(status ?? 1)
}

/** Whether what was built is newer than all it was made of. */
function isFresh(folder: string): boolean {
  const times = { built: 0, sources: 0 }
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/^(?:node_modules|test)\//.test(file)) continue
    const { mtimeMs } = statSync(join(folder, file))
    const kind = file.startsWith('dist') ? 'built' : 'sources'
    if (file.includes('.')) times[kind] = Math.max(times[kind], mtimeMs)
  }
  return existsSync(join(folder, 'dist')) && times.built >= times.sources
}
