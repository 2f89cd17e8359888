-- What PostgreSQL's files still hold of erased persons is taken out by a purge, in parts: one at a time,
-- whoever works on it.
create table purges (
  id            uuid primary key default gen_random_uuid(),
  started_at    timestamptz(3) not null default app_now(),
  -- Parts that are done, as in main/public.persons.
  done          text[] not null default '{}',
  claimed_until timestamptz(3),
  -- When the last part was done.
  purged_at     timestamptz(3),
  -- When each of its jobs had its statement.
  completed_at  timestamptz(3),
  check (completed_at is null or purged_at is not null)
);
create unique index purges_one_open on purges ((true)) where completed_at is null;

-- Nothing is ever kept here: a row that was deleted, and that VACUUM FULL may not remove yet, says that
-- somebody still holds on to what was deleted before.
create table if not exists purge_canary (id integer);

-- Completed jobs, and the purge that took their persons out of the files. A row comes with the
-- completion, in its transaction: what a purge finds here was deleted before it began.
create table job_purges (
  project_id integer not null,
  job_id     uuid not null,
  purge_id   uuid references purges,
  purged_at  timestamptz(3),
  -- The signed statement.
  jws        text collate "C",
  primary key (project_id, job_id),
  foreign key (project_id, job_id) references deletion_jobs,
  check ((jws is null) = (purged_at is null) and (jws is null or purge_id is not null))
);
create index job_purges_waiting on job_purges (project_id, job_id) where purge_id is null;
create index job_purges_unsigned on job_purges (purge_id) where jws is null;
insert into job_purges (project_id, job_id)
select project_id, id from deletion_jobs where status = 'completed';

create function job_purge_due() returns trigger language plpgsql as $$
begin
  insert into job_purges (project_id, job_id) values (new.project_id, new.id)
  -- Erased again, after a restored backup brought the person back.
  on conflict (project_id, job_id) do update set purge_id = null, purged_at = null, jws = null;
  return null;
end $$;
create trigger deletion_jobs_purge after update of status on deletion_jobs
  for each row when (new.status = 'completed' and old.status <> 'completed')
  execute function job_purge_due();
-- What each attempt removed. Keys are counted here alone: they are in no receipt.
alter table deletion_attempts
  add column removed_keys     bigint not null default 0,
  add column removed_sessions bigint not null default 0,
  add column removed_chunks   bigint not null default 0,
  add column removed_blobs    bigint not null default 0,
  add column removed_bytes    bigint not null default 0,
  add column removed_browsers bigint not null default 0;
