import { DatabaseRefused, holdMigrations } from './migrate.ts'
import { connectOne, type DbOptions, raw, type Sql } from './sql.ts'

/*
 * On Citus the rows of a project lie together on one node, found by the project's id; statements
 * are the same as on one PostgreSQL. Tables that no list here names stay on the coordinator: members,
 * signing keys, migrations.
 */

/** On every node, whole: what rows of projects refer to, and what is one row for all of them. */
export const everywhere = [
  'projects',
  'keys',
  'project_secrets',
  'identity_keys',
  'instance',
  'ledger_state',
  'purges',
]

/** The first of them decides where the others lie. */
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
 * Triggers that check what the statements see to: Citus allows none on what it distributes. The tests
 * of the product run with them on PostgreSQL.
 */
const checks = [
  { table: 'deletion_jobs', name: 'deletion_jobs_flag' },
  { table: 'persons', name: 'persons_flag_updated' },
  { table: 'persons', name: 'persons_flag_deleted' },
  { table: 'persons', name: 'persons_flag_inserted' },
]

/** The number of nodes with rows of projects, where the database is a Citus cluster with our tables on it. */
export async function readNodes(sql: Sql): Promise<number | undefined> {
  const [found] = await sql<{ isCitus: boolean }>`
    select to_regclass('pg_dist_partition') is not null as "isCitus"`
  if (!found?.isCitus) return undefined
  const [cluster] = await sql<{ nodes: number; isDistributed: boolean }>`
    select count(*)::integer as nodes,
      exists (select from pg_dist_partition where logicalrelid = 'deletion_jobs'::regclass) as "isDistributed"
    from pg_dist_node where shouldhaveshards and isactive`
  return cluster?.isDistributed ? cluster.nodes : undefined
}

/** After migrations: where the tables are spread over nodes, those that are new are too. */
export async function distributeNew(connection: DbOptions['connection']): Promise<void> {
  const { sql, end } = await connectOne(connection)
  const nodes = await readNodes(sql).finally(end)
  if (nodes !== undefined) await distribute(connection)
}

/**
 * Spreads the tables over the nodes of a Citus cluster, in one transaction, those that are not yet.
 * Returns the names of the tables it moved.
 */
export async function distribute(connection: DbOptions['connection']): Promise<string[]> {
  const { sql, client, end } = await connectOne(connection)
  try {
    await client.query('begin')
    await holdMigrations(sql)
    // A foreign key to a table that is on every node may be written by one connection at a time.
    await client.query("set local citus.multi_shard_modify_mode = 'sequential'")
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
    // The limit that our connections bring with them holds on the coordinator alone.
    await sql`
      select run_command_on_workers(
        format('alter database %I set lock_timeout = %L', current_database(), '2s'))`
    return missing.map(({ name }) => name)
  } finally {
    await end()
  }
}

async function findUndistributed(sql: Sql): Promise<{ name: string }[]> {
  const [found] = await sql<{ isCitus: boolean }>`
    select to_regclass('pg_dist_partition') is not null as "isCitus"`
  if (!found?.isCitus) {
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

/** Our functions plan their statements once for all values, where PostgreSQL does it; Citus needs these. */
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
 * A page of the search is made on the node of its project, by one transaction there: on the
 * coordinator each of its statements would see another moment, and persons that are indexed
 * meanwhile in none of them.
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

/** Takes all foreign keys of ours off, to be added again: on its way a table would stand between two kinds. */
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
