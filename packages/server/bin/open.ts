import { resolve } from 'node:path'
import { type Config, readConfig } from '../src/config.ts'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { checkDatabase, type DatabaseFacts, migrate } from '../src/migrate.ts'
import { connect, type Db, type DbAddress } from '../src/sql.ts'

export interface Opened {
  config: Config
  db: Db
  connection: string | DbAddress
  facts: DatabaseFacts
  isEmbedded: boolean
  close(): Promise<void>
}

/** Reads the settings, reaches or starts the database, and brings its schema up to date. */
export async function open(): Promise<Opened> {
  const config = readConfig(process.env)
  const isEmbedded = config.DATABASE_URL === ''
  const embedded = isEmbedded
    ? await openEmbedded({ dataDir: resolve(config.DATA_DIR) })
    : undefined
  const connection = embedded?.address ?? config.DATABASE_URL
  try {
    const facts = await checkDatabase(connection)
    await migrate(connection)
    const db = connect({ connection, poolSize: config.DATABASE_POOL_SIZE })
    const close = async () => {
      await db.end()
      await embedded?.close()
    }
    return { config, db, connection, facts, isEmbedded, close }
  } catch (error) {
    await embedded?.close()
    throw error
  }
}
