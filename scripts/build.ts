/** Builds what browsers load: the SDK and the dashboard. `npm start` does it where it is missing. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const steps: [folder: string, command: string, ...words: string[]][] = [
  ['packages/sdk-browser', 'node', 'build.ts'],
  ['packages/dashboard', 'vite', 'build', '--logLevel', 'warn'],
]
for (const [folder, command, ...words] of steps) {
  if (!existsSync(join(root, folder))) continue
  const { status } = spawnSync(command, words, {
    cwd: join(root, folder),
    stdio: 'inherit',
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
  })
  if (status !== 0) process.exit(status ?? 1)
}
