import { resolve } from 'node:path'
import type { Config } from '../src/config.ts'
import { distributeNew } from '../src/distribute.ts'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { checkDatabase, type DatabaseFacts, migrate, type Schema } from '../src/migrate.ts'
import { reach } from '../src/reach.ts'
import { connect, type Db, type DbAddress } from '../src/sql.ts'
import { ofDatabase, type Patience, patiently } from './patience.ts'
import { readSettings } from './settings.ts'
import type { Stop } from './signals.ts'

export interface Opened {
  config: Config
  db: Db
  connection: DbAddress
  facts: DatabaseFacts
  isEmbedded: boolean
  /** For the embedded database: a role with more rights than the product's own. */
  superuser?: DbAddress | undefined
  /** For the following steps of the start. */
  patience: Patience
  unless: Stop['unless']
  close(): Promise<void>
}

/**
 * Reads the settings, connects to the database or starts the embedded one, and runs migrations. A
 * service waits for its database; other commands fail at once.
 */
export async function open(stop?: Stop): Promise<Opened> {
  const config = readSettings()
  return openAt(config, await findPlace(config, stop), stop)
}

/** The address of a database; the embedded one runs until `close`. */
export interface Place {
  place: string | DbAddress
  superuser?: DbAddress
  close(): Promise<void>
}

export async function findPlace(config: Config, stop?: Stop): Promise<Place> {
  if (config.DATABASE_URL !== '') return { place: config.DATABASE_URL, close: async () => {} }
  const { address, superuserAddress, close } = await openEmbedded({
    dataDir: resolve(config.DATA_DIR),
    ...(stop && { signal: stop.signal }),
  })
  return { place: address, superuser: superuserAddress, close }
}

/** Like `open`, for a given place, which `close` closes too. */
export async function openAt(config: Config, at: Place, stop?: Stop): Promise<Opened> {
  const unless: Stop['unless'] = stop?.unless ?? ((step) => step)
  const waitSeconds = stop ? config.START_WAIT_SECONDS : 0
  const patience: Patience = { waitSeconds, isService: stop !== undefined, stop: { unless } }
  const isEmbedded = config.DATABASE_URL === ''
  try {
    const { connection, facts } = await reachDatabase('DATABASE_URL', at.place, 'main', patience)
    const db = connect({ connection, poolSize: config.DATABASE_POOL_SIZE })
    const close = async () => {
      await db.end()
      await at.close()
    }
    const { superuser } = at
    return { config, db, connection, facts, isEmbedded, superuser, patience, unless, close }
  } catch (error) {
    await at.close()
    throw error
  }
}

/** Connects to a database, refuses an unsuitable one, and runs migrations. */
export async function reachDatabase(
  setting: string,
  place: string | DbAddress,
  schema: Schema,
  patience: Patience,
): Promise<{ connection: DbAddress; facts: DatabaseFacts }> {
  return patiently(patience, ofDatabase(setting, placeOf(place)), async () => {
    const connection = await addressAt(place)
    const facts = await checkDatabase(connection, setting)
    const { applied } = await migrate(connection, schema)
    if (applied.length > 0) await distributeNew(connection)
    return { connection, facts }
  })
}

/** Connects to a database without changing it. */
export function reachOnly(setting: string, place: string | DbAddress): Promise<DbAddress> {
  const once: Patience = { waitSeconds: 0, isService: false, stop: { unless: (step) => step } }
  return patiently(once, ofDatabase(setting, placeOf(place)), () => addressAt(place))
}

async function addressAt(place: string | DbAddress): Promise<DbAddress> {
  return typeof place === 'string' ? reach(place, process.env.PGSSLROOTCERT) : place
}

/** The host and port for messages. */
function placeOf(place: string | DbAddress): { host: string; port: number } {
  if (typeof place !== 'string') return place
  const url = new URL(place)
  return {
    host: url.searchParams.get('host') ?? (url.hostname || 'localhost'),
    port: Number(url.port || 5432),
  }
}
