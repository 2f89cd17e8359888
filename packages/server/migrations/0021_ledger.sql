-- What the database knows of the ledger in the blob store, which outlives a restored backup.
create table ledger_state (
  only_row      boolean primary key default true check (only_row),
  -- Entries of another installation are of no use to this one, also under the same master key.
  installation  uuid not null default gen_random_uuid(),
  -- The last number given to an entry. Its row is locked from there to the commit: whoever sees a
  -- number sees all that are smaller.
  last_number   bigint not null default 0,
  -- Every entry up to this number was compared with this database, or written by it.
  compared_to   bigint not null default 0,
  -- Entries up to this number may be missing: somebody has decided to go on without them.
  lost_to       bigint not null default 0,
  compared_at   timestamptz(3),
  -- What the last comparison found: entries that are not genuine, and completed jobs without one.
  refused       integer not null default 0,
  missing       integer not null default 0,
  -- The entries of versions that did not sign them are taken over once.
  is_taken_over boolean not null default false
);
insert into ledger_state default values;

create table ledger_entries (
  project_id integer not null,
  job_id     uuid not null,
  number     bigint not null check (number > 0),
  state      text collate "C" not null default 'open'
    check (state in ('open', 'completed', 'failed')),
  primary key (project_id, job_id),
  foreign key (project_id, job_id) references deletion_jobs
);
create index ledger_entries_open on ledger_entries (number) where state = 'open';
create index ledger_entries_completed on ledger_entries (number) where state = 'completed';
