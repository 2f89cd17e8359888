import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectOne, type DbOptions } from './sql.ts'

const folder = join(import.meta.dirname, '../migrations')

/** Any number that nothing else of ours uses for an advisory lock. */
const migrationLock = 7_105_101

/** The database is not one that Lethe can run on; the message is for an operator. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}

export interface DatabaseFacts {
  /** As in `18.4`. */
  version: string
  encoding: string
  locale: string
}

/** What a database holds: everything but the browsers' data keys, or those (KEY_DATABASE_URL), or both. */
export type Schema = 'main' | 'keys'

/**
 * Brings a schema up to date, each migration in a transaction, under a lock that lets one process
 * at a time do it. A migration that was applied and has changed since is refused, as is a database
 * that is newer than this version of Lethe.
 */
export async function migrate(
  connection: DbOptions['connection'],
  schema: Schema = 'main',
): Promise<{ applied: string[] }> {
  const { sql, client, end } = await connectOne(connection)
  try {
    await sql`select pg_advisory_lock(${migrationLock})`
    await client.query(`
      create table if not exists migrations (
        name       text primary key,
        sha256     text not null,
        applied_at timestamptz not null default now()
      )`)
    const known = (
      await sql<{ name: string; sha256: string }>`select name, sha256 from migrations`
    ).filter(({ name }) => name.startsWith('keys/') === (schema === 'keys'))
    const files = migrationFiles(schema)
    const unknown = known.find(({ name }) => !files.some((file) => file.name === name))
    if (unknown) {
      throw new DatabaseRefused(
        `The database was migrated by a newer version of Lethe (${unknown.name}); start that one.`,
      )
    }
    const applied: string[] = []
    for (const { name, text, sha256 } of files) {
      const earlier = known.find((one) => one.name === name)
      if (earlier && earlier.sha256 !== sha256) {
        throw new DatabaseRefused(`The migration ${name} is another one than the database has.`)
      }
      if (earlier) continue
      await client.query('begin')
      await client.query(text)
      await sql`insert into migrations (name, sha256) values (${name}, ${sha256})`
      await client.query('commit')
      applied.push(name)
    }
    return { applied }
  } finally {
    // Ends the lock too, and rolls back what a failed migration began.
    await end()
  }
}

function migrationFiles(schema: Schema): { name: string; text: string; sha256: string }[] {
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

/** Refuses a database that Lethe cannot run on, and answers what it is. */
export async function checkDatabase(connection: DbOptions['connection']): Promise<DatabaseFacts> {
  const { sql, end } = await connectOne(connection, 5)
  try {
    const [facts] = await sql<DatabaseFacts & { number: number; standby: boolean }>`
      select current_setting('server_version') as version,
        current_setting('server_version_num')::int as number,
        pg_encoding_to_char(encoding) as encoding, datcollate as locale,
        pg_is_in_recovery() as standby
      from pg_database
      where datname = current_database()`
    const { number, standby, ...rest } = facts as NonNullable<typeof facts>
    if (number < 150_000 || number >= 190_000) {
      throw new DatabaseRefused(
        `DATABASE_URL is a PostgreSQL ${rest.version}; Lethe runs on 15 to 18.`,
      )
    }
    if (rest.encoding !== 'UTF8') {
      throw new DatabaseRefused(
        `The database of DATABASE_URL has the encoding ${rest.encoding}; create one with encoding UTF8. (Any locale will do: Lethe folds case by itself.)`,
      )
    }
    if (standby) throw new DatabaseRefused('DATABASE_URL is a read-only standby.')
    return rest
  } finally {
    await end()
  }
}

/** What signs cursors, the same for every process on this database. */
export async function readCursorKey(connection: DbOptions['connection']): Promise<Buffer> {
  const { sql, end } = await connectOne(connection, 5)
  try {
    const [row] = await sql<{ key: Buffer }>`select cursor_key as key from instance`
    return (row as { key: Buffer }).key
  } finally {
    await end()
  }
}
