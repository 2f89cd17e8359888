import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { postmasterOf } from '../src/embedded/postmaster.ts'
import { eventually, greeting, newEnvironment } from './lethe-process.ts'

const root = join(import.meta.dirname, '../../..')
const run = promisify(execFile)

/** Bytes of all files below a folder. */
function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'package-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

describe('the npm package', () => {
  test('`npx lethe serve` in an empty folder serves, keeps a person, and stops; an older Node is refused', {
    timeout: 600_000,
  }, async () => {
    const folder = await newFolder()
    await run('node', [join(root, 'scripts/package.ts')], { cwd: folder })
    const [tarball] = readdirSync(folder)
    expect(tarball).toMatch(/^lethe-\d+\.\d+\.\d+\.tgz$/)
    const home = join(folder, 'empty')
    mkdirSync(home)
    writeFileSync(join(home, 'package.json'), '{}')
    const npm = (...words: string[]) =>
      run('npm', [...words, '--no-audit', '--no-fund', '--prefer-offline'], { cwd: home })
    await npm('install', '--package-lock-only', `../${tarball}`)
    await npm('ci', '--omit=dev')
    const installed = join(home, 'node_modules/lethe')
    const bytes = sizeOf(installed)
    console.log(
      `The package: ${(statSync(join(folder, tarball as string)).size / 1e6).toFixed(1)} MB, ` +
        `installed without the embedded database ${(bytes / 1e6).toFixed(1)} MB`,
    )
    expect(bytes).toBeLessThan(150_000_000)
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' })
    expect(
      files.filter((file) =>
        /^(?:server|contract).*\.ts$|node_modules\/(?:vite|typescript)\//.test(file),
      ),
    ).toEqual([])

    const older = 'Object.defineProperty(process, "versions", { value: { node: "20.11.0" } })'
    const flags = ['--import', `data:text/javascript,${older}`]
    const refused = await run('node', [...flags, join(installed, 'lethe.js')]).catch(
      (error) => error,
    )
    expect(refused.stderr).toBe('lethe: This needs Node 22 or newer, and here is Node 20.11.0.\n')
    expect(refused.code).toBe(1)

    const { DATA_DIR: _, MASTER_KEY: __, ...env } = await newEnvironment()
    const npx = spawn('npx', ['lethe', 'serve'], {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => {
      npx.kill('SIGKILL')
    })
    let out = ''
    npx.stdout.on('data', (bytes) => {
      out += bytes
    })
    const exit = once(npx, 'exit')
    const [address, secretKey] = await eventually(async () => {
      const found = [greeting.exec(out)?.[1], /secret key +(\S+)/.exec(out)?.[1]] as const
      if (npx.exitCode !== null) throw new Error(`It ended: ${out}`)
      return found[0] && found[1] && (found as readonly [string, string])
    })
    const headers = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' }
    const created = await fetch(`${address}/v1/persons`, {
      method: 'POST',
      headers,
      body: '{"externalId":"ada"}',
    })
    expect(created.status).toBe(201)
    for (const path of ['/', '/docs', '/sdk/manifest.json', '/demo']) {
      const answer = await fetch(address + path, { headers: { accept: 'text/html' } })
      expect(answer.status, path).toBe(200)
    }
    npx.kill('SIGTERM')
    await exit
    await eventually(async () => postmasterOf(join(home, 'data/postgres')) === undefined)
  })
})

test('without the tools of development `npm start` says what is not built, and goes on', async () => {
  const folder = await newFolder()
  mkdirSync(join(folder, 'scripts'))
  copyFileSync(join(root, 'scripts/build.ts'), join(folder, 'scripts/build.ts'))
  for (const name of ['sdk-browser', 'dashboard']) {
    mkdirSync(join(folder, 'packages', name), { recursive: true })
  }
  const { stdout } = await run('node', [join(folder, 'scripts/build.ts'), '--missing'])
  expect(stdout).toContain('packages/dashboard is not built')
  expect(stdout).toContain('npm install (without --omit=dev)')
})
