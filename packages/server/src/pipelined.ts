import type { Socket } from 'node:net'
import pg from 'pg'

/** There is no connection: the database is down or full, or it rejects us. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable'
}

/** A statement, prepared under its name on each connection; not prepared if the name is empty. */
export interface NamedQuery {
  name: string
  text: string
  values: unknown[]
}

export interface Result {
  rows: unknown[]
}

export async function reached<T>(connecting: Promise<T>): Promise<T> {
  try {
    return await connecting
  } catch (cause) {
    throw new DatabaseUnreachable('No connection to the database.', { cause })
  }
}

/** A connection, opened when first needed and again after it is lost; `onLoss` is called then. */
export function pipelined(
  { query_timeout: patience = 0, ...config }: pg.ClientConfig,
  onLoss: () => void = () => {},
  /** Sent once on each connection, before all else. */
  first?: string,
) {
  let connection: Promise<Ask> | undefined
  /** The same once it is connected, so that statements need not wait for a promise. */
  let ready: Ask | undefined
  let end = () => Promise.resolve()

  function connect(): Promise<Ask> {
    const client = new pg.Client({ ...config, pipeline: true })
    const connecting = client.connect().then(async () => {
      if (first) await client.query(first)
      const ask = askOver(client, patience)
      if (connection === connecting) ready = ask
      return ask
    })
    const forget = () => {
      if (connection !== connecting) return
      if (ready) onLoss()
      connection = ready = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    connecting.catch(forget)
    end = () => client.end()
    return connecting
  }

  return {
    query(query: NamedQuery): Promise<Result> {
      if (ready) return ready(query)
      connection ??= connect()
      return reached(connection).then((ask) => ask(query))
    },
    async end() {
      await connection?.then(end).catch(() => {})
    },
  }
}

type Ask = (query: NamedQuery) => Promise<Result>

/**
 * Results come in the order of the statements, so one timer per connection is enough: a connection
 * without any result for `patience` ms is closed.
 */
function askOver(client: pg.Client, patience: number): Ask {
  let waiting = 0
  let heardAt = 0
  const watch = setInterval(() => {
    const isDead = waiting > 0 && performance.now() - heardAt >= patience
    if (isDead) socketOf(client).destroy()
  }, watchMilliseconds).unref()
  client.on('end', () => clearInterval(watch))
  const heard = () => {
    waiting--
    heardAt = performance.now()
  }
  return (query) => {
    if (waiting === 0) heardAt = performance.now()
    waiting++
    const result = ask(client, query)
    result.then(heard, heard)
    return result
  }
}

const watchMilliseconds = 1_000

/** Destroying the socket is the only way to cancel: a graceful end waits for the results. */
export function socketOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}

/**
 * Like the driver's client.query, without its copy of the statement and its promises: with those
 * (pg 8.23), the rows of all pages stayed in memory until a full garbage collection, and a list took
 * nearly twice the processor time (bench/README, Person API).
 */
export function ask(client: pg.Client, { name, text, values }: NamedQuery): Promise<Result> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(text, values, (error, result) => {
      if (error) reject(error)
      else resolve(result)
    })
    client.query(Object.assign(query, { name }))
  })
}
