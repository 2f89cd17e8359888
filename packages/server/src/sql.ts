import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { Sql as Fragment, join, raw } from 'sql-template-tag'
import {
  ask,
  DatabaseUnreachable,
  type NamedQuery,
  pipelined,
  type Result,
  reached,
  socketOf,
} from './pipelined.ts'

export { DatabaseUnreachable, type Fragment, join, raw }

/**
 * Runs one statement and returns its rows. Every statement is prepared, under a name its template
 * gives it. Columns are named by the statement (`as "createdAt"`); int8 comes as a string,
 * timestamptz as ISO 8601 UTC text with milliseconds.
 */
export type Sql = <Row extends object = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Row[]>

export interface Db {
  /** The pool. */
  sql: Sql
  /**
   * A pipelined connection for reads that take well under a millisecond. A slow statement here
   * holds up all that were sent after it, and no transaction can run here.
   */
  short: Sql
  /**
   * Calls `heard` when the connection of `short` is lost, or a new connection of the pool leads to
   * another server than before: from then on another server may respond.
   */
  onLoss(heard: () => void): void
  /** Runs `work` in a transaction, up to three times if there is a deadlock or serialization failure. */
  begin<T>(work: (tx: Sql) => Promise<T>): Promise<T>
  /** The number of statements that wait for a connection of the pool. */
  waiting(): number
  end(): Promise<void>
}

export interface DbOptions {
  /** A postgres:// URL, or its parts; `host` may be the folder of a Unix socket. */
  connection: string | DbAddress
  poolSize?: number
  /** The time limit for a statement of the pool. */
  statementSeconds?: number
}

export interface DbAddress {
  host: string
  port: number
  user: string
  database: string
  password?: string
  ssl?: false | ConnectionOptions
  /**
   * Set behind a pooler such as pgbouncer, which assigns a connection per transaction, so no session
   * state lasts. `named`: the pooler keeps track of prepared statements.
   */
  pooler?: 'named' | 'unnamed'
}

export function connect(options: DbOptions): Db {
  const { poolSize = 8, statementSeconds = 5 } = options
  const { connection } = options
  const config = clientConfig(connection, statementSeconds)
  const losses = new Set<() => void>()
  const lose = () => {
    for (const heard of losses) heard()
  }
  const pool = createPool({
    ...config,
    max: poolSize,
    ...(!poolerOf(connection) && { verify: noticesOtherServer(lose) }),
  })
  const over = sqlFor(connection)
  const short = pipelined(config, lose, poolerOf(connection) ? undefined : plannedOnce)
  return {
    sql: over((query) => onPool(pool, (client) => ask(client, query))),
    short: over(short.query),
    begin: (work) => transaction(pool, work, over, beginning(connection, statementSeconds)),
    waiting: () => pool.waitingCount,
    onLoss: (heard) => void losses.add(heard),
    async end() {
      losses.clear()
      await Promise.all([pool.end(), short.end()])
    },
  }
}

/**
 * Plans each statement once for all values: planning one of these takes longer than running it.
 * Citus cannot plan joins without the values.
 */
const plannedOnce = `
  select set_config('plan_cache_mode', case
    when to_regclass('pg_dist_partition') is null then 'force_generic_plan' else 'auto' end, false)`

/**
 * Asks each new connection which server it leads to. After a failover, connections to the lost machine
 * stay silent while new ones already reach its successor.
 */
function noticesOtherServer(notice: () => void): NonNullable<pg.PoolConfig['verify']> {
  let known: string | undefined
  return (client, done) => {
    client.query('select pg_postmaster_start_time()::text as server').then(({ rows }) => {
      const { server } = rows[0]
      if (known !== undefined && server !== known) notice()
      known = server
      done()
    }, done)
  }
}

/** Opens a single connection, for what needs a session: advisory locks, LISTEN, migrations. */
export async function connectOne(
  connection: DbOptions['connection'],
  statementSeconds = 0,
): Promise<{ sql: Sql; client: pg.Client; end(): Promise<void> }> {
  const client = new pg.Client(clientConfig(connection, statementSeconds))
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (error) {
    // A graceful end would wait for a server that does not respond.
    socketOf(client).destroy()
    throw error
  }
  const sql = sqlFor(connection)((query) => ask(client, query))
  return { sql, client, end: () => client.end() }
}

export type Pool = pg.Pool

/** Opens a pool for a library that has its own SQL and types. */
export function openPool(
  connection: DbOptions['connection'],
  size: number,
  statementSeconds = 5,
): Pool {
  const { types: _ours, ...config } = clientConfig(connection, statementSeconds)
  return createPool({ ...config, max: size })
}

function createPool(config: pg.PoolConfig): Pool {
  const pool = new pg.Pool({ ...config, idleTimeoutMillis: 60_000 })
  // A broken connection emits an error event, which would end the process if nobody listened. The
  // pool listens only on idle connections. The next query reports the fault.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

function clientConfig(connection: DbOptions['connection'], statementSeconds: number) {
  return {
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'lethe',
    types: { getTypeParser: parserOf },
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // Poolers refuse or lose these options. The default page cost is that of a spinning disk: with it,
    // a table that is not analyzed yet would be sorted whole to read one page of persons.
    ...(!poolerOf(connection) && { options: '-c TimeZone=UTC -c random_page_cost=1.1' }),
    ...(!poolerOf(connection) && statementSeconds > 0 && limits(statementSeconds)),
    ...(statementSeconds > 0 && {
      // For a server that does not respond at all; its own limit comes first.
      query_timeout: (statementSeconds + 5) * 1_000,
    }),
  }
}

function poolerOf(connection: DbOptions['connection']): DbAddress['pooler'] {
  return typeof connection === 'string' ? undefined : connection.pooler
}

/** In milliseconds. Nothing waits long for a lock, and nothing holds one while idle. */
function limits(statementSeconds: number) {
  return {
    statement_timeout: statementSeconds * 1_000,
    lock_timeout: 2_000,
    idle_in_transaction_session_timeout: 10_000,
  }
}

/** The statements that begin a transaction. Through a pooler each transaction sets its limits. */
function beginning(connection: DbOptions['connection'], statementSeconds: number): string {
  if (!poolerOf(connection)) return 'begin'
  const settings = Object.entries(limits(statementSeconds))
  return ['begin', ...settings.map(([name, value]) => `set local ${name} = ${value}`)].join('; ')
}

/** The text of a template for the fragments it was last used with. */
interface KnownText {
  name: string
  text: string
  fragments: [at: number, fragment: Fragment][]
}

const known = new WeakMap<TemplateStringsArray, KnownText>()
const namesByText = new Map<string, string>()

function nameOf(text: string): string {
  const given = namesByText.get(text)
  if (given) return given
  const name = `s${namesByText.size + 1}`
  namesByText.set(text, name)
  return name
}

function queryOf(strings: TemplateStringsArray, values: unknown[]): NamedQuery {
  const last = known.get(strings)
  // Most fragments are constants, and most templates have none.
  if (last?.fragments.every(([at, fragment]) => values[at] === fragment)) {
    const { name, text, fragments } = last
    return { name, text, values: fragments.length === 0 ? values : values.filter(isNoFragment) }
  }
  const whole = new Fragment(strings, values)
  const { text } = whole
  const name = nameOf(text)
  const fragments = [...values.entries()].filter(isOfFragment)
  if (fragments.every(([, { values }]) => values.length === 0)) {
    known.set(strings, { name, text, fragments })
  }
  return { name, text, values: whole.values }
}

const isNoFragment = (value: unknown) => !(value instanceof Fragment)

const isOfFragment = (entry: [number, unknown]): entry is [number, Fragment] =>
  entry[1] instanceof Fragment

/** A piece of SQL to embed in a statement. */
export function fragment(strings: TemplateStringsArray, ...values: unknown[]): Fragment {
  return new Fragment(strings, values)
}

type Run = (query: NamedQuery) => Promise<Result>

/** Prepares statements unless a pooler loses track of them. */
function sqlFor(connection: DbOptions['connection']): (run: Run) => Sql {
  if (poolerOf(connection) !== 'unnamed') return sqlOver
  return (run) => sqlOver((query) => run({ ...query, name: '' }))
}

function sqlOver(run: Run): Sql {
  return <Row extends object>(strings: TemplateStringsArray, ...values: unknown[]) =>
    run(queryOf(strings, values)).then(({ rows }) => rows as Row[], failWithOurStack)
}

/** The driver's stack shows a socket; this one shows the caller. */
function failWithOurStack(error: Error): never {
  Error.captureStackTrace(error)
  throw error
}

async function onPool<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await reached(pool.connect())
  let isDead = false
  try {
    return await work(client)
  } catch (error) {
    // The pool notices a broken connection, but not one that no longer responds.
    isDead = (error as Error).message === 'Query read timeout'
    throw error
  } finally {
    client.release(isDead)
  }
}

async function transaction<T>(
  pool: pg.Pool,
  work: (tx: Sql) => Promise<T>,
  over: (run: Run) => Sql,
  begin: string,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await reached(pool.connect())
    let broken: Error | boolean = false
    try {
      await client.query(begin)
      const result = await work(over((query) => ask(client, query)))
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch((failure: Error) => {
        broken = failure
      })
      const { code } = error as { code?: string }
      if ((code !== '40P01' && code !== '40001') || attempt === 3) throw error
    } finally {
      client.release(broken)
    }
  }
}

const timestamptz = 1184

function parserOf(oid: number, format?: 'text' | 'binary') {
  if (oid === timestamptz && format !== 'binary') return instantOf
  return pg.types.getTypeParser(oid, format as 'text')
}

/** `2026-11-27 22:58:33.12+00` as `2026-11-27T22:58:33.120Z`. */
function instantOf(text: string): string {
  if (!text.endsWith('+00') || text.length > 27) return new Date(text).toISOString()
  const milliseconds = text.slice(20, -3).slice(0, 3).padEnd(3, '0')
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${milliseconds}Z`
}
