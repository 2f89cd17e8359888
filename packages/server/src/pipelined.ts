import type { Socket } from 'node:net'
import pg from 'pg'

/** No connection could be had: the database is away, full, or refuses us. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable'
}

/** A prepared statement: its name stands for its text on every connection. */
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

/** A connection that is made when first needed, and anew after it broke. */
export function pipelined({ query_timeout: patience = 0, ...config }: pg.ClientConfig) {
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

/** Pipelined connections; a statement goes where the fewest are waiting. */
export function pipelinedSideBySide(config: pg.ClientConfig, count: number) {
  const lanes = Array.from({ length: count }, () => ({ connection: pipelined(config), waiting: 0 }))
  return {
    query(query: NamedQuery): Promise<Result> {
      const lane = lanes.reduce((one, other) => (other.waiting < one.waiting ? other : one))
      lane.waiting++
      const answer = lane.connection.query(query)
      const answered = () => {
        lane.waiting--
      }
      answer.then(answered, answered)
      return answer
    },
    async end() {
      await Promise.all(lanes.map(({ connection }) => connection.end()))
    },
  }
}

type Ask = (query: NamedQuery) => Promise<Result>

/**
 * Answers come in the order of the statements. So it is the connection that is watched, which costs
 * less than a timer for each: one that has not answered anything for `patience` ms answers nobody.
 */
function askOver(client: pg.Client, patience: number): Ask {
  let waiting = 0
  let heardAt = 0
  const watch = setInterval(() => {
    const isDead = waiting > 0 && performance.now() - heardAt >= patience
    if (!isDead)
      return // There is no other way to let go of what was sent: a graceful end waits for the answers.
    ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
  }, watchMilliseconds).unref()
  client.on('end', () => clearInterval(watch))
  const heard = () => {
    waiting--
    heardAt = performance.now()
  }
  return (query) => {
    if (waiting === 0) heardAt = performance.now()
    waiting++
    const answer = ask(client, query)
    answer.then(heard, heard)
    return answer
  }
}

const watchMilliseconds = 1_000

/** The driver's client.query, without the copy of the statement and the promises it makes of each. */
function ask(client: pg.Client, { name, text, values }: NamedQuery): Promise<Result> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(text, values, (error, result) => {
      if (error) reject(error)
      else resolve(result)
    })
    client.query(Object.assign(query, { name }))
  })
}
