-- The only clock of the server. A test moves time by replacing this function in its own database.
create function app_now() returns timestamptz
  language sql volatile
  return date_trunc('milliseconds', clock_timestamp());

-- What belongs to this installation as a whole: one row.
create table instance (
  only_row   boolean primary key default true check (only_row),
  -- Signs cursors, so that every process accepts the cursors of every other.
  cursor_key bytea not null default decode(
    replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'),
  created_at timestamptz(3) not null default app_now()
);
insert into instance default values;

create table projects (
  id         integer primary key generated always as identity,
  name       text not null check (char_length(name) between 1 and 200),
  created_at timestamptz(3) not null default app_now()
);

create table keys (
  project_id   integer not null references projects,
  id           uuid not null default gen_random_uuid(),
  kind         text not null check (kind in ('secret', 'public')),
  name         text not null check (char_length(name) between 1 and 200),
  -- SHA-256 of the whole key text. The text itself is shown once and kept nowhere.
  hash         bytea not null unique check (octet_length(hash) = 32),
  last4        text not null check (char_length(last4) = 4),
  created_at   timestamptz(3) not null default app_now(),
  last_used_at timestamptz(3),
  expires_at   timestamptz(3),
  revoked_at   timestamptz(3),
  primary key (project_id, id)
);

create table deletion_jobs (
  project_id      integer not null references projects,
  id              uuid not null default gen_random_uuid(),
  external_id     text collate "C" not null check (char_length(external_id) between 1 and 200),
  person_id       bigint,
  keep_recordings boolean not null,
  status          text not null default 'pending'
                  check (status in ('pending', 'running', 'completed', 'failed')),
  attempts        smallint not null default 0 check (attempts between 0 and 5),
  created_at      timestamptz(3) not null default app_now(),
  started_at      timestamptz(3),
  completed_at    timestamptz(3),
  next_attempt_at timestamptz(3) not null default app_now(),
  lease_token     uuid,
  lease_until     timestamptz(3),
  primary key (project_id, id),
  check ((status = 'completed') = (completed_at is not null)),
  check ((status = 'pending') = (started_at is null)),
  check ((lease_token is null) = (lease_until is null)),
  check (lease_token is null or status = 'running'),
  -- While a job is open it says whose it is; a completed one leads to nobody.
  check (status not in ('pending', 'running') or person_id is not null),
  check (status <> 'completed' or person_id is null)
);
create unique index deletion_jobs_one_open_a_person
  on deletion_jobs (project_id, person_id) where status in ('pending', 'running');
create index deletion_jobs_by_time on deletion_jobs (project_id, created_at desc, id desc);
create index deletion_jobs_by_external_id
  on deletion_jobs (project_id, external_id, created_at desc, id desc);

-- Gives persons of one millisecond an order among themselves.
create sequence person_order;

create table persons (
  project_id      integer not null references projects,
  -- (milliseconds since 1970) << 20 | (a number of person_order): one immutable key whose order
  -- is the order of creation, so a list, a search and a cursor need no second column.
  id              bigint not null,
  external_id     text collate "C" not null check (char_length(external_id) between 1 and 200),
  properties      jsonb not null check (jsonb_typeof(properties) = 'object'),
  created_at      timestamptz(3) not null,
  updated_at      timestamptz(3) not null,
  -- Set exactly while that job is pending or running. The guard against POST and PATCH is this
  -- column and not a look at deletion_jobs: a subquery would see the snapshot from before the wait
  -- for the row's lock, and a person being deleted would be written.
  deletion_job_id uuid,
  primary key (project_id, id),
  unique (project_id, external_id),
  foreign key (project_id, deletion_job_id) references deletion_jobs,
  check (updated_at >= created_at),
  check (id >> 20 = round(extract(epoch from created_at) * 1000))
) with (fillfactor = 85);
create index persons_being_deleted
  on persons (project_id, deletion_job_id) where deletion_job_id is not null;

-- What the search looks through: the folded externalId, name and email of a person, joined by
-- U+FFFF, which the fold lets no field contain. Narrow and apart from persons, so that a change
-- of other properties does not touch it and a scan of it is cheap.
create table person_search (
  project_id integer not null,
  person_id  bigint not null,
  -- The index segment the row stands in; null: not indexed yet, found by scanning.
  segment    integer,
  text       text collate "C" not null,
  primary key (project_id, person_id),
  foreign key (project_id, person_id) references persons on delete cascade
);

-- Creates a person or merges properties into it, in one round trip.
--
-- It reads first: a request that changes nothing takes no lock and writes nothing. `outcome` is
-- created, updated, unchanged, deleting, missing (only where create_missing is false),
-- too_many_keys or too_large; the row is the person as it is then (null where there is none).
--
-- `removed` are the keys sent as null. `folded_*` are for person_search: null means not sent.
create function person_write(
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
          updated_at = greatest(app_now(), p.updated_at + interval '1 millisecond')
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

-- The limits of a person's properties, after the merge: null, too_many_keys or too_large.
create function properties_refused(properties jsonb) returns text
  language plpgsql immutable as $$
declare
  written text := properties::text;
begin
  -- A thousand keys take more than 4,000 bytes, so most objects need no counting.
  if octet_length(written) > 4000
    and (select count(*) from jsonb_object_keys(properties)) > 1000 then
    return 'too_many_keys';
  end if;
  -- jsonb prints a space after every colon and comma; those outside of strings do not count.
  if octet_length(written) > 262144
    and octet_length(written)
      - (select length(outside) - length(replace(outside, ' ', ''))
         from regexp_replace(written, '"(?:[^"\\]|\\.)*"', '', 'g') as outside) > 262144 then
    return 'too_large';
  end if;
  return null;
end $$;

-- Puts a changed name or email where the search finds it: back among the rows not indexed yet.
create function person_search_write(
  in_project_id integer, in_person_id bigint, folded_name text, folded_email text
) returns void language sql as $$
  update person_search
  set segment = null,
      text = concat_ws(
        U&'\FFFF', split_part(text, U&'\FFFF', 1),
        coalesce(folded_name, split_part(text, U&'\FFFF', 2)),
        coalesce(folded_email, split_part(text, U&'\FFFF', 3)))
  where project_id = in_project_id and person_id = in_person_id
    and (split_part(text, U&'\FFFF', 2), split_part(text, U&'\FFFF', 3)) is distinct from (
      coalesce(folded_name, split_part(text, U&'\FFFF', 2)),
      coalesce(folded_email, split_part(text, U&'\FFFF', 3)))
$$;
