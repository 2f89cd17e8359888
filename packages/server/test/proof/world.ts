import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { buildApp } from '../../src/app.ts'
import { BlobFault, type Blobs } from '../../src/blobs/blobs.ts'
import { openFolder } from '../../src/blobs/filesystem.ts'
import { parseMasterKeys } from '../../src/blobs/master-keys.ts'
import type { AttemptOptions } from '../../src/erasure/attempt.ts'
import { createErasureMetrics } from '../../src/erasure/metrics.ts'
import { openSigner } from '../../src/erasure/signing-keys.ts'
import { createLog } from '../../src/log.ts'
import { createMetrics } from '../../src/metrics.ts'
import { migrate, readCursorKey } from '../../src/migrate.ts'
import { suppressionsWith } from '../../src/projects/suppressions.ts'
import type { Recordings } from '../../src/recordings/upload.ts'
import { connect, connectOne, type Db, type DbAddress, type Sql } from '../../src/sql.ts'
import { Crash } from '../erasure-faults.ts'
import { newProject, type TestProject } from '../fixtures.ts'
import { blobsOf, statementOf } from './faults.ts'
import { asStep, type Breakpoints, currentLane, type Lane } from './scheduler.ts'
import { restoreTree, type Tree, treeOf } from './tree.ts'
import {
  breakpointKinds,
  cleaning,
  clearing,
  keeping,
  prepareDatabase,
  restoring,
} from './world-database.ts'

export const retryDelaysSeconds = [30, 60, 120, 240] as const

/** All data, which the checker reads with its own SQL and its own listing of files. */
export interface Facts {
  now: string
  persons: Row[]
  links: Row[]
  browsers: Row[]
  keys: Row[]
  sessions: Row[]
  chunks: Row[]
  jobs: Row[]
  attempts: Row[]
  receipts: Row[]
  ledger: Row[]
  ledgerState: Row[]
  /** The writes to rows, in order; see `watchedTables`. */
  history: Written[]
  /** All files in the folder by their keys: blobs and ledger entries. */
  files: Map<string, Buffer>
}

export interface Written {
  at: string
  /** The backend that wrote it: each actor has its own. */
  pid: number
  place: string
  op: 'INSERT' | 'UPDATE' | 'DELETE'
  old: Row | null
  new: Row | null
}

// biome-ignore lint/suspicious/noExplicitAny: rows of any table, as JSON
export type Row = Record<string, any>

/** Where a process dies: everything it tries afterwards fails without effect. */
export interface Death {
  lane: string
  at: RegExp
  when: 'before' | 'after'
}

/** The calls of the blob store that fail, and in which lane. */
export interface Failure {
  lane: string
  at: RegExp
}

/**
 * The whole product with one database and one folder of blobs. Each actor of a schedule has its own
 * connection; everything outside a schedule shares another.
 */
export interface World {
  project: TestProject
  otherProject: TestProject
  /** The real product. Each actor has its own instance, like a process. */
  app(): Awaited<ReturnType<typeof buildApp>>
  options: AttemptOptions
  recordings: Recordings
  folder: string
  /** For the checker: without faults, and not a step. */
  eye: Sql
  query(text: string): Promise<unknown>
  /** The backends of the first lanes. */
  pids(count: number): Promise<number[]>
  /** Locks the breakpoints for the statements of these connections. */
  setBreakpoints(pids: readonly number[]): Promise<Breakpoints>
  removeBreakpoints(): Promise<unknown>
  /** Called before each step. Throws if it must not happen. */
  watch: ((what: string, key: string) => Promise<void>) | undefined
  /** What happened although it must not. The product gets it as a fault, and may continue. */
  violation: Error | undefined
  death: Death | undefined
  failure: Failure | undefined
  /** The store behaves like a bucket: it has no places, so a late put succeeds. */
  isBucket: boolean
  forward(seconds: number): Promise<void>
  /** Deletes everything. */
  clear(): Promise<void>
  /** Saves the state that `replant` restores. */
  keepPlanted(): Promise<void>
  replant(): Promise<void>
  facts(): Promise<Facts>
  /** The keys of the recordings' files in the folder. */
  blobKeys(): string[]
  logged(): string
  close(): Promise<void>
}

/** Statements that are not steps: cached reads of keys and secrets, and notifications. */
const isAside =
  /from keys|update keys|pg_notify|worker_seen|project_secrets|identify_secret|identity_|public_key|ingest_usage/

const lanesMaximum = 5

export async function openWorld(address: DbAddress): Promise<World> {
  await migrate(address, 'keys')
  const eye = await connectOne(address)
  const query = (text: string) => eye.client.query(text)
  await prepareDatabase(query, address.database)
  // A separate connection, so that its plans are cached: changing the setting discards them.
  const planter = await connectOne(address)
  await planter.client.query('set session_replication_role = replica')
  const dbs = Array.from({ length: lanesMaximum + 1 }, () =>
    connect({ connection: address, poolSize: 1, statementSeconds: 0 }),
  )
  const [outside, ...ofLanes] = dbs as [Db, ...Db[]]
  const project = await newProject(outside)
  const otherProject = await newProject(outside)
  const shared = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const folder = await mkdtemp(join(shared, 'lethe-proof-'))
  const folderBlobs = await openFolder(folder)
  let logged = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk
      done()
    },
  })
  const masterKeys = parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)
  let snapshot: Tree = { places: [], files: new Map() }
  let restores = 0

  const world = {
    watch: undefined,
    violation: undefined,
    death: undefined,
    failure: undefined,
    isBucket: false,
  } as unknown as World
  const db = productDb(world, outside, ofLanes)
  const blobs = productBlobs(world, folderBlobs)
  const log = createLog('debug', destination)
  const metrics = createMetrics()
  const recordings = { db, blobs, browserKeys: { sql: db.sql, masterKeys } }
  const cursorKey = await readCursorKey(address)
  const appOptions = { db, log, cursorKey, recordings }
  const [appOutside, ...appsOfLanes] = await Promise.all(
    dbs.map(() => buildApp({ ...appOptions, metrics: createMetrics() })),
  )
  return Object.assign(world, {
    project,
    otherProject,
    app() {
      const lane = currentLane()
      return (lane ? appsOfLanes[laneNumber(lane)] : appOutside) as NonNullable<typeof appOutside>
    },
    recordings,
    folder,
    eye: eye.sql,
    query,
    options: {
      db,
      keySql: db.sql,
      blobs,
      log,
      metrics: createErasureMetrics(metrics.registry),
      signer: await openSigner(outside, masterKeys),
      suppressions: suppressionsWith(masterKeys),
      retryDelaysSeconds,
      backupRetentionDays: 30,
      // Renewals are separate actors.
      leasePace: { renewSeconds: 1e6, noteSeconds: 1e6, hungSeconds: 1e6 },
    },
    async pids(count: number) {
      // Read each time: a connection that was idle for long has been replaced.
      return Promise.all(ofLanes.slice(0, count).map(pidOf))
    },
    async setBreakpoints(pids: readonly number[]) {
      await eye.sql`
        select pg_advisory_lock(kind, pid)
        from unnest(${breakpointKinds}::integer[]) as kind, unnest(${pids}::integer[]) as pid`
      const [row] = await eye.sql<{ pid: number }>`select pg_backend_pid() as pid`
      return {
        pid: row!.pid,
        async pass(pid: number) {
          const [breakpoint] = await eye.sql<{ kind: number }>`
            select classid::integer as kind from pg_locks
            where locktype = 'advisory' and not granted and pg_locks.pid = ${pid}`
          await eye.sql`
            select pg_advisory_unlock(${breakpoint!.kind}, ${pid}), pg_advisory_lock(${breakpoint!.kind}, ${pid})`
        },
        open: () => world.removeBreakpoints(),
      }
    },
    removeBreakpoints: () => eye.sql`select pg_advisory_unlock_all()`,
    async forward(seconds: number) {
      await query(`update test_clock set at = at + ${seconds} * interval '1 second'`)
    },
    async clear() {
      await planter.client.query(clearing)
      await restoreTree(folder, { places: [], files: new Map() })
    },
    async keepPlanted() {
      await planter.client.query(keeping)
      snapshot = treeOf(folder)
    },
    async replant() {
      await planter.client.query(restoring)
      if (++restores % 100 === 0) await query(cleaning)
      await restoreTree(folder, snapshot)
      logged = ''
    },
    blobKeys: () => [...treeOf(folder).files.keys()].filter((key) => !key.startsWith('ledger/')),
    facts: () => readFacts(eye.sql, folder),
    logged: () => logged,
    async close() {
      for (const app of [appOutside, ...appsOfLanes]) await app?.close()
      for (const one of dbs) await one.end()
      await planter.end()
      await eye.end()
      await rm(folder, { recursive: true, force: true })
    },
  })
}

async function pidOf(db: Db): Promise<number> {
  const [row] = await db.sql<{ pid: number }>`select pg_backend_pid() as pid`
  return row!.pid
}

/** The database as the product sees it: each statement is a step of the current lane. */
function productDb(world: World, outside: Db, ofLanes: Db[]): Db {
  const mine = () => {
    const lane = currentLane()
    return lane ? (ofLanes[laneNumber(lane)] as Db) : outside
  }
  const over =
    (find: () => Sql): Sql =>
    (strings, ...values) => {
      const statement = statementOf(strings, values)
      if (isAside.test(statement.text)) return outside.sql(strings, ...values) as never
      return effect(world, summaryOf(statement.text), () =>
        find()(statement.strings, ...statement.values),
      ) as never
    }
  const sql = over(() => mine().sql)
  return {
    sql,
    short: sql,
    begin: (work) =>
      mine().begin(async (tx) => {
        let result: Awaited<ReturnType<typeof work>>
        try {
          result = await work(over(() => tx))
        } catch (error) {
          await effect(world, 'rollback', async () => {})
          throw error
        }
        await effect(world, 'commit', async () => {})
        return result
      }),
    onLoss: () => {},
    waiting: () => 0,
    end: async () => {},
  }
}

/** Lanes are named `1 DELETE`, `2 worker`, ...: the number is that of their connection. */
const laneNumber = (lane: Lane) => Number.parseInt(lane.name, 10) - 1

async function effect<T>(world: World, what: string, run: () => Promise<T>, key = ''): Promise<T> {
  const lane = currentLane()
  const { death, failure } = world
  const dies = death !== undefined && lane?.name === death.lane
  if (dies && isDead.has(death)) throw new Crash()
  return asStep(what, async () => {
    await world.watch?.(what, key).catch((error) => {
      world.violation ??= error
      throw error
    })
    const isHere = dies && death.at.test(what)
    if (isHere) isDead.add(death)
    if (isHere && death.when === 'before') throw new Crash()
    if (lane?.name === failure?.lane && failure?.at.test(what)) {
      throw new BlobFault('failed', 'The store refuses.')
    }
    const result = await run().catch((error) => {
      if (isDeadlock(error)) world.violation ??= new Error('two actors were deadlocked')
      throw error
    })
    if (isHere) throw new Crash()
    return result
  })
}

const isDeadlock = ({ code }: { code?: string }) => code === '40P01'

const isDead = new WeakSet<Death>()

function productBlobs(world: World, folder: Blobs): Blobs {
  const bucket: Blobs = {
    ...folder,
    async put(key, bytes, signal) {
      await folder.open(key.slice(0, key.lastIndexOf('/') + 1))
      await folder.put(key, bytes, signal)
    },
  }
  // The store and its fault are chosen for each call.
  const target = () => blobsOf(world.isBucket ? bucket : folder)
  const now: Blobs = {
    open: (prefix) => target().open(prefix),
    put: (key, bytes, signal) => target().put(key, bytes, signal),
    get: (key, signal) => target().get(key, signal),
    delete: (keys, signal) => target().delete(keys, signal),
    deletePrefix: (prefix, options) => target().deletePrefix(prefix, options),
    visit: (prefix, onKeys, signal) => target().visit(prefix, onKeys, signal),
    isEmpty: (prefix, signal) => target().isEmpty(prefix, signal),
    list: (prefix) => target().list(prefix),
    check: () => target().check(),
    close: () => {},
  }
  const step = <T>(what: string, key: string, run: () => Promise<T>) =>
    effect(world, `blobs.${what}`, run, key)
  return {
    ...now,
    open: (prefix) => step('open', prefix, () => now.open(prefix)),
    put: (key, bytes, signal) => step('put', key, () => now.put(key, bytes, signal)),
    get: (key, signal) => step('get', key, () => now.get(key, signal)),
    delete: (keys, signal) => step('delete', '', () => now.delete(keys, signal)),
    deletePrefix: (prefix, options) =>
      step('deletePrefix', prefix, () => now.deletePrefix(prefix, options)),
    isEmpty: (prefix, signal) => step('isEmpty', prefix, () => now.isEmpty(prefix, signal)),
  }
}

/** A short line that identifies a statement. */
export function summaryOf(text: string): string {
  return text.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim().slice(0, 110)
}

async function readFacts(eye: Sql, folder: string): Promise<Facts> {
  const [row] = await eye<{ facts: string }>`
    select json_build_object(
      'now', (select at from test_clock),
      'persons', (select coalesce(json_agg(t), '[]') from persons t),
      'links', (select coalesce(json_agg(t), '[]') from person_browsers t),
      'browsers', (select coalesce(json_agg(t), '[]') from browsers t),
      'keys', (select coalesce(json_agg(t), '[]') from browser_keys t),
      'sessions', (select coalesce(json_agg(t), '[]') from sessions t),
      'chunks', (select coalesce(json_agg(t), '[]') from chunks t),
      'jobs', (select coalesce(json_agg(t), '[]') from deletion_jobs t),
      'attempts', (select coalesce(json_agg(t order by number), '[]') from deletion_attempts t),
      'receipts', (select coalesce(json_agg(t order by number), '[]') from receipts t),
      'ledger', (select coalesce(json_agg(t), '[]') from ledger_entries t),
      'ledgerState', (select json_agg(t) from ledger_state t),
      'history', (select coalesce(json_agg(t order by number), '[]') from history t)
    )::text as facts`
  return { ...parseRows(row!.facts), files: treeOf(folder).files }
}

/** Internal IDs exceed the safe integers of JavaScript, so they stay text. */
function parseRows(text: string) {
  return JSON.parse(text, ((_key: string, value: unknown, context: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && context.source
      ? context.source
      : value) as (key: string, value: unknown) => unknown)
}
