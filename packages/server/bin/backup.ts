import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import { dump } from '../src/backup/dump.ts'
import { openBackup, writeBackup } from '../src/backup/file.ts'
import { load } from '../src/backup/load.ts'
import { BackupRefused } from '../src/backup/records.ts'
import { makeDirectories } from '../src/blobs/durable.ts'
import type { MasterKeys } from '../src/blobs/master-keys.ts'
import { unchanging } from '../src/blobs/unchanging.ts'
import type { Config } from '../src/config.ts'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { EmbeddedMissing } from '../src/embedded/embedded-error.ts'
import type { Reapplied } from '../src/erasure/reapply.ts'
import { readInstanceSecrets } from '../src/members/secret.ts'
import { checkDatabase } from '../src/migrate.ts'
import { connect, connectOne, type DbAddress } from '../src/sql.ts'
import { jsonLines, print, UsageError } from './command.ts'
import { compareLedger } from './compare-ledger.ts'
import { findPlace, openAt, reachOnly } from './open.ts'
import { withErasure } from './open-erasure.ts'
import { openMasterKeys } from './open-storage.ts'
import { type Progress, withProgress } from './progress.ts'
import { readSettings } from './settings.ts'

export const backup = defineCommand({
  meta: {
    name: 'backup',
    description: 'Back up the database to a file, or check such a file: lethe backup verify FILE.',
  },
  args: {
    file: {
      type: 'positional',
      required: true,
      description: 'The file to write, or the word verify followed by the file to check.',
    },
    json: jsonLines,
  },
  run: async ({ args }) => {
    const [first, file, ...rest] = args._
    if (rest.length > 0 || (first !== 'verify' && file !== undefined)) {
      throw new UsageError('Name one file: lethe backup FILE, or lethe backup verify FILE.')
    }
    if (first === 'verify' && file === undefined) {
      throw new UsageError('Name the file to check: lethe backup verify FILE.')
    }
    const result = await withProgress(args.json, (progress) =>
      file === undefined ? writeTo(args.file, progress) : verify(file, progress),
    )
    if (args.json) print(JSON.stringify(result.json))
    else for (const line of result.lines) print(line)
  },
})

interface Result {
  json: object
  lines: string[]
}

async function writeTo(path: string, progress: Progress): Promise<Result> {
  const config = readSettings()
  const masterKeys = await openMasterKeys(config)
  const { place, close } = await findPlace(config)
  try {
    const connection = await reachOnly('DATABASE_URL', place)
    await checkDatabase(connection)
    const records = async function* () {
      const hasDataKeys = config.KEY_DATABASE_URL === ''
      const onProgress = progress.step('Reading the database')
      for await (const one of dump(connection, { hasDataKeys, onProgress })) {
        // Otherwise a wrong master key would be noticed only at a restore.
        if (one.kind === 'schema') await refuseOtherKey(connection, masterKeys)
        yield one
      }
    }
    const { bytes, end } = await writeBackup(path, masterKeys, records())
    const counts = countsOf(end.rows)
    return {
      json: { file: path, bytes, ...counts },
      lines: [
        `Wrote ${path} (${megabytes(bytes)}): ${inWords(counts)}.`,
        'It does not contain recordings, the ledger of erasures or the master key: see docs/backup.md.',
      ],
    }
  } finally {
    await close()
  }
}

async function refuseOtherKey(connection: DbAddress, masterKeys: MasterKeys): Promise<void> {
  const db = connect({ connection, poolSize: 1 })
  await readInstanceSecrets(db.sql, masterKeys).finally(() => db.end())
}

/** Restores into a temporary database and compares the ledger, only reading the blob store. */
async function verify(path: string, progress: Progress): Promise<Result> {
  const config = readSettings()
  const read = await openBackup(
    path,
    await openMasterKeys(config),
    progress.step('Restoring into a temporary database'),
  )
  const folder = await newFolder(config)
  try {
    const temporary = await openTemporary(config, folder)
    try {
      const { createdAt, rows } = await load(temporary.address, read.records)
      const { persons, browsers } = await rehearseLedger(config, temporary.address, progress)
      const counts = countsOf(rows)
      return {
        json: { file: path, createdAt, ...counts, erasedAgain: { persons, browsers } },
        lines: [
          `The backup of ${createdAt} can be restored: ${inWords(counts)}.`,
          `A restore would erase again: ${persons} persons, and ${browsers} browsers without a person.`,
        ],
      }
    } finally {
      await temporary.close()
    }
  } finally {
    await read.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Uses the embedded PostgreSQL or, if it is not installed, the server of DATABASE_URL. */
async function openTemporary(
  config: Config,
  folder: string,
): Promise<{ address: DbAddress; close(): Promise<void> }> {
  try {
    return await openEmbedded({ dataDir: folder })
  } catch (error) {
    if (!(error instanceof EmbeddedMissing) || config.DATABASE_URL === '') throw error
  }
  const server = await reachOnly('DATABASE_URL', config.DATABASE_URL)
  const { client, end } = await connectOne(server)
  const database = `lethe_verify_${randomBytes(6).toString('hex')}`
  try {
    await client.query(`create database ${database} template template0 encoding 'UTF8'`)
  } catch (error) {
    await end()
    if ((error as { code?: string }).code !== noRight) throw error
    throw new BackupRefused(
      'The check needs a temporary database: give the role of DATABASE_URL the right CREATEDB, or install the embedded PostgreSQL (npm install without --omit=optional).',
    )
  }
  return {
    address: { ...server, database },
    async close() {
      await client.query(`drop database ${database} with (force)`)
      await end()
    },
  }
}

const noRight = '42501'

async function rehearseLedger(
  config: Config,
  place: DbAddress,
  { step }: Progress,
): Promise<Reapplied> {
  const onProgress = step('Comparing with the ledger of erasures')
  // The data keys are in the temporary database, or not in the backup at all.
  const settings = { ...config, KEY_DATABASE_URL: '' }
  const opened = await openAt(settings, { place, close: async () => {} })
  let reapplied: Reapplied | undefined
  try {
    await withErasure(opened, async ({ options }) => {
      const rehearsed = { options: { ...options, blobs: unchanging(options.blobs) } }
      reapplied = await compareLedger(opened, rehearsed, false, onProgress)
    })
  } finally {
    await opened.close()
  }
  return reapplied as Reapplied
}

const startOfName = 'verify-'
const abandonedSeconds = 3_600

/** Creates a folder in DATA_DIR. Removes what killed checks left there. */
async function newFolder({ DATA_DIR }: Config): Promise<string> {
  const home = resolve(DATA_DIR)
  await makeDirectories(home)
  for (const name of (await readdir(home)).filter((one) => one.startsWith(startOfName))) {
    const { mtimeMs } = await stat(join(home, name))
    if (Date.now() - mtimeMs < abandonedSeconds * 1_000) continue
    await rm(join(home, name), { recursive: true, force: true })
  }
  return mkdtemp(join(home, startOfName))
}

export interface Counts {
  persons: number
  sessions: number
  chunks: number
  deletionJobs: number
}

export function countsOf(rows: Record<string, number>): Counts {
  const of = (table: string) => rows[`public.${table}`] ?? 0
  return {
    persons: of('persons'),
    sessions: of('sessions'),
    chunks: of('chunks'),
    deletionJobs: of('deletion_jobs'),
  }
}

export function inWords({ persons, sessions, chunks, deletionJobs }: Counts): string {
  return `${persons} persons, ${sessions} sessions, ${chunks} chunks, ${deletionJobs} deletion jobs`
}

function megabytes(bytes: number): string {
  return `${Math.max(0.1, bytes / 1_000_000).toFixed(1)} MB`
}
