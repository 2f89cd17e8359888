import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { createDatabaseSql } from '../src/embedded/roles.ts'
import { migrate } from '../src/migrate.ts'
import { writePerson } from '../src/persons/store.ts'
import { connect } from '../src/sql.ts'
import { blockOf } from './documents.ts'
import { newProject, sendRaw, type TestProject } from './fixtures.ts'
import {
  type Environment,
  greeting,
  newEnvironment,
  resultOf,
  runLethe,
  spawnLethe,
  startLethe,
} from './lethe-process.ts'

/* The built-in database of an older PostgreSQL: that of Debian stands for it. */

const version = '15'
const programs = `/usr/lib/postgresql/${version}`
const limit = { timeout: 280_000 }

/** A data folder as an older Lethe would leave it: its PostgreSQL, and these persons. */
async function oldDataFolder(persons: number): Promise<{
  env: Environment & { DATA_DIR: string }
  project: TestProject
}> {
  const env = await newEnvironment(undefined, {}, { isFirstStart: true })
  const { DATA_DIR } = env
  mkdirSync(DATA_DIR, { mode: 0o755 })
  const folder = join(DATA_DIR, 'postgres')
  mkdirSync(folder)
  const isRoot = process.getuid?.() === 0
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  const account = isRoot ? { uid: id('-u'), gid: id('-g') } : {}
  if (isRoot) {
    for (const own of [DATA_DIR, folder]) chownSync(own, id('-u'), id('-g'))
    // Before 16 PostgreSQL goes back to its folder by the path, which has to be open to it.
    for (let above = dirname(DATA_DIR); above !== '/dev' && above !== '/'; above = dirname(above)) {
      if ((statSync(above).mode & 0o001) === 0) chmodSync(above, 0o711)
    }
  }
  const options = { cwd: folder, ...account }
  const initdb = ['-D', '.', '-U', 'lethe', '-A', 'trust', '-E', 'UTF8', '--no-locale']
  execFileSync(join(programs, 'bin/initdb'), initdb, { ...options, stdio: 'ignore' })
  execFileSync(join(programs, 'bin/postgres'), ['--single', '-D', '.', 'template1'], {
    ...options,
    input: `create role lethe_service\n${createDatabaseSql}\n`,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const old = await openEmbedded({ dataDir: DATA_DIR, programs })
  await migrate(old.address)
  const db = connect({ connection: old.address })
  const project = await newProject(db)
  for (let n = 0; n < persons; n++) await writePerson(db.sql, project.id, `p${n}`, { n }, true)
  await db.end()
  await old.close()
  return { env, project }
}

async function expectPersons(env: Environment, { secretKey }: TestProject, persons: number) {
  const service = await startLethe(['serve'], env, greeting)
  for (const id of ['p0', `p${persons - 1}`]) {
    expect((await sendRaw(service.found, `/v1/persons/${id}`, secretKey, {})).status).toBe(200)
  }
  expect(await service.stop()).toBe(0)
}

describe.skipIf(!existsSync(programs))('the database of an older PostgreSQL', () => {
  test('is refused by a start, upgraded by the command, and kept', limit, async () => {
    const { env, project } = await oldDataFolder(200)
    const refused = await runLethe(['serve'], env)
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(
      /^lethe: The database in .* was created by PostgreSQL 15, but this version of Lethe comes with 18: run `lethe upgrade-database`, which keeps the old one\.\n$/,
    )
    // As docs/upgrade.md says.
    const [command, ...rest] = blockOf('docs/upgrade.md', 'sh upgrade').trim().split('\n')
    expect([command, rest]).toEqual(['lethe upgrade-database', ['lethe serve']])
    const done = await runLethe(['upgrade-database'], env)
    expect([done.code, done.err]).toEqual([0, ''])
    expect(done.out).toMatch(/PostgreSQL 15 → 18: 200 persons/)
    expect(done.out).toContain(join(env.DATA_DIR, 'postgres.old-15'))
    await expectPersons(env, project, 200)
    expect(readdirSync(env.DATA_DIR).sort()).toContain('postgres.old-15')
    expect(readdirSync(env.DATA_DIR).filter((name) => name.includes('upgrade'))).toEqual([])
    const again = await runLethe(['upgrade-database', '--json'], env)
    expect([again.code, resultOf(again)]).toMatchObject([0, { isUpgraded: false }])
    const { out } = await runLethe(['doctor'], env)
    expect(out).toMatch(/old databases.*postgres\.old-15/)
  })

  test('is whole and upgraded at last, whenever the upgrade is killed', limit, async () => {
    const { env, project } = await oldDataFolder(500)
    for (const milliseconds of [400, 1_200, 2_500, 4_000]) {
      const running = spawnLethe(['upgrade-database'], env)
      await sleep(milliseconds)
      await running.signal('SIGKILL')
    }
    const { code, err } = await runLethe(['upgrade-database'], env)
    expect([code, err]).toEqual([0, ''])

    // Killed between the two names.
    mkdirSync(join(env.DATA_DIR, 'postgres.upgraded'))
    renameSync(join(env.DATA_DIR, 'postgres'), join(env.DATA_DIR, 'postgres.upgraded/postgres'))
    await expectPersons(env, project, 500)
    expect(existsSync(join(env.DATA_DIR, 'postgres.upgraded'))).toBe(false)
  })

  test('is not upgraded while it is used, nor without its programs', limit, async () => {
    const { env } = await oldDataFolder(1)
    const user = await openEmbedded({ dataDir: env.DATA_DIR, programs })
    onTestFinished(() => user.close())
    const used = await runLethe(['upgrade-database'], env)
    expect([used.code, used.err]).toEqual([
      1,
      'lethe: The database is in use by another Lethe: stop it first.\n',
    ])
    await user.close()
    writeFileSync(join(env.DATA_DIR, 'postgres/PG_VERSION'), '14\n')
    const without = await runLethe(['upgrade-database'], env)
    expect(without.err).toMatch(/The upgrade needs the programs of PostgreSQL 14: run `npm install/)
    const own = await runLethe(['upgrade-database'], { ...env, DATABASE_URL: 'postgres://a/b' })
    expect([own.code, own.err]).toMatchObject([2, expect.stringContaining('names your own')])
  })
})
