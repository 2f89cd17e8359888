import type { Socket } from 'node:net'
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
  /** The same for pages of rows, which take longer and may be large: a connection of their own. */
  pages: Sql
  /** Runs `work` in a transaction; after a deadlock or serialisation failure again, three times at most. */
  begin<T>(work: (tx: Sql) => Promise<T>): Promise<T>
  end(): Promise<void>
}

/**
 * A column of type varchar, by which a statement says that its text is only passed on. A large one
 * comes as its bytes in UTF-8, which lie outside of the heap: the garbage of a few such texts is
 * more than is collected without holding up everybody.
 */
export type Passed = string | Buffer

/** Texts above this come as bytes where they are only passed on. */
const passedCharacters = 16_384

/** No connection could be had: the database is away, full, or refuses us. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable'
}

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
  const short = pipelined(config)
  const pages = pipelined(config)
  return {
    sql: sqlOver((query) => onPool(pool, (client) => client.query(query))),
    short: sqlOver(short.query),
    pages: sqlOver(pages.query),
    begin: (work) => transaction(pool, work),
    async end() {
      await Promise.all([pool.end(), short.end(), pages.end()])
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
  return <Row extends object>(strings: TemplateStringsArray, ...values: unknown[]) =>
    run(queryOf(strings, values)).then(({ rows }) => rows as Row[])
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

/** A connection that is made when first needed, and anew after it broke. */
function pipelined({ query_timeout: patience = 0, ...config }: pg.ClientConfig) {
  let connection: Promise<Ask> | undefined
  /** The same, connected, so that a statement need not wait for a promise to say so. */
  let ready: Ask | undefined
  let end = () => Promise.resolve()

  function connect(): Promise<Ask> {
    const client = new pg.Client({ ...config, pipeline: true })
    const connecting = client.connect().then(() => {
      const ask = askOver(client, patience)
      if (connection === connecting) ready = ask
      return ask
    })
    const forget = () => {
      if (connection === connecting) connection = ready = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    connecting.catch(forget)
    end = () => client.end()
    return connecting
  }

  return {
    query(query: NamedQuery): Promise<{ rows: unknown[] }> {
      if (ready) return ready(query)
      connection ??= connect()
      return reached(connection).then((ask) => ask(query))
    },
    async end() {
      await connection?.then(end).catch(() => {})
    },
  }
}

type Ask = (query: NamedQuery) => Promise<{ rows: unknown[] }>

/**
 * Answers come in the order of the statements. So it is the connection that is watched, which costs
 * less than a timer for each: one that has not answered anything for `patience` ms answers nobody.
 */
function askOver(client: pg.Client, patience: number): Ask {
  let waiting = 0
  let heardAt = 0
  const watch = setInterval(() => {
    if (waiting === 0 || performance.now() - heardAt < patience)
      return // There is no other way to let go of what was sent: a graceful end waits for the answers.
    ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }, watchMilliseconds).unref()
  client.on('end', () => clearInterval(watch))
  return (query) =>
    new Promise((resolve, reject) => {
      if (waiting === 0) heardAt = performance.now()
      waiting++
      void client.query(query, (error: Error | null, result) => {
        waiting--
        heardAt = performance.now()
        if (error) reject(error)
        else resolve(result)
      })
    })
}

const watchMilliseconds = 1_000

const timestamptz = 1184
const varchar = 1043

function parserOf(oid: number, format?: 'text' | 'binary') {
  if (oid === timestamptz && format !== 'binary') return instantOf
  if (oid === varchar && format !== 'binary') return passedOf
  return pg.types.getTypeParser(oid, format as 'text')
}

function passedOf(value: string): Passed {
  return value.length > passedCharacters ? Buffer.from(value) : value
}

/** `2026-11-27 22:58:33.12+00` as `2026-11-27T22:58:33.120Z`. */
function instantOf(text: string): string {
  if (!text.endsWith('+00') || text.length > 27) return new Date(text).toISOString()
  const milliseconds = text.slice(20, -3).slice(0, 3).padEnd(3, '0')
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${milliseconds}Z`
}
