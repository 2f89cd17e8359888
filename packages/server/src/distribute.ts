import { DatabaseRefused, holdMigrations } from './migrate.ts'
import { connectOne, type DbOptions, raw, type Sql } from './sql.ts'

/*
 * On Citus all rows of a project are on one node, chosen by the project's id; the statements are the
 * same as on one PostgreSQL. Tables that are in neither list stay on the coordinator: members, signing
 * keys, migrations.
 */

/** Tables that are copied to every node: other tables refer to them, or they have a single row. */
export const everywhere = [
  'projects',
  'keys',
  'project_secrets',
  'identity_keys',
  'instance',
  'ledger_state',
  'purges',
]

/** Tables distributed by project. The others are placed where the first one is. */
export const byProject = [
  'deletion_jobs',
  'persons',
  'person_search',
  'identified_persons',
  'browsers',
  'person_browsers',
  'browser_keys',
  'sessions',
  'chunks',
  'session_notes',
  'session_links',
  'deletion_attempts',
  'receipt_chains',
  'receipts',
  'erased_persons',
  'job_purges',
  'ledger_entries',
  'withdrawals',
  'search_segments',
  'search_shares',
  'search_segment_grams',
  'webhooks',
  'webhook_deliveries',
  'ingest_usage',
  'suppressions',
  'stray_blobs',
  'blob_comparisons',
]

/**
 * Triggers that check what the statements ensure. Citus allows no triggers on distributed tables; the
 * tests run with them on PostgreSQL.
 */
const checks = [
  { table: 'deletion_jobs', name: 'deletion_jobs_flag' },
  { table: 'persons', name: 'persons_flag_updated' },
  { table: 'persons', name: 'persons_flag_deleted' },
  { table: 'persons', name: 'persons_flag_inserted' },
]

/** The number of nodes with rows of projects; undefined unless our tables are distributed by Citus. */
export async function readNodes(sql: Sql): Promise<number | undefined> {
  if (!(await isCitus(sql))) return undefined
  const [cluster] = await sql<{ nodes: number; isDistributed: boolean }>`
    select count(*)::integer as nodes,
      exists (select from pg_dist_partition where logicalrelid = 'deletion_jobs'::regclass) as "isDistributed"
    from pg_dist_node where shouldhaveshards and isactive`
  return cluster?.isDistributed ? cluster.nodes : undefined
}

async function isCitus(sql: Sql): Promise<boolean> {
  const [found] = await sql<{ isCitus: boolean }>`
    select to_regclass('pg_dist_partition') is not null as "isCitus"`
  return found?.isCitus ?? false
}

/** After migrations: distributes new tables if the others are distributed. */
export async function distributeNew(connection: DbOptions['connection']): Promise<void> {
  const { sql, end } = await connectOne(connection)
  const nodes = await readNodes(sql).finally(end)
  if (nodes !== undefined) await distribute(connection)
}

/**
 * Distributes the tables that are not distributed yet over the nodes of a Citus cluster, in one
 * transaction. Returns their names.
 */
export async function distribute(connection: DbOptions['connection']): Promise<string[]> {
  const { sql, client, end } = await connectOne(connection)
  try {
    await client.query('begin')
    await holdMigrations(sql)
    const missing = await findUndistributed(sql)
    if (missing.length > 0) {
      for (const { table, name } of checks) {
        await sql`drop trigger if exists ${raw(name)} on ${raw(table)}`
      }
      const keys = await takeForeignKeys(sql)
      for (const { name } of missing.filter(({ name }) => everywhere.includes(name))) {
        await sql`select create_reference_table(${name})`
      }
      for (const { name } of missing.filter(({ name }) => byProject.includes(name))) {
        const [first] = byProject
        const together = name === first ? 'none' : first
        await sql`select create_distributed_table(${name}, 'project_id', colocate_with => ${together})`
      }
      for (const { table, name, definition } of keys) {
        await sql`alter table ${raw(table)} add constraint ${raw(name)} ${raw(definition)}`
      }
    }
    await planWithValues(sql)
    await placeSearch(sql)
    await client.query('commit')
    // The limit that our connections set applies only to the coordinator.
    await sql`
      select run_command_on_workers(
        format('alter database %I set lock_timeout = %L', current_database(), '2s'))`
    return missing.map(({ name }) => name)
  } finally {
    await end()
  }
}

async function findUndistributed(sql: Sql): Promise<{ name: string }[]> {
  if (!(await isCitus(sql))) {
    throw new DatabaseRefused(
      'The database in DATABASE_URL is not a Citus cluster: it lacks the extension citus. See docs/scaling.md.',
    )
  }
  const names = [...everywhere, ...byProject]
  return sql<{ name: string }>`
    select name
    from unnest(${names}::text[]) with ordinality as our(name, place)
    where to_regclass(name) is not null
      and not exists (
        select from pg_dist_partition p
        where p.logicalrelid = to_regclass(name) and p.partmethod in ('h', 'n') and p.repmodel = any ('{s,t}'))
    order by place`
}

/** Our functions use generic plans; Citus needs plans with the values. */
async function planWithValues(sql: Sql): Promise<void> {
  const functions = await sql<{ name: string }>`
    select oid::regprocedure::text as name
    from pg_proc
    where pronamespace = 'public'::regnamespace
      and 'plan_cache_mode=force_generic_plan' = any(proconfig)`
  for (const { name } of functions) {
    await sql`alter function ${raw(name)} reset plan_cache_mode`
  }
}

/**
 * Runs the search function on the node of its project, in one transaction there. On the coordinator
 * each of its statements would have another snapshot, and persons that are being indexed could be
 * missing from all of them.
 */
async function placeSearch(sql: Sql): Promise<void> {
  await sql`
    select create_distributed_function(
      page::regprocedure, 'in_project_id', colocate_with => ${byProject[0]})
    from (values
      ('search_page(integer, text, bigint, integer, integer, integer)')
    ) as ours(page)
    where not exists (
      select from pg_dist_object
      where classid = 'pg_proc'::regclass and objid = to_regprocedure(page)
        and distribution_argument_index is not null)`
}

interface ForeignKey {
  table: string
  name: string
  definition: string
}

/** Drops all our foreign keys, to be added again: until all are moved, they would join two kinds of tables. */
async function takeForeignKeys(sql: Sql): Promise<ForeignKey[]> {
  const keys = await sql<ForeignKey>`
    select conrelid::regclass::text as table, quote_ident(conname) as name,
      pg_get_constraintdef(oid) as definition
    from pg_constraint
    where contype = 'f' and connamespace = 'public'::regnamespace and conparentid = 0
    order by conrelid::regclass::text, conname`
  for (const { table, name } of keys) {
    await sql`alter table ${raw(table)} drop constraint ${raw(name)}`
  }
  return keys
}
