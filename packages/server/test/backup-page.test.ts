import { execFile, execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { startInstalledPostgres } from '../../../scripts/installed-postgres.ts'
import { connectOne } from '../src/sql.ts'
import { blockOf } from './documents.ts'
import { sendRaw } from './fixtures.ts'
import {
  type Environment,
  eventually,
  greeting,
  newEnvironment,
  runLethe,
  startLethe,
} from './lethe-process.ts'
import { type Canaries, newCanaries, plant } from './residue-fixtures.ts'

/* docs/backup.md and upgrade.md: their commands run as they stand there, to a restored service. */

const limit = { timeout: 240_000 }

type Shell = Environment & { DATA_DIR: string; BACKUPS: string }

/** Settings, and the environment of a shell that has the command. */
async function newShell(settings: Environment = {}): Promise<Shell> {
  const env = await newEnvironment(undefined, { START_WAIT_SECONDS: '1', ...settings })
  const folder = dirname(env.DATA_DIR)
  mkdirSync(join(folder, 'bin'))
  symlinkSync(inject('command'), join(folder, 'bin/lethe'))
  const BACKUPS = join(folder, 'backups')
  mkdirSync(BACKUPS)
  const PATH = `${folder}/bin:${dirname(process.execPath)}:/usr/lib/postgresql/15/bin:${env.PATH}`
  return { ...env, PATH, BACKUPS }
}

/** Runs a block of the page; a service that it starts at its end is returned. */
async function runBlock(mark: string, env: Shell, page = 'docs/backup.md') {
  const commands = blockOf(page, `sh ${mark}`)
  const isService = commands.endsWith('lethe serve\n')
  const toEnd = isService ? commands.slice(0, -'lethe serve\n'.length) : commands
  await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', toEnd], {
    env,
    timeout: 120_000,
  })
  return isService ? startLethe(['serve'], env, greeting) : undefined
}

/** A service with two persons who recorded. It goes on, as while backups are made. */
async function fill(env: Shell) {
  const service = await startLethe(['serve'], env, greeting)
  const { out } = await runLethe(['projects', 'create', 'Shop', '--json'], env)
  const { secretKey, publicKey } = JSON.parse(out)
  const people = [newCanaries(), newCanaries()] as const
  for (const one of people) await plant({ url: service.found, secretKey, publicKey }, one)
  return { service, people, secretKey: secretKey as string }
}

async function erase(url: string, secretKey: string, { externalId }: Canaries): Promise<void> {
  const path = `/v1/persons/${externalId}`
  const { json } = await sendRaw(url, path, secretKey, { method: 'DELETE' })
  await eventually(async () => {
    const job = await sendRaw(url, `/v1/deletion-jobs/${json.job.id}`, secretKey, {})
    return job.json.job?.status === 'completed'
  })
}

async function expectOnly(url: string, secretKey: string, people: readonly [Canaries, Canaries]) {
  const [erased, kept] = people
  const ask = (path: string) => sendRaw(url, path, secretKey, {})
  expect((await ask(`/v1/persons/${erased.externalId}`)).status).toBe(404)
  expect((await ask(`/v1/persons/${kept.externalId}`)).status).toBe(200)
  const { json } = await ask(`/v1/persons/${kept.externalId}/sessions`)
  const events = await ask(`/v1/sessions/${json.sessions[0].id}/events`)
  expect(events.text).toContain(kept.pageText)
}

describe('docs/backup.md', () => {
  test('the built-in database: backup, check, restore', limit, async () => {
    const env = await newShell()
    const { service, people, secretKey } = await fill(env)
    await runBlock('backup', env)
    expect(existsSync(join(env.BACKUPS, 'blobs/ledger'))).toBe(false)
    await erase(service.found, secretKey, people[0])
    await runBlock('verify', env)
    await runBlock('before', env, 'docs/upgrade.md')
    expect(await service.stop()).toBe(0)
    const restored = await runBlock('restore', env)
    await expectOnly(restored?.found ?? '', secretKey, people)
    expect(await restored?.stop()).toBe(0)
  })

  test('a database of your own: pg_dump and pg_restore', limit, async ({ skip }) => {
    const postgres = startInstalledPostgres()
    if (!postgres) return skip('no PostgreSQL is installed')
    const { url, stop } = postgres
    onTestFinished(stop)
    const { client, end } = await connectOne(url)
    const at = (name: string) => url.replace('/postgres?', `/${name}?`)
    for (const name of ['before', 'after']) await client.query(`create database ${name}`)
    await end()
    const env = await newShell({ DATABASE_URL: at('before') })
    const { service, people, secretKey } = await fill(env)
    await runBlock('pg_dump', env)
    expect(readFileSync(join(env.BACKUPS, 'lethe.dump')).subarray(0, 5).toString()).toBe('PGDMP')
    await erase(service.found, secretKey, people[0])
    expect(await service.stop()).toBe(0)
    const restored = await runBlock('pg_restore', { ...env, DATABASE_URL: at('after') })
    await expectOnly(restored?.found ?? '', secretKey, people)
    expect(await restored?.stop()).toBe(0)
  })

  test('a database of your own: a base backup and a moment', limit, async ({ skip }) => {
    const folder = mkdtempSync(join(tmpdir(), 'lethe-wal-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const wal = join(folder, 'wal')
    mkdirSync(wal)
    const postgres = startInstalledPostgres({
      settings: `-c wal_level=replica -c archive_mode=on -c archive_command='cp %p ${wal}/%f'`,
    })
    if (!postgres) return skip('no PostgreSQL is installed')
    const { url } = postgres
    const { uid, gid } = statSync(join(postgres.folder, 'data'))
    for (let above = folder; above !== '/'; above = dirname(above)) {
      if ((statSync(above).mode & 0o001) === 0) chmodSync(above, 0o711)
    }
    for (const own of [folder, wal]) chownSync(own, uid, gid)
    const env = await newShell({ DATABASE_URL: url })
    // The server's own user runs its programs.
    const asPostgres = async (mark: string, more: Environment = {}) => {
      const settings = { ...env, BACKUPS: folder, ...more }
      const words = ['--norc', '-euo', 'pipefail', '-c', blockOf('docs/backup.md', `sh ${mark}`)]
      await promisify(execFile)('bash', words, {
        env: settings,
        uid,
        gid,
        cwd: '/',
        timeout: 60_000,
      })
    }
    const { service, people, secretKey } = await fill(env)
    await asPostgres('base')
    // What this server was told by its command line.
    const own = `unix_socket_directories = '${folder}'\nlisten_addresses = ''\n`
    appendFileSync(join(folder, 'base/postgresql.auto.conf'), own)
    const { client, end } = await connectOne(url)
    const { rows } = await client.query<{ now: string }>('select clock_timestamp()::text as now')
    await end()
    await sleep(1_000)
    await erase(service.found, secretKey, people[0])
    expect(await service.stop()).toBe(0)
    const { client: last, end: endLast } = await connectOne(url)
    await last.query('select pg_switch_wal()')
    await endLast()
    await eventually(async () => readdirSync(wal).length >= 2)
    postgres.stop()

    const PGDATA = join(folder, 'again')
    await asPostgres('moment', { PGDATA, MOMENT: rows[0]?.now ?? '' })
    onTestFinished(
      () =>
        void execFileSync(
          '/usr/lib/postgresql/15/bin/pg_ctl',
          ['-D', PGDATA, '-m', 'immediate', 'stop'],
          { uid, gid, cwd: '/' },
        ),
    )
    const settings = { ...env, DATABASE_URL: url.replace(postgres.folder, folder) }
    const restored = await startLethe(['serve'], settings, greeting)
    await expectOnly(restored.found, secretKey, people)
    expect(await restored.stop()).toBe(0)
  })
})
