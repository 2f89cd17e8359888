/*
 * What the tests add to the product's database: a clock that the test moves, a history of all
 * writes, breakpoints within statements, and a saved state.
 */

/** Tables whose changes are recorded in the history. */
const watchedTables = [
  ...['persons', 'browsers', 'person_browsers', 'sessions', 'chunks', 'deletion_jobs'],
]

/** In the order in which rows can be restored. */
const tables = [
  ...[
    'deletion_jobs',
    'persons',
    'person_search',
    'identified_persons',
    'browsers',
    'browser_keys',
    'person_browsers',
  ],
  ...['sessions', 'chunks', 'deletion_attempts', 'erased_persons', 'receipt_chains', 'receipts'],
  ...['ledger_entries', 'withdrawals', 'test_clock'],
]

/**
 * The first keys of the advisory locks used as breakpoints; the second key is a backend. A
 * statement alternates between the two kinds, so it stops at the next one while this is locked
 * again.
 */
export const breakpointKinds = [4_711, 4_712]

/**
 * Where a statement stops while the breakpoints are locked: after its reads, before a write. If it
 * updates a row, it has locked that row.
 */
const stoppedWrites = {
  insert: ['persons', 'person_browsers', 'sessions', 'chunks', 'deletion_jobs', 'receipts'],
  update: ['persons', 'browsers', 'sessions', 'chunks', 'deletion_jobs'],
}

const emptied = [...tables].reverse().map((table) => `delete from ${table};`)

/** Deletes everything. Needs a connection that fires no triggers, like the next two. */
export const clearing = `
  ${emptied.join('\n')}
  insert into test_clock values (date_trunc('milliseconds', clock_timestamp()));
  update projects set retention_days = default, identified_days = default;
  update ledger_state set last_number = 0, compared_to = 0, compared_at = null, is_taken_over = true;
  delete from history;`

/** Saves the state that `restoring` restores. */
export const keeping = [...tables, 'ledger_state']
  .map((table) => `delete from planted.${table}; insert into planted.${table} table ${table};`)
  .join('\n')

/** Restores the saved state. */
export const restoring = 'call restore_planted()'

// A procedure, so that the plans of its statements are cached.
const restorer = `
  create procedure restore_planted() language plpgsql as $$
  begin
    ${emptied.join('\n')}
    ${tables.map((table) => `insert into ${table} table planted.${table};`).join('\n')}
    update ledger_state s set last_number = p.last_number, compared_to = p.compared_to
    from planted.ledger_state p;
    delete from history;
  end $$;`

/** Autovacuum is off, because it would take locks. */
export const cleaning = `vacuum history, ${tables.join()}`

export async function prepareDatabase(query: (text: string) => Promise<unknown>, database: string) {
  await query(`
    create schema planted;
    create table test_clock (at timestamptz(3) not null);
    insert into test_clock values (date_trunc('milliseconds', clock_timestamp()));
    create or replace function app_now() returns timestamptz
      language sql volatile as 'select at from test_clock';
    create table history (
      number bigint generated always as identity, at timestamptz, pid integer, place text, op text,
      old jsonb, new jsonb);
    create function keep_history() returns trigger language plpgsql as $$
    begin
      insert into history (at, pid, place, op, old, new) values (
        app_now(), pg_backend_pid(), tg_table_name, tg_op,
        case when tg_op <> 'INSERT' then to_jsonb(old) end,
        case when tg_op <> 'DELETE' then to_jsonb(new) end);
      return null;
    end $$;
    ${[...tables, 'ledger_state']
      .map((table) => `create table planted.${table} as table ${table} with no data;`)
      .join('\n')}
    ${restorer}`)
  for (const table of watchedTables) {
    await query(`
      create trigger keep_history after insert or update or delete on ${table}
        for each row execute function keep_history()`)
  }
  await query(`
    create function stop_at_breakpoint() returns trigger language plpgsql as $$
    declare
      kind integer := coalesce(nullif(current_setting('lethe.breakpoint', true), '')::integer, ${breakpointKinds[0]});
    begin
      perform pg_advisory_lock(kind, pg_backend_pid());
      perform pg_advisory_unlock(kind, pg_backend_pid());
      perform set_config('lethe.breakpoint', (${breakpointKinds.join(' + ')} - kind)::text, false);
      return new;
    end $$;`)
  for (const [write, places] of Object.entries(stoppedWrites)) {
    for (const table of places) {
      await query(`
        create trigger stop_at_breakpoint_of_${write} before ${write} on ${table}
          for each row execute function stop_at_breakpoint()`)
    }
  }
  // Only actors take locks here, and commits need not be durable.
  await query(`
    do $$
    declare
      one regclass;
    begin
      for one in
        select oid from pg_class
        where relkind = 'r' and relnamespace = 'public'::regnamespace
      loop
        execute format('alter table %s set (autovacuum_enabled = false)', one);
      end loop;
    end $$;`)
  await query(`alter database ${database} set synchronous_commit = off`)
  await query(`alter database ${database} set deadlock_timeout = '20ms'`)
  await query("set synchronous_commit = off; set client_min_messages = 'warning'")
}
