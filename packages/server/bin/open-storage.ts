import { join, resolve } from 'node:path'
import type { Blobs } from '../src/blobs/blobs.ts'
import { type MasterKeys, masterKeyFile, parseMasterKeys } from '../src/blobs/master-keys.ts'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import type { Config } from '../src/config.ts'
import { migrate } from '../src/migrate.ts'
import { connect, type Sql } from '../src/sql.ts'
import type { Opened } from './open.ts'

/** Where recordings are, beside the database. */
export interface Storage {
  blobs: Blobs
  /** The database of the browsers' data keys: a small one of its own, or the main one. */
  keySql: Sql
  keyShort: Sql
  masterKeys: MasterKeys
  /** Before the database is closed. */
  close(): Promise<void>
}

/** Opens the blob store, the master keys and the database of the data keys. */
export async function openStorage({ config, db, connection }: Opened): Promise<Storage> {
  const masterKeys = await openMasterKeys(config)
  const keyUrl = config.KEY_DATABASE_URL
  await migrate(keyUrl || connection, 'keys')
  const keyDb = keyUrl === '' ? undefined : connect({ connection: keyUrl, poolSize: 4 })
  const blobs = await openBlobs({
    folder: join(resolve(config.DATA_DIR), 'blobs'),
    ...(config.BLOBS_URL !== '' && { url: config.BLOBS_URL }),
    ...(config.S3_ENDPOINT !== '' && { endpoint: config.S3_ENDPOINT }),
  })
  return {
    blobs,
    keySql: keyDb?.sql ?? db.sql,
    keyShort: (keyDb ?? db).short,
    masterKeys,
    async close() {
      blobs.close()
      await keyDb?.end()
    },
  }
}

/** A file is made where the setting is empty: outside of what it seals, so in no copy of that. */
function openMasterKeys(config: Config): Promise<MasterKeys> | MasterKeys {
  if (config.MASTER_KEY !== '') return parseMasterKeys(config.MASTER_KEY)
  const folder = resolve(config.DATA_DIR)
  return masterKeyFile(join(folder, 'keys', 'master-key'), [
    join(folder, 'postgres'),
    join(folder, 'blobs'),
  ])
}

/** Where the text of the demo page's public key is kept. */
export function demoKeyFile(config: Config): string {
  return join(resolve(config.DATA_DIR), 'demo-key')
}
