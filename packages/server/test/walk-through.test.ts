import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../acceptance/drivers.ts'
import { missingForImage, openDocker, sizeOfImage } from '../../../scripts/image.ts'
import { startInstalledPostgres } from '../../../scripts/installed-postgres.ts'
import { blockOf, root } from './documents.ts'
import { isDeep } from './proof/deep.ts'
import { runsHere } from './s3-servers/start.ts'
import { followUse, type Shell, timed, type } from './walk-through.ts'

/*
 * Somebody who knows nothing of Lethe follows README and docs, from nothing to an erased person whose
 * receipt was checked. The commands are those of the pages. The parts of compose.yaml are in
 * deploy.test.ts.
 */

const limit = { timeout: 1_800_000 }

const blocks = [
  ['README.md', 'sh start'],
  ['README.md', 'sh use'],
  ['docs/deploy.md', 'sh image'],
  ['docs/deploy.md', 'sh container'],
] as const

test.each(blocks)('what is followed here in the deep run is in %s: %s', (page, block) => {
  expect(blockOf(page, block).trim()).not.toBe('')
})

/** What `git clone` leaves, with what is not committed yet. */
async function newClone(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'clone-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const words = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const files = execFileSync('git', words, { cwd: root, encoding: 'utf8' }).split('\0')
  for (const file of files.filter((one) => one !== '')) {
    mkdirSync(join(folder, dirname(file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  return folder
}

/** A shell as a user has it: without the tools of this clone. */
function newShell(settings: Shell = {}): Shell {
  const own = (one: string) => one.startsWith(root) || one.includes('node_modules')
  const path = process.env.PATH?.split(':').filter((one) => !own(one))
  const { HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  return { PATH: path?.join(':'), HOME, TMPDIR, NODE_COMPILE_CACHE, ...settings }
}

if (isDeep) {
  test('README.md: a clone with the embedded database', limit, followReadme)
  const image = runsHere('The image of deploy/Dockerfile', missingForImage(), false)
  if (image.runs) {
    test(
      'docs/deploy.md: the image is built, and runs read-only, without rights',
      limit,
      followImage,
    )
  } else test.skip(image.title, () => {})
}

async function followReadme() {
  const clone = await newClone()
  const port = await freePort()
  const env = newShell({ PORT: String(port) })
  await timed('a clone, with the embedded database', async () => {
    const words = ['--norc', '-c', blockOf('README.md', 'sh start')]
    const stdio = ['ignore', 'pipe', 'inherit'] as const
    const started = spawn('bash', words, { cwd: clone, env, stdio: [...stdio], detached: true })
    const exit = once(started, 'exit')
    onTestFinished(async () => {
      if (started.exitCode !== null || started.pid === undefined) return
      process.kill(-started.pid, 'SIGTERM')
      await exit
    })
    let said = ''
    started.stdout.on('data', (bytes) => {
      said += bytes
    })
    const keys = /secret key +(sk_\w+) /
    while (!keys.test(said)) {
      if (started.exitCode !== null) throw new Error(`It ended: ${said}`)
      await sleep(50)
    }
    const key = keys.exec(said)?.[1] as string
    await followUse({ url: `http://127.0.0.1:${port}`, key }, env, clone)
  })
}

async function followImage() {
  const postgres = startInstalledPostgres()
  if (!postgres) throw new Error('This needs a PostgreSQL from Debian: the image has none.')
  onTestFinished(postgres.stop)
  // Its socket is all that the container has of it.
  chmodSync(postgres.folder, 0o755)
  const DATABASE_URL = 'postgres://lethe@localhost/postgres?host=/run/postgresql'
  const folder = join(root, 'dist/image')
  const docker = openDocker(folder, [`${postgres.folder}:/run/postgresql`])
  const env: Shell = { ...newShell(), ...docker, DATABASE_URL }
  const run = (words: string) => type(`docker ${words}`, env, root)
  const clear = () =>
    run('rm --force --volumes --time 0 lethe || true; docker volume prune --force')
  await clear()
  onTestFinished(async () => void (await clear()))
  const port = await freePort()

  await timed('an image', async () => {
    removePackages()
    onTestFinished(removePackages)
    await type(blockOf('docs/deploy.md', 'sh image'), env, root)
    const commands = blockOf('docs/deploy.md', 'sh container')
    const said = await type(commands.replace('127.0.0.1:3000:', `127.0.0.1:${port}:`), env, root)
    const key = /secret key +(sk_\w+) /.exec(said)?.[1] as string
    while (
      !(await run('healthcheck run lethe').then(
        () => true,
        () => false,
      ))
    )
      await sleep(500)
    const lethe = 'docker exec --interactive lethe lethe'
    await followUse({ url: `http://127.0.0.1:${port}`, key, lethe }, env, root)
  })

  const megabytes = Math.round(sizeOfImage(docker, 'lethe') / 1e6)
  console.log(`The image: ${megabytes} MB`)
  expect(megabytes).toBeLessThan(250)
  expect(await run('exec lethe id -u')).toBe('10001\n')
  expect(await run(`exec lethe sh -c 'touch /usr/x 2>&1 || true'`)).toContain('Read-only')
  const begin = performance.now()
  await run('kill --signal TERM lethe')
  expect(await run('wait lethe')).toBe('0\n')
  expect(performance.now() - begin).toBeLessThan(15_000)
}

function removePackages(): void {
  for (const name of readdirSync(root)) if (/^lethe-.*\.tgz$/.test(name)) rmSync(join(root, name))
}
