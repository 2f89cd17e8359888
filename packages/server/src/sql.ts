import pg from 'pg'
import { Sql as Fragment, join, raw } from 'sql-template-tag'

export { join, raw }

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
  /**
   * The same for single statements that write: several connections, as each statement waits until
   * its commit is on the disk, and commits that wait together are written together.
   */
  write: Sql
  /** Runs `work` in a transaction; after a deadlock or serialisation failure again, three times at most. */
  begin<T>(work: (tx: Sql) => Promise<T>): Promise<T>
  end(): Promise<void>
}

/** No connection could be had: the database is away, full, or refuses us. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable'
}

export interface DbOptions {
  /** A postgres:// URL, or its pieces; `host` may be the folder of a unix socket. */
  connection: string | DbAddress
  poolSize?: number
  /** Pipelined connections for `write`. */
  writeConnections?: number
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
  const { poolSize = 8, writeConnections = 8, statementSeconds = 5 } = options
  const config = clientConfig(options.connection, statementSeconds)
  const pool = new pg.Pool({ ...config, max: poolSize, idleTimeoutMillis: 60_000 })
  // An idle connection that breaks says so with an event that ends the process if nobody listens.
  // The pool drops the connection by itself, and the next query that needs one reports the fault.
  pool.on('error', () => {})
  // The same between two statements of a transaction, when the pool does not listen; the next one
  // reports the fault.
  pool.on('connect', (client) => client.on('error', () => {}))
  const short = pipelined({ ...config, pipeline: true }, 1)
  const write = pipelined({ ...config, pipeline: true }, writeConnections)
  return {
    sql: sqlOver((query) => onPool(pool, (client) => client.query(query))),
    short: sqlOver(short.query),
    write: sqlOver(write.query),
    begin: (work) => transaction(pool, work),
    async end() {
      await Promise.all([pool.end(), short.end(), write.end()])
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

interface NamedQuery {
  name: string
  text: string
  values: unknown[]
}

const named = new WeakMap<TemplateStringsArray, { name: string; text: string }>()
const namesByText = new Map<string, string>()

function nameOf(text: string): string {
  const known = namesByText.get(text)
  if (known) return known
  const name = `s${namesByText.size + 1}`
  namesByText.set(text, name)
  return name
}

function queryOf(strings: TemplateStringsArray, values: unknown[]): NamedQuery {
  const known = named.get(strings)
  if (known) return { name: known.name, text: known.text, values }
  const fragment = new Fragment(strings, values)
  const { text } = fragment
  const name = nameOf(text)
  // A template that embeds fragments has no text of its own, so it is looked up by its text each time.
  if (!values.some((value) => value instanceof Fragment)) named.set(strings, { name, text })
  return { name, text, values: fragment.values }
}

/** A piece of SQL to embed in a statement. */
export function fragment(strings: TemplateStringsArray, ...values: unknown[]): Fragment {
  return new Fragment(strings, values)
}

function sqlOver(run: (query: NamedQuery) => Promise<{ rows: unknown[] }>): Sql {
  return async <Row extends object>(strings: TemplateStringsArray, ...values: unknown[]) =>
    (await run(queryOf(strings, values))).rows as Row[]
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

async function reached<T>(connecting: Promise<T>): Promise<T> {
  try {
    return await connecting
  } catch (cause) {
    throw new DatabaseUnreachable('No connection to the database.', { cause })
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

/** Connections that are made when first needed, and anew after they broke. */
function pipelined(config: pg.ClientConfig, size: number) {
  const connections: (Promise<pg.Client> | undefined)[] = new Array(size)
  /** How many statements each connection has been sent and not answered. */
  const waiting: number[] = new Array(size).fill(0)

  function connection(slot: number): Promise<pg.Client> {
    const known = connections[slot]
    if (known) return known
    const client = new pg.Client(config)
    const connecting = client.connect().then(() => client)
    const forget = () => {
      if (connections[slot] === connecting) connections[slot] = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    connecting.catch(forget)
    connections[slot] = connecting
    return connecting
  }

  return {
    async query(query: NamedQuery) {
      const slot = waiting.indexOf(Math.min(...waiting))
      waiting[slot] = (waiting[slot] as number) + 1
      try {
        return await (await reached(connection(slot))).query(query)
      } finally {
        waiting[slot] = (waiting[slot] as number) - 1
      }
    },
    async end() {
      const open = connections.filter((client) => client !== undefined)
      await Promise.allSettled(open.map(async (client) => (await client).end()))
    },
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
