-- What the erasure keeps beside the job that the API shows.
alter table deletion_jobs
  -- Who asked, for the dashboard: key:<id>, member:<id>, command (the command line) or ledger.
  add column requested_by text collate "C" not null default 'command'
    check (requested_by ~ '^(command|ledger|(key|member):[A-Za-z0-9_-]{1,64})$'),
  -- What was removed so far, in all attempts.
  add column removed_sessions bigint not null default 0,
  add column removed_chunks   bigint not null default 0,
  add column removed_blobs    bigint not null default 0,
  add column removed_bytes    bigint not null default 0,
  add column removed_browsers bigint not null default 0,
  -- A job leads to its person exactly while it is open. (This says all that the two checks did.)
  drop constraint deletion_jobs_check4,
  drop constraint deletion_jobs_check5,
  add constraint deletion_jobs_person_while_open
    check ((person_id is not null) = (status in ('pending', 'running')));

-- Claiming and reaping look at open jobs alone, however many finished ones there are.
create index deletion_jobs_due on deletion_jobs (next_attempt_at)
  where status in ('pending', 'running') and lease_token is null;
create index deletion_jobs_leased on deletion_jobs (lease_until) where lease_token is not null;
create index deletion_jobs_by_status
  on deletion_jobs (project_id, status, created_at desc, id desc);

-- The attempts that count, for the operator and the dashboard. Codes and steps, never words.
create table deletion_attempts (
  project_id integer not null,
  job_id     uuid not null,
  number     smallint not null check (number between 1 and 5),
  started_at timestamptz(3) not null default app_now(),
  ended_at   timestamptz(3),
  -- The step it is in, or was in when it ended.
  step       text collate "C" check (step ~ '^[a-z_]{1,40}$'),
  -- null: it runs, or its worker is gone and nobody noticed yet.
  outcome    text check (outcome in ('completed', 'failed', 'lost')),
  error_code text collate "C" check (error_code ~ '^[a-z0-9_]{1,60}$'),
  primary key (project_id, job_id, number),
  foreign key (project_id, job_id) references deletion_jobs,
  check ((ended_at is null) = (outcome is null)),
  check ((outcome is not null and outcome <> 'completed') = (error_code is not null))
);

-- The keys that sign receipts. The private half (its 32 byte seed) is wrapped by a master key of
-- the instance, so that it survives with the database and no copy of the database can sign.
create table signing_keys (
  id            uuid primary key default gen_random_uuid(),
  public_key    bytea not null check (octet_length(public_key) = 32),
  master_key_id text not null,
  wrapped       bytea not null,
  created_at    timestamptz(3) not null default app_now()
);

-- The receipts of a project form a chain; its row is the lock that gives them their order.
create table receipt_chains (
  project_id integer primary key references projects,
  length     bigint not null check (length > 0),
  -- SHA-256 of the last receipt.
  head       bytea check (octet_length(head) = 32)
);
create table receipts (
  project_id integer not null,
  job_id     uuid not null,
  number     bigint not null check (number > 0),
  jws        text collate "C" not null,
  primary key (project_id, job_id),
  unique (project_id, number),
  foreign key (project_id, job_id) references deletion_jobs
);

-- A person is flagged with a job exactly while that job is open, and with no other. Checked at the
-- end of each transaction that changes one of the two; it takes two look-ups by primary key.
create function deletion_flag_check(in_project_id integer, in_job_id uuid) returns void
  language plpgsql as $$
declare
  job deletion_jobs;
  flagged bigint[];
begin
  select * into job from deletion_jobs j where j.project_id = in_project_id and j.id = in_job_id;
  flagged := array(
    select p.id from persons p
    where p.project_id = in_project_id and p.deletion_job_id = in_job_id);
  if coalesce(flagged <> array_remove(array[job.person_id], null), true) then
    raise exception 'a person is flagged with a deletion job exactly while the job is open'
      using errcode = 'integrity_constraint_violation';
  end if;
end $$;

create function deletion_flag_check_of_job() returns trigger language plpgsql as $$
begin
  perform deletion_flag_check(new.project_id, new.id);
  return null;
end $$;
create constraint trigger deletion_jobs_flag after insert or update of status, person_id
  on deletion_jobs deferrable initially deferred
  for each row execute function deletion_flag_check_of_job();

create function deletion_flag_check_of_person() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.deletion_job_id is not null then
    perform deletion_flag_check(old.project_id, old.deletion_job_id);
  end if;
  if tg_op <> 'DELETE' and new.deletion_job_id is not null
    and (tg_op = 'INSERT' or new.deletion_job_id is distinct from old.deletion_job_id) then
    perform deletion_flag_check(new.project_id, new.deletion_job_id);
  end if;
  return null;
end $$;
create constraint trigger persons_flag_updated after update of deletion_job_id
  on persons deferrable initially deferred
  for each row execute function deletion_flag_check_of_person();
create constraint trigger persons_flag_deleted after delete
  on persons deferrable initially deferred
  for each row when (old.deletion_job_id is not null)
  execute function deletion_flag_check_of_person();
create constraint trigger persons_flag_inserted after insert
  on persons deferrable initially deferred
  for each row when (new.deletion_job_id is not null)
  execute function deletion_flag_check_of_person();
