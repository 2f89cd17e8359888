import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { holdMigrations, migrateTo } from '../migrate.ts'
import { connectOne, type DbOptions } from '../sql.ts'
import { type BackupRecord, BackupRefused } from './records.ts'
import { listTables } from './tables.ts'

export interface Loaded {
  /** When the backup was started. */
  createdAt: string
  /** The number of rows per table. */
  rows: Record<string, number>
}

type Session = Awaited<ReturnType<typeof connectOne>>

/**
 * Restores a backup into an empty database, in one transaction. The tables are then as they were,
 * so newer migrations must still be applied.
 *
 * Throws `BackupRefused` if the database is not empty, and `DatabaseRefused` if the backup is of a
 * newer version.
 */
export async function load(
  connection: DbOptions['connection'],
  records: AsyncIterable<BackupRecord>,
): Promise<Loaded> {
  const session = await connectOne(connection)
  try {
    await session.client.query('begin')
    // A service that starts meanwhile waits until this ends.
    await holdMigrations(session.sql)
    await refuseUnlessEmpty(session)
    const loaded = await loadInto(session, records)
    await session.client.query('commit')
    await session.client.query('analyze')
    return loaded
  } finally {
    // Rolls back what is not committed.
    await session.end()
  }
}

async function refuseUnlessEmpty({ sql }: Session): Promise<void> {
  const tables = await listTables(sql)
  if (tables.length === 0) return
  throw new BackupRefused(
    'The database is not empty, and a backup can be restored only into an empty one: name a new database in DATABASE_URL or, for the embedded database, rename the folder postgres in DATA_DIR.',
  )
}

async function loadInto(session: Session, records: AsyncIterable<BackupRecord>): Promise<Loaded> {
  const rest = records[Symbol.asyncIterator]()
  const next = async (): Promise<BackupRecord> => {
    const { value, done } = await rest.next()
    if (done) throw new Error('A backup has no end.')
    return value
  }
  let record = await next()
  try {
    if (record.kind !== 'schema') throw new Error('A backup begins with its schema.')
    const { createdAt, migrations } = record
    await migrateTo(session, migrations, 'The backup')
    await emptyAll(session)
    const rows: Record<string, number> = {}
    for (record = await next(); record.kind === 'table'; ) {
      const { name, columns } = record
      const copy = session.client.query(copyFrom(`copy ${name} (${columns.join(', ')}) from stdin`))
      await pipeline(async function* () {
        for (record = await next(); record.kind === 'rows'; record = await next()) {
          yield record.bytes
        }
      }, copy)
      rows[name] = copy.rowCount
    }
    if (record.kind !== 'end') throw new Error('A backup ends with its counts.')
    await finish(session, record, rows)
    return { createdAt, rows }
  } finally {
    await rest.return?.()
  }
}

/** The backup contains the rows that migrations insert, and what triggers did. */
async function emptyAll({ client, sql }: Session): Promise<void> {
  const names = (await listTables(sql)).map(({ name }) => name)
  await client.query(`truncate ${names.join(', ')}`)
  for (const name of names) await client.query(`alter table ${name} disable trigger user`)
}

async function finish(
  { client, sql }: Session,
  { rows: expected, sequences }: Extract<BackupRecord, { kind: 'end' }>,
  rows: Record<string, number>,
): Promise<void> {
  for (const [name, count] of Object.entries(expected)) {
    if (rows[name] !== count) throw new Error(`${name} has ${rows[name]} rows of ${count}.`)
  }
  for (const { name, last, isCalled } of sequences) {
    await sql`select setval(${name}::regclass, ${last}::bigint, ${isCalled})`
  }
  for (const { name } of await listTables(sql)) {
    await client.query(`alter table ${name} enable trigger user`)
  }
}
