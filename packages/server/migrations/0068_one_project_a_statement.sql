-- So that the same statements run where the rows of each project lie on a node of their own (Citus):
-- each works within one project, none calls a function that reads tables, and what follows of a
-- change is in the transaction's own statements and in no trigger.

-- It is the same moment for the whole of a statement that Citus sends to a node.
create or replace function app_now() returns timestamptz
  language sql stable
  return date_trunc('milliseconds', clock_timestamp());

-- An instant and some milliseconds, which no time zone changes: an addition of PostgreSQL's own may
-- depend on one, and Citus lets none be made of a column by an UPDATE.
create function later(instant timestamptz, milliseconds double precision) returns timestamptz
  language sql immutable
  return instant + milliseconds * interval '1 millisecond';

drop trigger deletion_jobs_ended on deletion_jobs;
drop function deletion_job_ended();
drop trigger deletion_jobs_audit_forgets on deletion_jobs;
drop function audit_log_forgets_person();
drop trigger deletion_jobs_purge on deletion_jobs;
drop function job_purge_due();
drop trigger person_browsers_notes on person_browsers;
drop function session_notes_of_nobody();
drop trigger person_browsers_links on person_browsers;
drop function session_links_of_nobody();
drop trigger webhook_delivery_pending on webhook_deliveries;
drop function webhook_delivery_pending();

-- As before, but for `later`.
create or replace function person_write(
  in_project_id integer, in_external_id text, set_properties jsonb, removed text[],
  folded_external_id text, folded_name text, folded_email text, create_missing boolean,
  out outcome text, out external_id text, out properties text,
  out created_at timestamptz, out updated_at timestamptz
) language plpgsql as $$
declare
  person persons;
  merged jsonb;
  moment timestamptz;
  refused text;
begin
  for attempt in 1..10 loop
    select * into person from persons p
    where p.project_id = in_project_id and p.external_id = in_external_id;

    if not found then
      if not create_missing then
        outcome := 'missing';
        return;
      end if;
      outcome := properties_refused(set_properties);
      if outcome is not null then
        return;
      end if;
      moment := app_now();
      insert into persons as p (project_id, id, external_id, properties, created_at, updated_at)
      values (
        in_project_id,
        (extract(epoch from moment) * 1000)::bigint << 20 | (nextval('person_order') & 1048575),
        in_external_id, set_properties, moment, moment)
      on conflict do nothing
      returning * into person;
      if found then
        insert into person_search (project_id, person_id, text)
        values (in_project_id, person.id, concat_ws(
          U&'\FFFF', folded_external_id, coalesce(folded_name, ''), coalesce(folded_email, '')));
        outcome := 'created';
        exit;
      end if;

    elsif person.deletion_job_id is not null then
      outcome := 'deleting';
      return;

    else
      merged := (person.properties || set_properties) - removed;
      if merged = person.properties then
        outcome := 'unchanged';
        exit;
      end if;
      outcome := properties_refused(merged);
      if outcome is not null then
        return;
      end if;
      -- Everything is decided again on the newest version of the row, which is locked by then. What
      -- no longer holds there leaves the row alone, and the next round reads what happened.
      update persons p
      set properties = (p.properties || set_properties) - removed,
          updated_at = greatest(app_now(), later(p.updated_at, 1))
      where p.project_id = in_project_id and p.id = person.id
        and p.deletion_job_id is null
        and (p.properties || set_properties) - removed <> p.properties
        and properties_refused((p.properties || set_properties) - removed) is null
      returning * into person;
      if found then
        if folded_name is not null or folded_email is not null then
          perform person_search_write(in_project_id, person.id, folded_name, folded_email);
        end if;
        outcome := 'updated';
        exit;
      end if;
    end if;
  end loop;

  if outcome is null then
    raise exception 'person_write found the person changed each time' using errcode = '40001';
  end if;
  external_id := person.external_id;
  properties := person.properties::text;
  created_at := person.created_at;
  updated_at := person.updated_at;
end $$;

-- Writes persons of one project, one after the other. What changes nothing is told as it was read.
-- With `skip_locked`, nothing is written to a person that another transaction has locked: its outcome
-- is `locked`.
create function persons_write(in_project_id integer, writes jsonb, skip_locked boolean)
  returns table (
    outcome text, external_id text, properties text, created_at timestamptz, updated_at timestamptz)
  language plpgsql as $$
declare
  one record;
begin
  for one in
    select * from jsonb_to_recordset(writes) as (
      id text, "set" jsonb, removed text[], folded text, name text, email text, creates boolean)
  loop
    -- Where there is none, all of these are null.
    select 'unchanged', p.external_id, p.properties::text, p.created_at, p.updated_at
    into outcome, external_id, properties, created_at, updated_at
    from persons p
    where p.project_id = in_project_id and p.external_id = one.id and p.deletion_job_id is null
      and (p.properties || one."set") - one.removed = p.properties;

    if not found and skip_locked then
      perform from persons p
      where p.project_id = in_project_id and p.external_id = one.id
      for no key update skip locked;
      if not found then
        perform from persons p where p.project_id = in_project_id and p.external_id = one.id;
        if found then
          outcome := 'locked';
        end if;
      end if;
    end if;

    if outcome is null then
      select w.* into outcome, external_id, properties, created_at, updated_at
      from person_write(
        in_project_id, one.id, one."set", one.removed, one.folded, one.name, one.email, one.creates) w;
    end if;
    return next;
  end loop;
end $$;

-- As before, in a language whose statements Citus plans with their values.
create or replace function person_search_write(
  in_project_id integer, in_person_id bigint, folded_name text, folded_email text
) returns void language plpgsql as $$
begin
  update person_search
  set segment = null,
      text = split_part(text, U&'\FFFF', 1)
        || U&'\FFFF' || coalesce(folded_name, split_part(text, U&'\FFFF', 2))
        || U&'\FFFF' || coalesce(folded_email, split_part(text, U&'\FFFF', 3))
  where project_id = in_project_id and person_id = in_person_id
    and (split_part(text, U&'\FFFF', 2), split_part(text, U&'\FFFF', 3)) is distinct from (
      coalesce(folded_name, split_part(text, U&'\FFFF', 2)),
      coalesce(folded_email, split_part(text, U&'\FFFF', 3)));
end $$;

-- A page of what search_persons finds.
create function search_page(
  in_project_id integer, term text, before_id bigint, page integer,
  newest_rows integer, most_rows integer
) returns table (
  id bigint, external_id text, properties text, created_at timestamptz, updated_at timestamptz)
  language plpgsql stable rows 50
  set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  found_ids constant bigint[] := array(
    select s from search_persons(in_project_id, term, before_id, page, newest_rows, most_rows) s);
begin
  return query
    select p.id, p.external_id, p.properties::text, p.created_at, p.updated_at
    from persons p
    where p.project_id = in_project_id and p.id = any(found_ids)
    order by p.id desc;
end $$;

-- How many pages the table has, wherever they are.
create function person_search_pages() returns bigint language plpgsql stable as $$
declare
  bytes bigint := pg_relation_size('person_search');
begin
  if to_regclass('pg_dist_partition') is not null then
    execute $q$
      select greatest($1, sum(citus_relation_size(logicalrelid))::bigint)
      from pg_dist_partition where logicalrelid = 'person_search'::regclass
    $q$ into bytes using bytes;
  end if;
  return bytes / 8192;
end $$;

-- Failed jobs are few beside all of them, and counted over all projects.
create index deletion_jobs_failed
  on deletion_jobs (project_id, external_id, created_at desc, id desc) where status = 'failed';
drop function failed_deletions(integer);

create or replace function erased_person_hash(in_project_id integer, in_person_id bigint)
  returns bytea language plpgsql stable as $$
begin
  return (
    select sha256(cursor_key || sha256(
      cursor_key || convert_to('erased person ' || in_project_id || ' ' || in_person_id, 'UTF8')))
    from instance);
end $$;
