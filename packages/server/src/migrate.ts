import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectOne, type DbOptions, type Sql } from './sql.ts'

const folder = join(import.meta.dirname, '../migrations')

/** Any number that nothing else of ours uses for an advisory lock. */
const migrationLock = 7_105_101

/** The database is not one that Lethe can run on; the message is for an operator. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}

/** May pass by itself, as in a failover. */
export class DatabaseReadOnly extends DatabaseRefused {}

export interface DatabaseFacts {
  /** As in `18.4`. */
  version: string
  encoding: string
  locale: string
}

/** `main` is everything except the data keys of browsers, which KEY_DATABASE_URL may place elsewhere. */
export type Schema = 'main' | 'keys'

/**
 * Applies the missing migrations, each in a transaction that holds a lock, so that only one process at
 * a time migrates. (A session lock would stay on a pooler's connection.) Refuses a database with a
 * migration that has changed since it was applied, or that this version does not know.
 */
export async function migrate(
  connection: DbOptions['connection'],
  schema: Schema = 'main',
): Promise<{ applied: string[] }> {
  const { sql, client, end } = await connectOne(connection)
  try {
    const files = migrationFiles(schema)
    const applied: string[] = []
    for (;;) {
      await client.query('begin')
      await holdMigrations(sql)
      const next = nextMigration(files, await appliedMigrations(sql, schema))
      if (next) {
        await client.query(next.text)
        await sql`insert into migrations (name, sha256) values (${next.name}, ${next.sha256})`
      }
      await client.query('commit')
      if (!next) return { applied }
      applied.push(next.name)
    }
  } finally {
    // Rolls back a failed migration.
    await end()
  }
}

/** Prevents other migrations of this database until the transaction ends. */
export async function holdMigrations(sql: Sql): Promise<void> {
  await sql`select pg_advisory_xact_lock(${migrationLock})`
  // On Citus only one connection to a node may create a function after a change of tables, or add a
  // foreign key to a table that is on every node.
  await sql`set local citus.multi_shard_modify_mode = 'sequential'`
}

/**
 * Applies exactly these migrations to an empty database, in the session's transaction. Refuses unknown
 * or changed ones; `what` names their origin in the message.
 */
export async function migrateTo(
  { sql, client }: Pick<Awaited<ReturnType<typeof connectOne>>, 'sql' | 'client'>,
  wanted: readonly Applied[],
  what: string,
): Promise<void> {
  for (const schema of ['main', 'keys'] as const) {
    const files = migrationFiles(schema)
    nextMigration(files, wanted.filter(ofSchema(schema)), what)
    await appliedMigrations(sql, schema)
    for (const { name, text } of files) {
      if (wanted.some((one) => one.name === name)) await client.query(text)
    }
  }
}

type Migration = { name: string; text: string; sha256: string }
type Applied = { name: string; sha256: string }

async function appliedMigrations(sql: Sql, schema: Schema): Promise<Applied[]> {
  const [found] = await sql<{ there: boolean }>`
    select to_regclass('migrations') is not null as "there"`
  if (!found?.there) {
    await sql`
      create table migrations (
        name       text primary key,
        sha256     text not null,
        applied_at timestamptz not null default now()
      )`
  }
  const rows = await sql<Applied>`select name, sha256 from migrations`
  return rows.filter(ofSchema(schema))
}

const ofSchema =
  (schema: Schema) =>
  ({ name }: Applied) =>
    name.startsWith('keys/') === (schema === 'keys')

function nextMigration(
  files: Migration[],
  applied: Applied[],
  what = 'The database',
): Migration | undefined {
  const unknown = applied.find(({ name }) => !files.some((file) => file.name === name))
  if (unknown) {
    throw new DatabaseRefused(
      `${what} was migrated by a newer version of Lethe (${unknown.name}): use that version.`,
    )
  }
  const changed = files.find(({ name, sha256 }) =>
    applied.some((one) => one.name === name && one.sha256 !== sha256),
  )
  if (changed) {
    throw new DatabaseRefused(
      `Migration ${changed.name} was changed after it ran on this database: install the version of Lethe that ran it, or restore the file.`,
    )
  }
  return files.find(({ name }) => !applied.some((one) => one.name === name))
}

/** The name of the newest migration: a database that has it is up to date. */
export function newestMigration(): string {
  return migrationFiles('main').at(-1)?.name ?? ''
}

/** Whether all migrations are applied. Throws if the database has changed or unknown ones. */
export async function isUpToDate(sql: Sql): Promise<boolean> {
  const [found] = await sql<{ there: boolean }>`
    select to_regclass('migrations') is not null as "there"`
  const rows = found?.there ? await sql<Applied>`select name, sha256 from migrations` : []
  return nextMigration(migrationFiles('main'), rows.filter(ofSchema('main'))) === undefined
}

function migrationFiles(schema: Schema): Migration[] {
  const prefix = schema === 'keys' ? 'keys/' : ''
  return readdirSync(join(folder, prefix))
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => prefix + name)
    .map((name) => {
      const text = readFileSync(join(folder, name), 'utf8')
      return { name, text, sha256: createHash('sha256').update(text).digest('hex') }
    })
}

/** Refuses a database that Lethe cannot run on; returns its version and encoding. */
export async function checkDatabase(
  connection: DbOptions['connection'],
  setting = 'DATABASE_URL',
): Promise<DatabaseFacts> {
  const { sql, end } = await connectOne(connection, 5)
  try {
    const [facts] = await sql<DatabaseFacts & { number: number; isReadOnly: boolean }>`
      select current_setting('server_version') as version,
        current_setting('server_version_num')::int as number,
        pg_encoding_to_char(encoding) as encoding, datcollate as locale,
        pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly"
      from pg_database
      where datname = current_database()`
    const { number, isReadOnly, ...rest } = facts as NonNullable<typeof facts>
    if (number < 150_000 || number >= 190_000) {
      throw new DatabaseRefused(
        `The database in ${setting} is PostgreSQL ${rest.version}: Lethe works with 15 to 18.`,
      )
    }
    if (rest.encoding !== 'UTF8') {
      throw new DatabaseRefused(
        `The database in ${setting} has the encoding ${rest.encoding}: create one with encoding UTF8. (Any locale works.)`,
      )
    }
    if (isReadOnly) {
      throw new DatabaseReadOnly(
        `The database in ${setting} is read-only, perhaps a standby: set ${setting} to the primary.`,
      )
    }
    return rest
  } finally {
    await end()
  }
}

/** The key that signs cursors, the same for every process on this database. */
export async function readCursorKey(connection: DbOptions['connection']): Promise<Buffer> {
  const { sql, end } = await connectOne(connection, 5)
  try {
    const [row] = await sql<{ key: Buffer }>`select cursor_key as key from instance`
    return (row as { key: Buffer }).key
  } finally {
    await end()
  }
}
