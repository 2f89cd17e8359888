/**
 * Builds what browsers load: the SDK and the dashboard. With `--missing`, as before `npm start`,
 * only what has not been built yet.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const steps: [folder: string, command: string, ...words: string[]][] = [
  ['packages/sdk-browser', 'node', 'build.ts'],
  ['packages/dashboard', 'vite', 'build', '--logLevel', 'warn'],
]
for (const [folder, command, ...words] of steps) {
  if (process.argv.includes('--missing') && existsSync(join(root, folder, 'dist'))) continue
  console.log(`Building ${folder} …`)
  const { status } = spawnSync(command, words, {
    cwd: join(root, folder),
    stdio: 'inherit',
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
  })
  if (status !== 0) process.exit(status ?? 1)
}
