import type { Sql } from '../sql.ts'

export interface Table {
  /** Quoted, with its schema. */
  name: string
  /** Quoted, without generated columns. */
  columns: string[]
  bytes: number
}

/** Lists all tables of the database, each after those that its foreign keys refer to. */
export async function listTables(sql: Sql): Promise<Table[]> {
  const tables = await sql<Table & { id: string; refersTo: string[] }>`
    select c.oid::text as id, format('%I.%I', n.nspname, c.relname) as name,
      array(
        select quote_ident(attname) from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
        order by attnum) as columns,
      pg_table_size(c.oid)::float8 as bytes,
      array(
        select confrelid::text from pg_constraint
        where conrelid = c.oid and contype = 'f' and confrelid <> c.oid) as "refersTo"
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition
      and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
      and not exists (
        select from pg_depend
        where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
    order by name`
  const sorted = new Map<string, Table>()
  while (sorted.size < tables.length) {
    const next = tables.filter(
      ({ id, refersTo }) => !sorted.has(id) && refersTo.every((one) => sorted.has(one)),
    )
    if (next.length === 0) throw new Error('The foreign keys of the tables form a cycle.')
    for (const { id, name, columns, bytes } of next) sorted.set(id, { name, columns, bytes })
  }
  return [...sorted.values()]
}
