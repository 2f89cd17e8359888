import { existsSync, readdirSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import { type Config, SettingRefused } from '../src/config.ts'
import { readLedgerHealth, readSignedUnder } from '../src/erasure/ledger-store.ts'
import { readInstanceSecrets } from '../src/members/secret.ts'
import { checkDatabase, isUpToDate, newestMigration } from '../src/migrate.ts'
import { readFacts } from '../src/operations/facts.ts'
import { openCountries } from '../src/recordings/countries.ts'
import { connect, type Db, type DbAddress } from '../src/sql.ts'
import { json, print, printTable } from './command.ts'
import {
  clockSecondsAllowed,
  examineKeyDatabase,
  examineListening,
  examineNodes,
  examinePublicUrl,
  examineSecretFiles,
  examineTransactions,
  type Finding,
  type Note,
} from './doctor-checks.ts'
import { findPlace, reachOnly } from './open.ts'
import { blobsOptions, openMasterKeys } from './open-storage.ts'
import { wordsFor } from './report.ts'
import { readSettings } from './settings.ts'

const diskBytesWanted = 1_000_000_000
const connectionsWanted = 20

export const doctor = defineCommand({
  meta: {
    name: 'doctor',
    description: 'Check the settings, database, blob store and everything else Lethe needs.',
  },
  args: { json },
  run: async ({ args }) => {
    const findings = await examine()
    if (args.json) print(JSON.stringify({ findings }))
    else printTable(findings, { state: 'STATE', check: 'CHECK', words: '' })
    const failed = findings.filter(({ state }) => state === 'failed').length
    if (failed > 0) throw new DoctorFailed(`${failed} of ${findings.length} checks failed.`)
  },
})

/** The command exits with 1 after it has printed the findings. */
class DoctorFailed extends SettingRefused {}

async function examine(): Promise<Finding[]> {
  const findings: Finding[] = []
  const note: Note = (check, state, words) => findings.push({ check, state, words })
  const attempt = async (check: string, work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      note(check, 'failed', wordsFor(error as Error))
    }
  }
  let config: Config | undefined
  await attempt('settings', async () => {
    config = readSettings()
    note('settings', 'ok', 'All settings can be read; `lethe config` shows them.')
    examineAddress(config, note)
  })
  if (!config) return findings
  const settings = config
  await attempt('secret files', () => examineSecretFiles(note))
  await attempt('listening', () => examineListening(settings, note))
  await attempt('public address', () => examinePublicUrl(settings, note))
  await attempt('disk', () => examineDisk(settings, note))
  await attempt('blob store', () => examineStore(settings, note))
  if (settings.COUNTRY_DATABASE !== '') {
    await attempt('countries', async () => {
      await openCountries(settings.COUNTRY_DATABASE)
      note('countries', 'ok', 'COUNTRY_DATABASE can be read.')
    })
  }
  await attempt('database', () => examineDatabase(settings, note, attempt))
  return findings
}

function examineAddress({ PUBLIC_URL, HOST, TRUST_PROXY }: Config, note: Note): void {
  const isLoopback = /^(?:127\.|localhost$|::1$)/.test(HOST)
  const isHttps = PUBLIC_URL.startsWith('https:')
  if (PUBLIC_URL === '' && !isLoopback) {
    note(
      'address',
      'warning',
      'PUBLIC_URL is not set: set it to the public address of the service.',
    )
  } else if (isHttps && TRUST_PROXY === 0) {
    note(
      'address',
      'warning',
      'PUBLIC_URL is https, so there is a proxy, but TRUST_PROXY is 0, so limits per address count all clients as one. Set TRUST_PROXY to 1.',
    )
  } else if (TRUST_PROXY !== 0 && PUBLIC_URL === '') {
    note(
      'address',
      'warning',
      'TRUST_PROXY is set but PUBLIC_URL is not. Without a proxy, clients can claim any address. Set PUBLIC_URL, or set TRUST_PROXY to 0.',
    )
  } else note('address', 'ok', PUBLIC_URL || `${HOST} can be reached from this machine only.`)
}

async function examineDisk({ DATA_DIR }: Config, note: Note): Promise<void> {
  const old = oldDatabases(resolve(DATA_DIR))
  if (old.length > 0) {
    const words = `${old.join(', ')} in DATA_DIR may hold people who were erased: delete what you no longer need.`
    note('old databases', 'warning', words)
  }
  const { bavail, bsize } = await statfs(resolve(DATA_DIR)).catch(() => statfs('.'))
  const free = bavail * bsize
  const words = `${Math.round(free / 1_000_000)} MB free for DATA_DIR`
  if (free < diskBytesWanted) note('disk', 'warning', `${words}: make room.`)
  else note('disk', 'ok', `${words}.`)
}

/** Databases that an upgrade or a restore left behind. */
function oldDatabases(home: string): string[] {
  if (!existsSync(home)) return []
  return readdirSync(home).filter((name) => /^postgres\.(?:old|lost)/.test(name))
}

async function examineStore(config: Config, note: Note): Promise<void> {
  const blobs = await openBlobs(blobsOptions(config))
  try {
    const remarks = await blobs.check()
    const more = remarks.length > 0 ? ` The server says: ${remarks.join(', ')}.` : ''
    note('blob store', 'ok', `A blob was written, read, listed and deleted.${more}`)
  } finally {
    blobs.close()
  }
}

type Attempt = (check: string, work: () => Promise<void>) => Promise<void>

async function examineDatabase(config: Config, note: Note, attempt: Attempt): Promise<void> {
  const { place, close } = await findPlace(config)
  try {
    const connection = await reachOnly('DATABASE_URL', place)
    const { version, encoding } = await checkDatabase(connection)
    note('database', 'ok', `PostgreSQL ${version}, ${encoding}, takes writes.`)
    const db = connect({ connection, poolSize: 2 })
    try {
      await examineConnections(db, connection, note)
      await attempt('transactions', () => examineTransactions(db, note))
      await attempt('key database', () => examineKeyDatabase(config, connection, note))
      if (!(await isMigrated(db, note))) return
      await attempt('nodes', () => examineNodes(db, note))
      await attempt('master key', () => examineMasterKey(config, db, note))
      await attempt('workers', () => examineWork(db, note))
      await attempt('ledger', () => examineLedger(db, note))
    } finally {
      await db.end()
    }
  } finally {
    await close()
  }
}

async function examineConnections(db: Db, { pooler }: DbAddress, note: Note): Promise<void> {
  const [row] = await db.sql<{ left: number; timeout: string; now: string }>`
    select current_setting('max_connections')::int
        - (select count(*)::int from pg_stat_activity where backend_type = 'client backend')
        as "left",
      current_setting('statement_timeout') as timeout, clock_timestamp() as now`
  const { left, timeout, now } = row as NonNullable<typeof row>
  if (left < connectionsWanted) {
    note('connections', 'warning', `Only ${left} are free: raise max_connections, or use a pooler.`)
  } else note('connections', 'ok', `${left} are free.`)
  if (pooler) {
    const statements = pooler === 'named' ? 'are used' : 'are not used'
    const words = `Connected through a pooler; prepared statements ${statements}.`
    if (timeout === '0') note('pooler', 'warning', `${words} Set statement_timeout on the role.`)
    else note('pooler', 'ok', words)
  }
  const seconds = Math.abs(Date.parse(now) - Date.now()) / 1_000
  if (seconds > clockSecondsAllowed) {
    note(
      'clocks',
      'warning',
      `The clocks of this machine and the database differ by ${Math.round(seconds)} s: synchronize them.`,
    )
  } else note('clocks', 'ok', 'This machine and the database agree.')
}

async function isMigrated(db: Db, note: Note): Promise<boolean> {
  const isDone = await isUpToDate(db.sql)
  const [rights] = await db.sql<{ are: boolean }>`
    select has_database_privilege(current_database(), 'create')
      and has_schema_privilege('public', 'create') as "are"`
  if (isDone) note('migrations', 'ok', `The newest is ${newestMigration()}.`)
  else if (!rights?.are) {
    const words =
      'The user in DATABASE_URL lacks rights: it has to have CREATE on the database and on its schema public.'
    note('migrations', 'failed', words)
  } else note('migrations', 'warning', 'Some are not applied yet; the next start applies them.')
  return isDone
}

async function examineMasterKey(config: Config, db: Db, note: Note): Promise<void> {
  const file = join(resolve(config.DATA_DIR), 'keys', 'master-key')
  const isInFile = config.MASTER_KEY === '' && config.MASTER_KEY_COMMAND === ''
  if (isInFile && !existsSync(file)) {
    note('master key', 'warning', `There is none in ${file} yet; the first start creates it.`)
    return
  }
  const masterKeys = await openMasterKeys(config)
  await readInstanceSecrets(db.sql, masterKeys)
  const isSigned = (await readSignedUnder(db.sql)) === masterKeys.current.id
  if (masterKeys.byId.size > 1 && !isSigned) {
    const words = 'The ledger is not yet signed with the first master key: keep the others.'
    note('master key', 'warning', words)
  } else note('master key', 'ok', 'It decrypts the secrets of this installation.')
}

async function examineWork(db: Db, note: Note): Promise<void> {
  const facts = await readFacts(db.sql)
  const { workerSeenSeconds, stuck, failed, oldestOpenSeconds, lostChunks } = facts
  const seen = Math.round(workerSeenSeconds)
  if (workerSeenSeconds > 60) {
    note('workers', 'warning', 'None is running: start `lethe worker` or `lethe serve`.')
  } else note('workers', 'ok', `One looked for work ${seen} s ago.`)
  if (lostChunks > 0) {
    const words = `${lostChunks} parts of recordings (chunks) are missing in the blob store: restore them from a copy. \`lethe recordings check\` lists their sessions.`
    note('recordings', 'warning', words)
  }
  if (failed > 0) {
    note(
      'erasures',
      'failed',
      `${failed} failed after all attempts: see \`lethe jobs list --status failed\`.`,
    )
  } else if (stuck > 0) note('erasures', 'warning', `${stuck} are due but not being worked on.`)
  else note('erasures', 'ok', `The oldest open one is ${Math.round(oldestOpenSeconds)} s old.`)
}

async function examineLedger(db: Db, note: Note): Promise<void> {
  const { entries, refused, missing } = await readLedgerHealth(db.sql)
  if (missing > 0 || refused > 0) {
    note(
      'ledger',
      'failed',
      `${missing} entries are missing and ${refused} are not genuine: see docs/erasure.md.`,
    )
  } else note('ledger', 'ok', `${entries} entries, none missing.`)
}
