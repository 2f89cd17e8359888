import { to as copyTo } from 'pg-copy-streams'
import { connectOne, type DbOptions, type Sql } from '../sql.ts'
import {
  type BackupRecord,
  BackupRefused,
  type Migration,
  type OnProgress,
  type Sequence,
} from './records.ts'
import { listTables } from './tables.ts'

const partBytes = 1_000_000

export interface DumpOptions {
  hasDataKeys?: boolean
  onProgress?: OnProgress
}

/**
 * Reads all rows of a database as of one moment, in the text format of COPY, which every version of
 * PostgreSQL can read. Does not block writes.
 */
export async function* dump(
  connection: DbOptions['connection'],
  { hasDataKeys = true, onProgress = () => {} }: DumpOptions = {},
): AsyncGenerator<BackupRecord> {
  const { sql, client, end } = await connectOne(connection)
  try {
    await client.query('begin isolation level repeatable read read only')
    const tables = await listTables(sql)
    if (!tables.some(({ name }) => name === 'public.migrations')) {
      throw new BackupRefused('There is nothing to back up: the database has no tables of Lethe.')
    }
    yield { kind: 'schema', ...(await readSchema(sql)), hasDataKeys }
    const total = tables.reduce((sum, { bytes }) => sum + bytes, 0)
    const rows: Record<string, number> = {}
    let before = 0
    for (const { name, columns, bytes: estimate } of tables) {
      yield { kind: 'table', name, columns }
      const copy = client.query(
        copyTo(`copy (select ${columns.join(', ')} from ${name}) to stdout`),
      )
      let copied = 0
      for await (const bytes of inParts(copy)) {
        yield { kind: 'rows', bytes }
        copied += bytes.length
        onProgress(before + Math.min(copied, estimate), total)
      }
      rows[name] = copy.rowCount
      before += estimate
      onProgress(before, total)
    }
    yield { kind: 'end', rows, sequences: await readSequences(sql) }
  } finally {
    await end()
  }
}

async function readSchema(sql: Sql): Promise<{ createdAt: string; migrations: Migration[] }> {
  const [now] = await sql<{ createdAt: string }>`select now() as "createdAt"`
  const migrations = await sql<Migration>`select name, sha256 from migrations order by name`
  return { createdAt: now?.createdAt as string, migrations }
}

async function* inParts(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let part: Buffer[] = []
  let length = 0
  for await (const bytes of stream) {
    part.push(bytes)
    length += bytes.length
    if (length < partBytes) continue
    yield Buffer.concat(part)
    part = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(part)
}

/** Sequences are not part of the snapshot. They only increase, so they are read last. */
function readSequences(sql: Sql): Promise<Sequence[]> {
  return sql<Sequence>`
    select format('%I.%I', schemaname, sequencename) as name,
      coalesce(last_value, start_value)::text as last, last_value is not null as "isCalled"
    from pg_sequences
    where schemaname !~ '^pg_'
    order by name`
}
