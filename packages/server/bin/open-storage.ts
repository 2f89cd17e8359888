import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Blobs } from '../src/blobs/blobs.ts'
import {
  MasterKeyRefused,
  type MasterKeys,
  masterKeyFile,
  parseMasterKeys,
} from '../src/blobs/master-keys.ts'
import { type BlobsOptions, observed, openBlobs } from '../src/blobs/open-blobs.ts'
import type { Config } from '../src/config.ts'
import { connect, type DbAddress, type Sql } from '../src/sql.ts'
import { type Opened, reachDatabase } from './open.ts'
import { blobsFolder, ofStore, patiently } from './patience.ts'

/** The blob store and the keys of recordings. */
export interface Storage {
  blobs: Blobs
  /** The database of the data keys: a separate one, or the main one. */
  keySql: Sql
  keyShort: Sql
  /** Undefined if the data keys are in the main database. */
  keyConnection: DbAddress | undefined
  masterKeys: MasterKeys
  /** Call it before the database is closed. */
  close(): Promise<void>
}

/** Opens the blob store, the master keys and the database of the data keys. */
export async function openStorage(
  opened: Opened,
  onFault: (code: string) => void = () => {},
): Promise<Storage> {
  const { config, db, connection, patience } = opened
  const masterKeys = await openMasterKeys(config)
  const keyUrl = config.KEY_DATABASE_URL
  const setting = keyUrl === '' ? 'DATABASE_URL' : 'KEY_DATABASE_URL'
  const keys = await reachDatabase(setting, keyUrl || connection, 'keys', patience)
  const keyDb = keyUrl === '' ? undefined : connect({ connection: keys.connection, poolSize: 4 })
  const blobs = await patiently(patience, ofStore(config), async () => {
    const store = await openBlobs(blobsOptions(config))
    // Finds a missing right or a full disk before the first recording needs it.
    if (patience.isService) await store.check()
    return observed(store, onFault)
  })
  return {
    blobs,
    keySql: keyDb?.sql ?? db.sql,
    keyShort: (keyDb ?? db).short,
    keyConnection: keyDb && keys.connection,
    masterKeys,
    async close() {
      blobs.close()
      await keyDb?.end()
    },
  }
}

export function blobsOptions(config: Config): BlobsOptions {
  return {
    folder: blobsFolder(config),
    ...(config.BLOBS_URL !== '' && { url: config.BLOBS_URL }),
    ...(config.S3_ENDPOINT !== '' && { endpoint: config.S3_ENDPOINT }),
  }
}

const commandSeconds = 30

/** Runs the command for the master keys. Its error output may be secret, so it is not shown. */
async function outputOf(command: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('sh', ['-c', command], {
      timeout: commandSeconds * 1_000,
    })
    return stdout
  } catch (error) {
    const { code } = error as { code?: number | string }
    throw new MasterKeyRefused(
      `MASTER_KEY_COMMAND failed (${code ?? `did not end in ${commandSeconds} s`}): run it by hand to see why.`,
    )
  }
}

/** Without a setting, creates a file outside the folders of recordings and database. */
export async function openMasterKeys(config: Config): Promise<MasterKeys> {
  if (config.MASTER_KEY !== '') return parseMasterKeys(config.MASTER_KEY)
  if (config.MASTER_KEY_COMMAND !== '') {
    return parseMasterKeys(await outputOf(config.MASTER_KEY_COMMAND))
  }
  const folder = resolve(config.DATA_DIR)
  return masterKeyFile(join(folder, 'keys', 'master-key'), [
    join(folder, 'postgres'),
    join(folder, 'blobs'),
  ])
}
