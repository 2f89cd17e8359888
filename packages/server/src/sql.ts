import pg from 'pg'
import { Sql as Fragment, join, raw } from 'sql-template-tag'
import {
  DatabaseUnreachable,
  type NamedQuery,
  pipelined,
  pipelinedSideBySide,
  type Result,
  reached,
} from './pipelined.ts'

export { DatabaseUnreachable, join, raw }

/**
 * Runs one statement and answers its rows. Every statement is prepared, under a name its template
 * gives it. Columns are named by the statement (`as "createdAt"`); int8 comes as a string,
 * timestamptz as ISO 8601 UTC text with milliseconds.
 */
export type Sql = <Row extends object = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Row[]>

export interface Db {
  /** The pool: lists, search, whatever may take its time. */
  sql: Sql
  /**
   * A pipelined connection for reads that take well under a millisecond. A slow statement here
   * holds up all that were sent after it, and no transaction can run here.
   */
  short: Sql
  /** The same for pages of rows, which take longer and may be large: a connection of their own. */
  pages: Sql
  /**
   * For the writes of persons, `writesAtOnce` at a time, each of which may wait for a lock: to take
   * a connection from the pool would be a tenth of what such a write costs.
   */
  writes: Sql
  /** Runs `work` in a transaction; after a deadlock or serialisation failure again, three times at most. */
  begin<T>(work: (tx: Sql) => Promise<T>): Promise<T>
  end(): Promise<void>
}

/** So many statements of `writes` have a connection each; more wait for one another. */
export const writesAtOnce = 4

export interface DbOptions {
  /** A postgres:// URL, or its pieces; `host` may be the folder of a unix socket. */
  connection: string | DbAddress
  poolSize?: number
  /** The longest a statement of the pool may take. */
  statementSeconds?: number
}

export interface DbAddress {
  host: string
  port: number
  user: string
  database: string
  password?: string
}

export function connect(options: DbOptions): Db {
  const { poolSize = 8, statementSeconds = 5 } = options
  const config = clientConfig(options.connection, statementSeconds)
  const pool = new pg.Pool({ ...config, max: poolSize, idleTimeoutMillis: 60_000 })
  // An idle connection that breaks says so with an event that ends the process if nobody listens.
  // The pool drops the connection by itself, and the next query that needs one reports the fault.
  pool.on('error', () => {})
  // The same between two statements of a transaction, when the pool does not listen; the next one
  // reports the fault.
  pool.on('connect', (client) => client.on('error', () => {}))
  // Planned once for all values: to plan one of these statements takes longer than to run it.
  const planned = { ...config, options: `${config.options} -c plan_cache_mode=force_generic_plan` }
  const short = pipelined(planned)
  const pages = pipelined(planned)
  const writes = pipelinedSideBySide(config, writesAtOnce)
  return {
    sql: sqlOver((query) => onPool(pool, (client) => client.query(query))),
    short: sqlOver(short.query),
    pages: sqlOver(pages.query),
    writes: sqlOver(writes.query),
    begin: (work) => transaction(pool, work),
    async end() {
      await Promise.all([pool, short, pages, writes].map((one) => one.end()))
    },
  }
}

/** One connection of its own, for what needs a session: advisory locks, LISTEN, migrations. */
export async function connectOne(
  connection: DbOptions['connection'],
  statementSeconds = 0,
): Promise<{ sql: Sql; client: pg.Client; end(): Promise<void> }> {
  const client = new pg.Client(clientConfig(connection, statementSeconds))
  client.on('error', () => {})
  await client.connect()
  return { sql: sqlOver((query) => client.query(query)), client, end: () => client.end() }
}

export type Pool = pg.Pool

/** A pool for a library that brings its own SQL and its own ideas of types. */
export function openPool(
  connection: DbOptions['connection'],
  size: number,
  statementSeconds = 5,
): Pool {
  const { types: _ours, ...config } = clientConfig(connection, statementSeconds)
  const pool = new pg.Pool({ ...config, max: size, idleTimeoutMillis: 60_000 })
  pool.on('error', () => {})
  // The same between two statements of a transaction, when the pool does not listen; the next one
  // reports the fault.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

function clientConfig(connection: DbOptions['connection'], statementSeconds: number) {
  return {
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'lethe',
    options: '-c TimeZone=UTC',
    types: { getTypeParser: parserOf },
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    ...(statementSeconds > 0 && {
      statement_timeout: statementSeconds * 1_000,
      lock_timeout: 2_000,
      idle_in_transaction_session_timeout: 10_000,
      // A server that no longer answers at all is noticed by us, a little after it should have been.
      query_timeout: (statementSeconds + 5) * 1_000,
    }),
  }
}

/** Of a template as it was last used: its text for those fragments. */
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

function sqlOver(run: (query: NamedQuery) => Promise<Result>): Sql {
  return <Row extends object>(strings: TemplateStringsArray, ...values: unknown[]) =>
    run(queryOf(strings, values)).then(({ rows }) => rows as Row[], failWithOurStack)
}

/** The driver's stack tells of a socket; this one of who asked. */
function failWithOurStack(error: Error): never {
  Error.captureStackTrace(error)
  throw error
}

async function onPool<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await reached(pool.connect())
  try {
    return await work(client)
  } finally {
    // The pool itself sees whether the connection broke, and drops it then.
    client.release()
  }
}

async function transaction<T>(pool: pg.Pool, work: (tx: Sql) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await reached(pool.connect())
    let broken: Error | boolean = false
    try {
      await client.query('begin')
      const result = await work(sqlOver((query) => client.query(query)))
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
